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
from unveil.counting.estimate import check_count
from unveil.data import catalog
from unveil.data.dataset import Dataset, Split
from unveil.data.items import Items, Rows
from unveil.data.known_new import USUAL
from unveil.data.sheets import Columns
from unveil.data.task import UNLABELLED, Task, Truth, make_task
from unveil.discovery.describe import class_names, environment, summary
from unveil.discovery.discover import Discovery, discover, few_threads
from unveil.discovery.fit import needs_network
from unveil.discovery.steps import shown
from unveil.encoders.encode import encode_items
from unveil.encoders.image_words import image_words
from unveil.encoders.preparation import Preparation
from unveil.errors import DamagedError, UnveilError
from unveil.methods.catalog import method_title
from unveil.metrics import clustering_scores
from unveil.own.constraints import Corrections, kept_names
from unveil.own.directories import check_directory, check_request
from unveil.own.options import encoder_warning, own_settings, prepare, with_reduction
from unveil.own.sampled_task import read_task_or_sample
from unveil.runs import thumbnails
from unveil.runs.reader import check_files, read_record
from unveil.runs.writer import Contents, write
from unveil.settings import Settings
from unveil.storage import Storage, identity, locked
from unveil.training.training import Training

MOST_KNOWN = 5000
"""Labelled items of a data set that are kept in the run directory beside the unlabelled ones."""
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
    ids = [task.ids[row] for row in task.unlabelled]
    true_labels = dict(zip(ids, (truth.novel[label] for label in truth.unlabelled), strict=True))
    is_new, scored = task.labels == UNLABELLED, truth if corrections is None else None
    if corrections is not None:
        task = replace(task.with_labels(corrections.labels), n_novel=settings.data.n_novel)
    _check(task, settings, preparation)
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
    overrides: Sequence[str] = (),
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
    Without a recipe or settings, the recipe depends on the kind of the items; `overrides` change settings of a recipe.
    """
    together = ranks.join()
    console = console or Console(stderr=True, markup=False, quiet=not together.first)
    begun = time.monotonic()
    task = read_task_or_sample(known, new, columns, sample)
    is_new = task.labels == UNLABELLED
    if corrections is not None:
        task = task.with_labels(corrections.labels)
    if settings is None:
        any_labels = len(task.labelled) > 0
        settings = own_settings(task.items, recipe_name, overrides, encoder=encoder, any_labels=any_labels)
    notes = [*task.notes, *encoder_warning(task.items, settings, encoder)]
    for note in notes:
        console.print(f"warning: {note}", soft_wrap=True)
    data = settings.data
    task = replace(task, n_novel=data.n_novel, known_in_unlabelled=data.known_in_unlabelled)
    if len(task.unlabelled) == 0 and corrections is None:
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
    preparation = prepare(task.items, settings, folder=stages)
    with thumbnails.kept_in(out) as keep:
        preparation, items, readable = encode_items(task.items, task.labels, preparation, console, keep)
    shown = task if readable.all() else task.take(np.flatnonzero(readable))
    skipped = [task.id_of(int(row)) for row in np.flatnonzero(~readable)]
    if len(shown.unlabelled) == 0 and corrections is None:
        raise UnveilError(
            f"there is no new item in {new} ({skipped[0]} and {len(skipped) - 1} more cannot be read): "
            "nothing to discover"
        )
    preparation = with_reduction(preparation, items, settings)
    rows = np.arange(len(shown))
    encoded = replace(shown, items=items)
    _check(encoded, settings, preparation)
    with locked(out, wait=False):
        check_request(out, settings, request)  # another process may have been here
        if (record := finished(out, console)) is not None:
            return record
        files.write_json(out / "request.json", request)
        run = _Run(
            settings=settings,
            task=encoded,
            shown=shown,
            preparation=preparation,
            source=source,
            rows=rows,
            new=is_new[readable],
            storage=Storage(stages, out),
            console=console,
        )
        return run.execute(skipped=skipped, begun=begun, notes=notes, corrections=corrections)


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


def _check(task: Task, settings: Settings, preparation: Preparation) -> None:
    """Raise errors of the settings before anything is written, by setting up a training on two rows."""
    if task.n_novel is not None and len(task.unlabelled):
        check_count(task.n_novel, len(task.unlabelled))
    few = replace(task.take(np.arange(min(2, len(task)))), test_items=None)
    Training(settings, preparation.reduced(few))


def encode_dataset(dataset: Dataset, settings: Settings, stages: Path, console: Console) -> tuple[Dataset, Preparation]:
    """The data set, with images replaced by vectors where the recipe says so, and the preparation that does it."""
    preparation = Preparation(device=settings.machine.device, folder=stages)
    data = settings.data
    if data.encoder is None:
        return dataset, with_reduction(preparation, dataset.train.items, settings)
    if dataset.train.items.kind == "vectors":
        raise UnveilError(f"data.encoder={data.encoder} needs images, and {dataset.name} has vectors: leave it out")
    preparation = replace(preparation, encoder=data.encoder, encoder_side=data.encoder_size or 96)

    def encoded(split: Split) -> Split:
        items, readable = preparation.encoded(split.items, console)
        if not readable.all():
            bad = split.items.paths[int((~readable).argmax())]
            raise UnveilError(f"cannot read the image {bad}: replace or remove the file")
        return replace(split, items=items)

    test = None if dataset.test is None else encoded(dataset.test)
    dataset = replace(dataset, train=encoded(dataset.train), test=test)
    return dataset, with_reduction(preparation, dataset.train.items, settings)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run: task, settings and the directory to write."""

    settings: Settings
    task: Task
    """The task with encoded items."""
    shown: Task
    """The task with the original items."""
    truth: Truth | None = None
    """The true classes, for scores; None: there are no scores."""
    true_labels: Mapping[str, str] | None = None
    """The true class of new items by id, where it is known."""
    preparation: Preparation
    source: dict[str, Any]
    rows: Rows
    """The rows that the run directory holds: those that came with a label first."""
    new: NDArray[np.bool_]
    """(n,): rows of the task that came without a label; a review may have given them one since."""
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
        contents = self._contents(result, names, self._record(result, skipped, begun, still_novel), config)
        contents = replace(contents, n_known=contents.n_known - still_novel)
        record = ranks.current().from_first(lambda: write(out, contents))
        files.remove(out / "checkpoint.safetensors")
        if ranks.current().first:
            shutil.rmtree(out / "work", ignore_errors=True)  # work files of the rehearsals
        return record

    def _record(
        self, result: Discovery, skipped: Sequence[str], begun: float | None, still_novel: int
    ) -> dict[str, Any]:
        settings, task = self.settings, self.task
        new = task.labels[self.rows] == UNLABELLED
        seconds = {**result.seconds}
        if begun is not None:
            seconds["other"] = round(max(0.0, time.monotonic() - begun - sum(seconds.values())), 1)
        last = {key: value for key, value in result.history[-1].items() if key != "seconds"} if result.history else {}
        scores = self._kmeans_scores(result, new)
        later = [] if result.learner is None else [w for w in result.learner.warnings if w not in result.warnings]
        return {
            "name": self.storage.run.resolve().name,
            "source": self.source,
            "recipe": settings.name,
            "method": settings.discovery.method,
            "method_title": method_title(settings.discovery.method),
            "seed": settings.seed,
            "summary": summary(result, task, new, still_novel=still_novel),
            "estimate": None if result.estimate is None else result.estimate.to_json(),
            "forecast": result.forecast.to_json(),
            "metrics": last,
            **scores,
            "seconds": seconds,
            "warnings": [*result.warnings, *later],
            "skipped": list(skipped),
            **({} if result.cache is None else {"cache": result.cache}),
            "config": recipe.to_table(settings),
            "environment": environment(settings),
        }

    def _kmeans_scores(self, result: Discovery, new: NDArray[np.bool_]) -> dict[str, Any]:
        """Scores of k-means on features of unit length and on the inputs, where the truth is known."""
        if self.truth is None or result.learner is None:
            return {}
        scores = {"kmeans": clustering_scores(self.truth.unlabelled, result.kmeans[new])}
        items = result.learner.task.items
        if items.kind in ("images", "vectors") and items.array[0].size * int(new.sum()) <= KMEANS_INPUT_VALUES:
            labels = result.learner.kmeans_on_items()
            scores["kmeans_inputs"] = clustering_scores(self.truth.unlabelled, labels)
        return scores

    def _contents(self, result: Discovery, names: list[str], record: dict[str, Any], config: str) -> Contents:
        task, shown, rows = self.task, self.shown, self.rows
        given = ["" if new else names[label] for new, label in zip(self.new[rows], task.labels[rows], strict=True)]
        items = shown.items.take(rows)
        assert result.features is not None
        return Contents(
            ids=tuple(shown.id_of(int(row)) for row in rows),
            new=self.new[rows],
            given=tuple(given),
            labels=result.labels,
            classes=tuple(names),
            n_known=len(task.known),
            confidence=result.confidence,
            typicality=result.typicality,
            kmeans=result.kmeans,
            features=result.features,
            paths=tuple(str(path.resolve()) for path in items.paths) or ("",) * len(rows),
            pictures=items.array if items.kind == "images" else None,
            inputs=self.preparation.shown(items),
            columns=task.columns,
            texts=items.texts,
            words=self._words(items, names),
            truth=self.true_labels,
            record=record,
            config=config,
            history=result.history,
        )

    def _words(self, items: Items, names: list[str]) -> tuple[str, ...]:
        """Names that a frozen encoder of images and words proposes for the classes; none by other encoders."""
        if self.preparation.encoder is None or not items.are_images:
            return ()
        return tuple(image_words(self.preparation.encoder, self.task.items.array[self.rows], names))

    def _keep_rejected_away(self, result: Discovery, names: list[str], rejected: Mapping[str, str]) -> None:
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
