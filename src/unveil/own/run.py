"""Run a discovery and write everything about it to a run directory.

`run_recipe` reads a data set of the catalog (`unveil run`), `run_own_data` user files (`unveil discover`). Both write
the same kind of directory, from which report, review, export, predict and continue work.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import files, ranks, recipe, rng
from unveil.checksums import set_aside
from unveil.data import catalog
from unveil.data.items import Items, Rows
from unveil.data.known_new import USUAL
from unveil.data.sheets import Columns
from unveil.data.task import UNLABELED, Task, Truth, make_task
from unveil.discovery.discover import discover, few_threads
from unveil.discovery.fit import check_settings, needs_network
from unveil.discovery.result import Result, class_names
from unveil.discovery.steps import shown
from unveil.encoders.encode import encode, encode_dataset
from unveil.encoders.image_words import image_words
from unveil.encoders.preparation import Preparation
from unveil.errors import DamagedError, UnveilError
from unveil.metrics import clustering_scores
from unveil.own.constraints import Corrections, kept_names
from unveil.own.directories import check_directory, check_request
from unveil.own.options import encoder_warning, own_settings
from unveil.own.sampled_task import read_task_or_sample
from unveil.runs import thumbnails
from unveil.runs.reader import check_files, read_record
from unveil.runs.writer import write
from unveil.settings import Settings
from unveil.storage import Storage, identity, locked

MOST_KNOWN = 5000  # labeled items of a data set that are kept in the run directory beside the unlabeled ones
KMEANS_INPUT_VALUES = 30_000_000
"""k-means on the inputs is skipped if they have more values than this: it would take too long."""


def run_recipe(
    settings: Settings,
    *,
    out: Path,
    stages: Path,
    root: Path | None = None,
    resume: bool = False,
    corrections: Corrections | None = None,
    console: Console | None = None,
) -> dict[str, Any]:
    """All stages of a recipe into the directory `out`; returns the record that is also written there.

    With corrections, labels of a review join those of the known classes and `data.n_novel` says how many classes are
    left; then no scores are computed.
    """
    together = ranks.join()
    console = console or Console(stderr=True, markup=False, quiet=not together.first)  # a path may have [brackets]
    check_directory(out, settings, resume=resume or ranks.restarted())
    if (record := finished(out, console)) is not None:
        return record
    dataset = catalog.load(settings.data.name, root)
    shown, truth = make_task(dataset, settings.data)
    encoded, preparation = encode_dataset(dataset, settings, stages, console)
    task = shown if encoded is dataset else make_task(encoded, settings.data)[0]
    assert task.ids is not None
    ids = [task.ids[row] for row in task.unlabeled]
    true_labels = dict(zip(ids, (truth.novel[label] for label in truth.unlabeled), strict=True))
    is_new, scored = task.labels == UNLABELED, truth if corrections is None else None
    if corrections is not None:
        task = replace(task.with_labels(corrections.labels), n_novel=settings.data.n_novel)
    check_settings(settings, preparation.reduced(task))
    source = {"kind": "data set", "name": settings.data.name}
    if corrections is not None:
        source["continues"] = corrections.source
    with locked(out, wait=False):
        if (record := finished(out, console)) is not None:  # another process has just finished it
            return record
        known = np.sort(rng.numpy(0, "look").permutation(np.flatnonzero(~is_new))[:MOST_KNOWN])
        rows = np.concatenate([known, np.flatnonzero(is_new)])
        run = _Run(
            settings=settings,
            task=task,
            shown=shown,
            truth=scored,
            true_labels=true_labels,
            preparation=preparation,
            source=source,
            rows=rows,
            new=is_new,
            storage=Storage(stages, out),
            console=console,
        )
        return run.execute(corrections=corrections)


def run_own_data(
    known: Path,
    new: Path | None,
    *,
    out: Path,
    stages: Path,
    recipe_name: str | None = None,
    changes: Mapping[str, Any] = recipe.NOTHING,
    encoder: str = "auto",
    columns: Columns = USUAL,
    sample: int | None = None,
    settings: Settings | None = None,
    corrections: Corrections | None = None,
    console: Console | None = None,
) -> dict[str, Any]:
    """Find the novel classes of NEW and write the run directory `out`. Returns the record.

    Without NEW, KNOWN is a table and its rows with an empty label are the new ones. `columns` names columns of a table.
    `sample`: take at most so many known and so many new items; of folders of array files 30,000 of each unless it is
    given.
    Without a recipe or settings, the recipe depends on the kind of the items; `changes` has values of its settings by
    `table.key`.
    """
    together = ranks.join()
    console = console or Console(stderr=True, markup=False, quiet=not together.first)
    begun = time.monotonic()
    task = read_task_or_sample(known, new, columns, sample)
    is_new = task.labels == UNLABELED
    if corrections is not None:
        task = task.with_labels(corrections.labels)
    if settings is None:
        any_labels = len(task.labeled) > 0
        settings = own_settings(task.items, recipe_name, changes, encoder=encoder, any_labels=any_labels)
    notes = [*task.notes, *encoder_warning(task.items, settings, encoder)]
    for note in notes:
        console.print(f"warning: {note}", soft_wrap=True)
    data = settings.data
    task = replace(task, n_novel=data.n_novel, known_in_unlabeled=data.known_in_unlabeled)
    if len(task.unlabeled) == 0 and corrections is None:
        where = f"{known} has a label in every row: leave the label of new rows empty, or give NEW"
        raise UnveilError(where if new is None else f"there is no new item in {new} (all have labels)")
    source: dict[str, Any] = {"kind": "files", "known": str(known.resolve())}
    source["new"] = None if new is None else str(new.resolve())
    if columns.any_named:
        source["columns"] = columns.to_json()
    if sample is not None:
        source["sample"] = sample
    content = [task.ids, task.items.fingerprint(stages), task.labels.tolist(), task.known]
    request = {"source": source, "items": identity(content=content)}
    if corrections is not None:
        request["continues"] = corrections.source
    check_request(out, settings, request)
    if (record := finished(out, console)) is not None:
        return record
    with thumbnails.kept_in(out) as keep:
        encoded = encode(task, settings, stages, console, keep)
    if len(encoded.task.unlabeled) == 0 and corrections is None:
        raise UnveilError(
            f"there is no new item in {new} ({encoded.skipped[0]} and {len(encoded.skipped) - 1} more cannot be read): "
            "nothing to discover"
        )
    check_settings(settings, encoded.preparation.reduced(encoded.task))
    with locked(out, wait=False):
        check_request(out, settings, request)  # another process may have been here
        if (record := finished(out, console)) is not None:
            return record
        files.write_json(out / "request.json", request)
        run = _Run(
            settings=settings,
            task=encoded.task,
            shown=encoded.shown,
            preparation=encoded.preparation,
            source=source,
            rows=np.arange(len(encoded.task)),
            new=is_new[encoded.readable],
            storage=Storage(stages, out),
            console=console,
        )
        return run.execute(skipped=encoded.skipped, begun=begun, notes=notes, corrections=corrections)


def finished(out: Path, console: Console) -> dict[str, Any] | None:
    """The record of a finished run; None where there is none. Where a file is damaged, the run has to be made again."""
    path = out / "record.json"
    if not path.exists():
        return None
    try:
        check_files(out)
    except DamagedError as error:
        problem = str(error).rpartition(": ")[0]
        console.print(f"warning: {problem}: the run is made again", style="yellow", soft_wrap=True)
        set_aside(path)
        return None
    console.print(f"{out} is already complete", soft_wrap=True)
    return read_record(out)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run: task, settings and the directory to write."""

    settings: Settings
    task: Task  # the task with encoded items
    shown: Task  # the task with the original items
    truth: Truth | None = None  # the true classes, for scores; None: there are no scores
    true_labels: Mapping[str, str] | None = None  # the true class of new items by id, where it is known
    preparation: Preparation
    source: dict[str, Any]
    rows: Rows  # the rows that the run directory holds: those that came with a label first
    new: NDArray[np.bool_]  # (n,): rows of the task that came without a label; a review may have given them one since
    storage: Storage
    console: Console

    def execute(
        self,
        *,
        skipped: Sequence[str] = (),
        begun: float | None = None,
        notes: Sequence[str] = (),
        corrections: Corrections | None = None,
    ) -> dict[str, Any]:
        """Discover the classes and write the run directory; returns the record."""
        out, settings, task = self.storage.run, self.settings, self.task
        config = recipe.dump(settings)
        files.write(out / "config.toml", config)
        with few_threads(task, settings), shown(self.console, trains=needs_network(task, settings)) as step:
            result = discover(
                task,
                settings,
                self.preparation,
                truth=self.truth,
                storage=self.storage,
                console=self.console,
                rows=self.rows,
                keep_features=True,
                step=step,
            )
        result = replace(result, warnings=(*notes, *result.warnings))
        names = class_names(task, result.predictor.n_novel)
        still_novel = 0 if corrections is None else len(corrections.unnamed)
        if corrections is not None:
            before = [corrections.clusters.get(task.id_of(int(row))) for row in self.rows]
            names = kept_names(names, len(task.known), result.labels, before, corrections.taken)
            self._keep_rejected_away(result, names, corrections.rejected)
            for index, row in enumerate(self.rows):
                result.confidence[index] = corrections.confidence.get(task.id_of(int(row)), result.confidence[index])
        result.predictor.save(out)
        seconds = {**result.seconds}
        if begun is not None:
            seconds["other"] = round(max(0.0, time.monotonic() - begun - sum(seconds.values())), 1)
        items, new = self.shown.items.take(self.rows), task.labels[self.rows] == UNLABELED
        scores = self._kmeans_scores(result, new)  # it may warn of damaged files
        assert result.learner is not None
        later = [warning for warning in result.learner.warnings if warning not in result.warnings]
        contents = result.contents(
            replace(task, ids=self.shown.ids),
            settings,
            name=out.resolve().name,
            source=self.source,
            items=items,
            rows=self.rows,
            new=self.new,
            names=names,
            still_novel=still_novel,
            columns=task.columns,
            words=self._words(items, names),
            truth=self.true_labels,
            seconds=seconds,
            skipped=list(skipped),
            warnings=[*result.warnings, *later],
            **scores,
        )
        record = ranks.current().from_first(lambda: write(out, contents))
        files.remove(out / "checkpoint.safetensors")
        if ranks.current().first:
            shutil.rmtree(out / "work", ignore_errors=True)  # work files of the rehearsals
        return record

    def _kmeans_scores(self, result: Result, new: NDArray[np.bool_]) -> dict[str, Any]:
        """Scores of k-means on features of unit length and on the inputs, where the truth is known."""
        if self.truth is None or result.learner is None:
            return {}
        scores = {"kmeans": clustering_scores(self.truth.unlabeled, result.kmeans[new])}
        items = result.learner.task.items
        if items.in_array and items.array[0].size * int(new.sum()) <= KMEANS_INPUT_VALUES:
            labels = result.learner.kmeans_on_items()
            scores["kmeans_inputs"] = clustering_scores(self.truth.unlabeled, labels)
        return scores

    def _words(self, items: Items, names: list[str]) -> tuple[str, ...]:
        """Names that a frozen encoder of images and words proposes for the classes; none by other encoders."""
        if self.preparation.encoder is None or not items.are_images:
            return ()
        return tuple(image_words(self.preparation.encoder, self.task.items.array[self.rows], names))

    def _keep_rejected_away(self, result: Result, names: list[str], rejected: Mapping[str, str]) -> None:
        """Move items that were rejected from a class to their next most likely class."""
        position_of = {self.task.id_of(int(row)): index for index, row in enumerate(self.rows)}
        for name, label in rejected.items():
            index = position_of.get(name)
            if index is None or names[result.labels[index]] != label:
                continue
            (space,) = result.predictor.spaces(self.task.items, self.rows[index : index + 1])
            p = result.predictor.probabilities(space)[0]
            p[result.labels[index]] = -1
            result.labels[index] = int(p.argmax())
            result.confidence[index] = max(0.0, float(p.max()))
