"""Commands for own data: discover, classes, forecast."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from unveil import ranks
from unveil.cli.output import AsJson, print_json, print_table
from unveil.cli.where import HERE, Where
from unveil.encoders.registry import help_text
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.data.sheets import Columns
    from unveil.own.engines import Finished

Flag = Parameter(negative="")
KnownInUnlabeled = Parameter(name=["--known-in-unlabeled", "--known-in-unlabelled", "--may-contain-known"], negative="")
ENCODERS_HELP = help_text()
LABELS = "labels"
"""The folder in a run directory with the labels of all rows of NEW in shards."""
NumberOfClasses = Parameter(name=["--n-novel", "--classes"])


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """Options of every command that turns items into vectors.

    Parameters
    ----------
    encoder
        What turns images or texts into vectors.
    quick
        Show images to the smaller one of the usual encoders, at fewer pixels: several times as fast, and less accurate.
    text
        The column of a table that holds texts. It is used alone, unless --columns names others.
    label
        The column of a table that holds the labels. Default: label or class.
    id_
        The column of a table that holds the ids. Default: id.
    columns
        The columns of a table to use, with commas between them. Default: all that look useful.
    seed
        Equal seeds give equal results.
    device
        auto, cpu, cuda, cuda:1, mps.
    store
        Directory of embeddings and finished stages, for reuse. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    """

    encoder: Annotated[str, Parameter(help=ENCODERS_HELP)] = "auto"
    quick: Annotated[bool, Flag] = False
    text: str | None = None
    label: str | None = None
    id_: Annotated[str | None, Parameter(name="--id")] = None
    columns: str | None = None
    seed: int = 0
    device: str = "auto"
    store: Path | None = None

    def named_columns(self) -> "Columns":
        """The columns that were named."""
        from unveil.data.sheets import Columns

        used = None if self.columns is None else tuple(name.strip() for name in self.columns.split(",") if name.strip())
        return Columns(label=self.label, id=self.id_, text=self.text, used=used)


COMMON = Common()


def discover(
    known: Path | None = None,
    new: Path | None = None,
    /,
    *,
    continue_: Annotated[Path | None, Parameter(name="--continue")] = None,
    n_novel: Annotated[str, NumberOfClasses] = "auto",
    method: str | None = None,
    scaling: Literal["auto", "unit", "standard", "none"] = "auto",
    recipe: str | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="", allow_leading_hyphen=False)] = None,
    known_in_unlabeled: Annotated[bool, KnownInUnlabeled] = False,
    rehearsals: int | None = None,
    sample: int | None = None,
    out: Path | None = None,
    root: Path | None = None,
    common: Common = COMMON,
    where: Where = HERE,
) -> None:
    """Find the classes in NEW that KNOWN does not have.

    Parameters
    ----------
    known
        A folder with a sub-folder of images or .txt files for each class; a table (.csv, .tsv, .jsonl, .parquet) with a
        column of labels; .npz (X, y), .npy + .txt.
    new
        A folder of images or .txt files, however nested; a table; .npz (X), .npy. Without it, KNOWN is a table and its
        rows with an empty label are the new ones. For input of any size a folder of .parquet or .npy shards: the fit is
        on a sample, all rows are labeled in OUT/labels, and the same command goes on with what is missing there.
    continue_
        A reviewed run directory, in place of KNOWN and NEW. Clusters that have a name are known classes now, and
        rejected items do not come back to the class they were rejected from. All settings are those of that run; only
        --n-novel, --out, --root and --store may be given with it.
    n_novel
        The number of novel classes. auto: estimated, or, with --continue, the number of clusters without a name.
    method
        neighbor-consensus (the default for vectors), ncl-hng, ncl, baseline, dtc, rs, uno, simgcd, kmeans, …
    scaling
        How vectors are scaled: to unit length, each column to the same spread, or not at all. auto: as suits the known
        classes best.
    recipe
        vectors (the default: vectors, tables, and images by a frozen encoder), images (train on augmented images from
        nothing: rotation, known classes, discovery), or a TOML file.
    set_
        Change a setting of the recipe, for example --set discovery.lr=0.05; may be given several times.
    known_in_unlabeled
        NEW may contain items of known classes too.
    rehearsals
        How often known classes are hidden and discovered again, to choose the method's settings and to forecast the
        accuracy. Default: as the recipe says, 3 for vectors.
    sample
        Take at most so many known and so many new items, for a quick first look. Of shards: 30,000 of each by default.
    out
        The run directory. Default: runs/KNOWN-NEW.
    root
        Directory of the data sets, to continue a run of `unveil run`. Default: UNVEIL_DATA, or ~/.cache/unveil/data.
    """
    number = _number(n_novel)
    where.check()
    if continue_ is not None:
        if known is not None:
            raise UnveilError("give KNOWN and NEW, or --continue RUN, not both")
        _only_with_known_new(
            method=method,
            scaling=None if scaling == "auto" else scaling,
            recipe=recipe,
            set=set_,
            rehearsals=rehearsals,
            sample=sample,
            known_in_unlabeled=known_in_unlabeled or None,
            encoder=None if common.encoder == "auto" else common.encoder,
            quick=common.quick or None,
            seed=common.seed or None,
            device=None if common.device == "auto" else common.device,
            **{name: getattr(common, name) for name in ("text", "label", "columns")},
            id=common.id_,
        )
        from unveil.own.continue_run import continue_run
        from unveil.storage import default_store

        folder = out or continue_.with_name(f"{continue_.resolve().name}-continued")
        stages = common.store or default_store()
        record = continue_run(continue_, out=folder, stages=stages, root=root, n_novel=number)
        if _print_result(record, folder):  # rows may be of classes that were novel before, and now have a name
            _label_shards(record, folder, common.device, where, novel_alone=False)
        return
    _check_given(known, new)
    assert known is not None
    _check_where(new, where)
    if sample is not None and sample < 1:
        raise UnveilError(f"--sample is {sample}: give a whole number of 1 or more")
    from unveil import recipe as recipes

    chosen: dict[str, Any] = {
        "data.n_novel": number,
        "data.known_in_unlabeled": "true" if known_in_unlabeled else None,
        "data.quick": "true" if common.quick else None,
        "data.vector_scaling": None if scaling == "auto" else f'"{scaling}"',  # in quotes: "none" is a word
        "discovery.method": method,
        "rehearsals": rehearsals,
        "seed": common.seed,
        "machine.device": common.device,
    }
    overrides = [*(f"{key}={value}" for key, value in chosen.items() if value is not None), *(set_ or [])]
    if recipe is not None:
        recipes.load(recipe, overrides)  # reports a mistake before anything is read

    from unveil.own.run import run_own_data
    from unveil.storage import default_store

    name = known.resolve().stem if new is None else f"{known.resolve().stem}-{new.resolve().stem}"
    folder = out or Path("runs") / name
    record = run_own_data(
        known,
        new,
        out=folder,
        stages=common.store or default_store(),
        recipe_name=recipe,
        overrides=overrides,
        encoder=common.encoder,
        columns=common.named_columns(),
        sample=sample,
    )
    if _print_result(record, folder):
        _label_shards(record, folder, common.device, where)


def _check_where(new: Path | None, where: Where) -> None:
    """Raise an error where options for shards are given without any."""
    from unveil.data.shards import is_sharded

    if where != HERE and (new is None or not is_sharded(new)):
        raise UnveilError("--engine, --workers and --address are for NEW in shards: leave them out")


def _label_shards(record: dict[str, Any], folder: Path, device: str, where: Where, *, novel_alone: bool = True) -> None:
    """Label all rows of NEW where it is a folder of shards: the fit was on a sample of them."""
    from unveil.data.shards import is_sharded

    new = record["source"].get("new")
    if new is None or not is_sharded(Path(new)):
        return
    from unveil.own.sharded import Labeling, run_job

    job = Labeling(folder.resolve(), device=device, of_the_run=novel_alone)
    print_finished(run_job(job, Path(new), folder / LABELS, **where.options()), folder / LABELS)


def _check_given(known: Path | None, new: Path | None) -> None:
    """Raise an error where NEW is missing: only a table may hold both."""
    from unveil.data.cells import check_one_split
    from unveil.data.table_files import is_table

    if known is not None:
        check_one_split(known)
    if known is None or (new is None and not is_table(known)):
        raise UnveilError("give KNOWN and NEW: labeled items and new ones; unveil discover --help")


def _only_with_known_new(**options: object) -> None:
    """With --continue the settings are those of the run."""
    if given := [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]:
        raise UnveilError(f"--continue takes its settings from the run: leave out {', '.join(given)}")


def _print_result(record: dict[str, Any], folder: Path) -> bool:
    """Print what was found, in the first of processes that train together. Returns whether this is it."""
    first = ranks.current().first
    ranks.leave()  # the first one has written the run
    if not first:
        return False
    from unveil.pages.words import SUMMARY
    from unveil.review.export import formats_for
    from unveil.runs.reader import load

    for key, sentence in record["summary"].items():
        print(f"{SUMMARY.get(key, key)}: {sentence}")
    for warning in record["warnings"]:
        print(f"warning: {warning}")
    print_skipped(record["skipped"])
    print(f"run directory: {folder}")
    best = "folders" if "folders" in formats_for(load(folder)) else "csv"
    print(f"next: unveil review {folder}, then unveil export {folder} --format {best}")
    return True


def classes(
    known: Path,
    new: Path | None = None,
    /,
    *,
    plot: Path | None = None,
    known_in_unlabeled: Annotated[bool, KnownInUnlabeled] = False,
    json: AsJson = False,
    common: Common = COMMON,
) -> None:
    """Estimate the number of novel classes in NEW, with an interval, and show the criteria that decide.

    Parameters
    ----------
    known
        As for discover.
    new
        As for discover.
    plot
        Draw the criteria into this file (.png, .svg, .pdf); needs matplotlib.
    known_in_unlabeled
        NEW may contain items of known classes too.
    json
        Print JSON, with the values of every criterion.
    """
    _check_given(known, new)
    from unveil.own.estimates import count_classes, plot_criteria
    from unveil.storage import default_store

    estimate = count_classes(
        known, new, stages=common.store or default_store(), known_in_unlabeled=known_in_unlabeled, **_shared(common)
    )
    if plot is not None:
        plot_criteria(estimate, plot)
    if json:
        print_json({**estimate.to_json(), "sentence": estimate.sentence()})
        return
    print(estimate.sentence())
    for curve in estimate.curves:
        print(f"  by {curve.name}: {curve.best}")
    if plot is not None:
        print(f"written: {plot}")


def forecast(
    known: Path,
    /,
    *,
    n_novel: Annotated[int | None, Parameter(name=["--n-novel", "--novel"])] = None,
    method: str | None = None,
    rehearsals: int = 5,
    json: AsJson = False,
    common: Common = COMMON,
) -> None:
    """Forecast the accuracy of a discovery in data like KNOWN, by hiding known classes and discovering them again.

    Parameters
    ----------
    known
        As for discover.
    n_novel
        The number of novel classes to expect. Default: as many as there are known ones.
    method
        As for discover.
    rehearsals
        How often known classes are hidden.
    json
        Print JSON.
    """
    from unveil.own.estimates import rehearse_known
    from unveil.storage import default_store

    expected = rehearse_known(
        known,
        n_novel=n_novel,
        method=method,
        rehearsals=rehearsals,
        stages=common.store or default_store(),
        **_shared(common),
    )
    if json:
        print_json({**expected.to_json(), "sentence": expected.sentence()})
        return
    if expected.rehearsals:
        names = list(expected.rehearsals[0]["accuracy"])
        rows = [
            (row["hidden"], *(f"{100 * row['accuracy'][name]:.1f}" for name in names)) for row in expected.rehearsals
        ]
        print_table(("classes hidden", *(f"{name}, ACC %" for name in names)), rows)
    print(expected.sentence())


def _shared(common: Common) -> dict[str, Any]:
    """The options by which items become vectors."""
    return {
        "encoder": common.encoder,
        "quick": common.quick,
        "seed": common.seed,
        "device": common.device,
        "columns": common.named_columns(),
    }


def _number(n_novel: str) -> int | None:
    if n_novel == "auto":
        return None
    if not n_novel.isdecimal() or int(n_novel) < 1:
        raise UnveilError(f"--n-novel is '{n_novel}': give a whole number of 1 or more, or auto")
    return int(n_novel)


def print_finished(finished: "Sequence[Finished]", out: Path) -> None:
    """Say how many items the shards have that were written."""
    rows, unreadable = sum(one.rows for one in finished), sum(one.unreadable for one in finished)
    print(f"written: {out}, {rows:,} items in {len(finished):,} shards")
    if unreadable:
        print(f"{unreadable:,} of them could not be read: their rows hold no value")


def print_skipped(names: list[str]) -> None:
    if names:
        print(f"{len(names)} file(s) could not be read as images and were left out:")
        for name in names[:20]:
            print(f"  {name}")
        if len(names) > 20:
            print(f"  … and {len(names) - 20} more, listed in record.json")


COMMANDS = (discover, classes, forecast)
