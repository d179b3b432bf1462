"""Commands for people's own data: discover, predict, classes, trust."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from unveil.errors import UnveilError

Flag = Parameter(negative="")


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """Options of every command that makes vectors of items.

    Parameters
    ----------
    encoder
        For images: auto, efficientnet-lite0, compact (trained here), pixels, timm:NAME, transformers:NAME,
        torchvision:NAME.
    seed
        Equal seeds give equal results.
    device
        auto, cpu, cuda, cuda:1, mps.
    store
        Where embeddings are kept for reuse. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    """

    encoder: str = "auto"
    seed: int = 0
    device: str = "auto"
    store: Path | None = None


COMMON = Common()


def discover(
    known: Path | None = None,
    new: Path | None = None,
    /,
    *,
    continue_: Annotated[Path | None, Parameter(name="--continue")] = None,
    classes: str = "auto",
    method: str = "ncl-hng",
    may_contain_known: Annotated[bool, Flag] = False,
    rehearsals: int = 3,
    out: Path | None = None,
    common: Common = COMMON,
) -> None:
    """Find the classes in NEW that KNOWN does not have.

    Parameters
    ----------
    known
        A folder with a sub-folder of images for each class; or .npz (X, y), .npy + .txt, .csv with a column `label`.
    new
        A folder of images, however nested; or .npz (X), .npy, .csv.
    continue_
        A run directory that was reviewed, in place of KNOWN and NEW: the clusters that have a name now are known
        classes, and what was rejected does not come back to the class it was rejected from.
    classes
        How many novel classes there are; auto estimates it, or, with --continue, takes the clusters without a name.
    method
        ncl-hng, ncl, baseline, dtc, rs, kmeans, …
    may_contain_known
        NEW may contain items of known classes too.
    rehearsals
        How often known classes are hidden and found again, to choose the way and say how far to trust it.
    out
        The run directory. Default: runs/KNOWN-NEW.
    """
    number = _count(classes)
    if continue_ is not None:
        if known is not None:
            raise UnveilError("give KNOWN and NEW, or --continue RUN, not both")
        from unveil.discovery.refine import refine

        folder = out or continue_.with_name(f"{continue_.resolve().name}-continued")
        _told(refine(continue_, out=folder, classes=number, store=common.store), folder)
        return
    if known is None or new is None:
        raise UnveilError("give KNOWN and NEW: labelled items and new ones; unveil discover --help")
    from unveil.discovery.own_data import Request
    from unveil.discovery.own_data import discover as run

    request = Request(
        known=known,
        new=new,
        classes=number,
        encoder=common.encoder,
        method=method,
        may_contain_known=may_contain_known,
        rehearsals=rehearsals,
        seed=common.seed,
        device=common.device,
    )
    folder = out or Path("runs") / f"{known.resolve().stem}-{new.resolve().stem}"
    _told(run(request, out=folder, store=common.store), folder)


def _told(record: dict[str, Any], folder: Path) -> None:
    from unveil.pages.words import SUMMARY
    from unveil.runs.export import formats_for
    from unveil.runs.reader import load

    for key, title in SUMMARY.items():
        if sentence := record["summary"].get(key):
            print(f"{title}: {sentence}")
    for warning in record["warnings"]:
        print(f"warning: {warning}")
    _skipped(record["skipped"])
    print(f"run directory: {folder}")
    option = " --format folders" if "folders" in formats_for(load(folder)) else ""
    print(f"next: unveil review {folder}, then unveil export {folder}{option}")


def predict(
    run: Path, inputs: Path, /, *, coverage: float | None = None, out: Path | None = None, store: Path | None = None
) -> None:
    """Label new items by a run of discover: a known class, a novel cluster, or neither.

    Parameters
    ----------
    run
        The run directory of `unveil discover`.
    inputs
        A folder of images, one image, or an array, of the kind that the run was made from.
    coverage
        Say neither of items that are stranger than this share of the items seen, for example 0.95. Default: never.
    out
        A CSV file. Default: print it.
    store
        Where embeddings are kept for reuse.
    """
    if coverage is not None and not 0 < coverage <= 1:
        raise UnveilError(f"--coverage is {coverage}: give a share, above 0 and at most 1")
    from unveil import files
    from unveil.discovery.own_data import predict as label

    lines, skipped = label(run, inputs, coverage=coverage, store=store)
    text = files.csv_text(["id", "label", "kind", "probability"], lines)
    if out is None:
        print(text, end="")
    else:
        files.write(out, text)
        print(f"written: {out}, {len(lines)} items")
    _skipped(skipped)


def classes(
    known: Path,
    new: Path,
    /,
    *,
    plot: Path | None = None,
    may_contain_known: Annotated[bool, Flag] = False,
    common: Common = COMMON,
) -> None:
    """How many novel classes are there in NEW? Three criteria, an interval, and a picture of them.

    Parameters
    ----------
    known
        As for discover.
    new
        As for discover.
    plot
        Draw the criteria into this file (.png, .svg, .pdf); needs matplotlib.
    may_contain_known
        NEW may contain items of known classes too.
    """
    from unveil.discovery.explore import count_classes, draw_criteria

    estimate = count_classes(known, new, may_contain_known=may_contain_known, **vars(common))
    print(estimate.sentence())
    for curve in estimate.curves:
        print(f"  by {curve.name}: {curve.best}")
    if plot is not None:
        draw_criteria(estimate, plot)
        print(f"written: {plot}")


def trust(
    known: Path,
    /,
    *,
    novel: int | None = None,
    method: str = "ncl-hng",
    rehearsals: int = 5,
    common: Common = COMMON,
) -> None:
    """How well would novel classes be found in data like KNOWN? Hides known classes and finds them again.

    Parameters
    ----------
    known
        As for discover.
    novel
        How many novel classes to expect. Default: as many as there are known ones.
    method
        As for discover.
    rehearsals
        How often.
    """
    from rich.console import Console
    from rich.table import Table

    from unveil.discovery.explore import rehearse_known

    found = rehearse_known(known, novel=novel, method=method, rehearsals=rehearsals, **vars(common))
    rows: list[dict[str, Any]] = list(found.rehearsals)
    if rows:
        names = [name for name in rows[0] if name not in ("hidden", "counted")]
        table = Table("classes hidden", "counted", *(f"{name}, ACC %" for name in names))
        for row in rows:
            table.add_row(str(row["hidden"]), str(row["counted"]), *(f"{100 * row[name]:.1f}" for name in names))
        Console(markup=False).print(table)
    print(found.sentence())


def _count(classes: str) -> int | None:
    if classes == "auto":
        return None
    if not classes.isdecimal() or int(classes) < 1:
        raise UnveilError(f"--classes is '{classes}': give a whole number of 1 or more, or auto")
    return int(classes)


def _skipped(names: list[str]) -> None:
    if names:
        print(f"{len(names)} file(s) could not be read as images and were left out:")
        for name in names[:20]:
            print(f"  {name}")
        if len(names) > 20:
            print(f"  … and {len(names) - 20} more, listed in record.json")


COMMANDS = (discover, predict, classes, trust)
