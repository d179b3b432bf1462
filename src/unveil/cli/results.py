"""Commands on a finished run: report, review, suggest, export. None of them imports torch."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from unveil.cli.output import AsJson, print_json, print_table
from unveil.errors import UnveilError


def report(
    run: Path,
    /,
    *,
    out: Path | None = None,
    without_map: bool = False,
    original: bool = False,
) -> None:
    """Write a run, with the corrections of its review, as one HTML file that opens anywhere.

    Parameters
    ----------
    run
        The run directory of `unveil discover` or `unveil run`. Where you know the true classes of new items, put them
        there as truth.csv (id,label).
    out
        The file. Default: report.html in the run directory.
    without_map
        Leave out the map, which needs openTSNE and takes most of the time.
    original
        Report the result without the corrections of the review.
    """
    from rich.console import Console

    from unveil.pages.report.page import write
    from unveil.runs.map import can_use_tsne

    if not without_map and not can_use_tsne():
        print("warning: the map is left out, because it needs openTSNE: pip install 'unveil[review]'")
        without_map = True

    with Console(stderr=True, markup=False).status("drawing"):
        target = write(run, out, with_map=not without_map, original=original)
    print(f"written: {target}, {target.stat().st_size / 1e6:.1f} MB")


def review(
    run: Path,
    /,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    no_browser: bool = False,
) -> None:
    """Browse the classes of a run on a local web page: name, merge and split them, move and reject items.

    Parameters
    ----------
    run
        The run directory of `unveil discover` or `unveil run`. Corrections are saved in its review.jsonl, and export
        applies them.
    port
        The port to listen at. Default: a free one.
    host
        Address to listen at. Default: only this machine.
    no_browser
        Only print the address.
    """
    try:
        from unveil.pages.review.serve import serve
    except ImportError as error:
        raise UnveilError(f"the review page needs more packages ({error}): pip install 'unveil[review]'") from None

    serve(run, host=host, port=port, browser=not no_browser)


def export(
    run: Path,
    /,
    *,
    format_: Annotated[
        Literal["csv", "npz", "folders", "coco", "label-studio", "fiftyone", "cvat", "parquet", "h5ad"],
        Parameter(name="--format"),
    ] = "csv",
    out: Path | None = None,
    all_: Annotated[bool, Parameter(name="--all")] = False,
    copy: bool = False,
    original: bool = False,
) -> None:
    """Write the labels of a run, with the corrections of its review, for other tools.

    Parameters
    ----------
    run
        The run directory of `unveil discover` or `unveil run`.
    format_
        csv, npz (with features), label-studio, parquet; for image files also folders (a folder of links for each
        class), coco, fiftyone, cvat; for cells h5ad.
    out
        The file or folder. Default: in the run directory. What an earlier export wrote there is replaced.
    all_
        Export the known items too, not only the new ones.
    copy
        folders, fiftyone: copy the images, so that the folder can be moved to another machine, in place of links.
    original
        Export the labels without the corrections of the review.
    """
    from unveil.review.export import export as write

    print(f"written: {write(run, format_, out, all_items=all_, original=original, copy=copy)}")


def suggest(run: Path, /, *, original: bool = False, json_: AsJson = False) -> None:
    """Suggest classes to add: a name, the size, how sure it is, the nearest known class and examples of each.

    Parameters
    ----------
    run
        The run directory of `unveil discover` or `unveil run`, or of a saved estimator.
    original
        Suggest without the corrections of the review.
    json_
        Print JSON in place of a table.
    """
    from unveil.review.edited_scores import reviewed
    from unveil.review.suggestions import suggestions
    from unveil.runs.reader import load

    result = load(run)
    found = suggestions(result if original else reviewed(result)[0])
    if json_:
        print_json([one.to_json() for one in found])
        return
    header = ("name", "in this run", "items", "how sure", "nearest known", "examples")
    rows = [
        (
            one.name,
            one.cluster,
            f"{one.size:,}",
            f"{one.sure} ({100 * one.confidence:.0f} %)",
            one.nearest_known or "",
            "; ".join((one.texts or one.examples)[:2]),
        )
        for one in found
    ]
    print_table(header, rows)


COMMANDS = (report, review, suggest, export)
