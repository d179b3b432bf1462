"""Commands for own data: discover, classes, forecast."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from unveil import ranks
from unveil.cli.options import command_line, parameter
from unveil.cli.output import AsJson, print_json, print_table
from unveil.cli.where import HERE, Where
from unveil.errors import UnveilError
from unveil.own.accepts import DIRECTORY, Accepts, Option, check, flag, whole
from unveil.own.parameters import DiscoveryOptions, FileOptions, changes

if TYPE_CHECKING:
    from unveil.own.engines import Finished

LABELS = "labels"
"""The folder in a run directory with the labels of all rows of NEW in shards."""


@command_line
@dataclass(frozen=True, kw_only=True)
class Common(FileOptions):
    """Options of every command that turns items into vectors."""


@command_line
@dataclass(frozen=True, kw_only=True)
class Discover(FileOptions, DiscoveryOptions):
    """Options of `unveil discover`: those of the table, and a few of its own."""

    continue_: Annotated[
        Path | None,
        Option(
            accepts=DIRECTORY,
            help="A reviewed run directory, in place of KNOWN and NEW. Clusters that have a name are known classes "
            "now, and rejected items do not come back to the class they were rejected from. All settings are those of "
            "that run; only --n-novel, --out, --root and --store may be given with it.",
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        Option(
            accepts=Accepts(lambda value: isinstance(value, list), "table.key=value"),
            help="Change a setting of the recipe, for example --set discovery.lr=0.05; may be given several times.",
        ),
    ] = None
    sample: Annotated[
        int | None,
        Option(
            accepts=whole(1),
            help="Take at most so many known and so many new items, for a quick first look. Of shards: 30,000 of each "
            "by default.",
        ),
    ] = None
    out: Annotated[Path | None, Option(accepts=DIRECTORY, help="The run directory. Default: runs/KNOWN-NEW.")] = None
    root: Annotated[
        Path | None,
        Option(
            accepts=DIRECTORY,
            help="Directory of the data sets, to continue a run of `unveil run`. Default: UNVEIL_DATA, or "
            "~/.cache/unveil/data.",
        ),
    ] = None


COMMON, DISCOVER = Common(), Discover()
WITH_CONTINUE = {"continue_", "n_novel", "out", "root", "store"}


def discover(
    known: Path | None = None, new: Path | None = None, /, *, options: Discover = DISCOVER, where: Where = HERE
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
    """
    check(options, flags=True)
    where.check()
    if options.continue_ is not None:
        if known is not None:
            raise UnveilError("give KNOWN and NEW, or --continue RUN, not both")
        _continue(options.continue_, options, where)
        return
    _check_given(known, new)
    assert known is not None
    _check_where(new, where)
    from unveil import recipe

    chosen = {**changes(vars(options)), **recipe.parse_set(options.set_ or [])}
    if options.recipe is not None:
        recipe.load(options.recipe, chosen)  # reports a mistake before anything is read

    from unveil.own.run import run_own_data

    name = known.resolve().stem if new is None else f"{known.resolve().stem}-{new.resolve().stem}"
    folder = options.out or Path("runs") / name
    record = run_own_data(
        known,
        new,
        out=folder,
        stages=options.stages(),
        recipe_name=options.recipe,
        changes=chosen,
        encoder=options.encoder,
        columns=options.named_columns(),
        sample=options.sample,
    )
    if _print_result(record, folder):
        _label_shards(record, folder, options.device, where)


def _continue(run: Path, options: Discover, where: Where) -> None:
    """Discover again after a review; the settings are those of the run."""
    given = [name for name, value in vars(options).items() if value != getattr(DISCOVER, name)]
    if wrong := [flag(name) for name in given if name not in WITH_CONTINUE]:
        raise UnveilError(f"--continue takes its settings from the run: leave out {', '.join(wrong)}")
    from unveil.own.continue_run import continue_run

    folder = options.out or run.with_name(f"{run.resolve().name}-continued")
    n_novel = options.n_novel if isinstance(options.n_novel, int) else None
    record = continue_run(run, out=folder, stages=options.stages(), root=options.root, n_novel=n_novel)
    if _print_result(record, folder):  # rows may be of classes that were novel before, and now have a name
        _label_shards(record, folder, options.device, where, novel_alone=False)


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
    known_in_unlabeled: Annotated[bool, parameter("known_in_unlabeled")] = False,
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
    json
        Print JSON, with the values of every criterion.
    """
    check(common, flags=True)
    _check_given(known, new)
    from unveil.own.estimates import count_classes, plot_criteria

    estimate = count_classes(known, new, common, known_in_unlabeled=known_in_unlabeled)
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
    method: Annotated[str, parameter("method")] = "auto",
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
    rehearsals
        How often known classes are hidden.
    json
        Print JSON.
    """
    check(common, flags=True)
    from unveil.own.estimates import rehearse_known

    expected = rehearse_known(known, common, changes({"method": method, "rehearsals": rehearsals}), n_novel=n_novel)
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
