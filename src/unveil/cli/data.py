"""Commands for data sets: `unveil data list | get | check`."""

from pathlib import Path

from cyclopts import App

from unveil.cli.output import AsJson, print_json, print_table

app = App(name="data", help="Data sets: list, download and check them.")


@app.command(name="list")
def list_(*, root: Path | None = None, json: AsJson = False) -> None:
    """List the data sets of the catalog, and whether they are present.

    Parameters
    ----------
    root
        Directory of the data sets. Default: UNVEIL_DATA, or ~/.cache/unveil/data.
    json
        Print JSON.
    """
    from unveil.data import catalog

    found = catalog.status(root)
    if json:
        keys = ("name", "here", "description", "path")
        print_json([dict(zip(keys, (e.name, here, e.description, path), strict=True)) for e, here, path in found])
        return
    rows = [(entry.name, "yes" if here else "no", entry.description, path) for entry, here, path in found]
    print_table(("name", "here", "what it is", "path"), rows)


@app.command
def get(name: str, /, *, root: Path | None = None) -> None:
    """Download a data set from its publisher; an interrupted download continues where it stopped."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from unveil.data import catalog

    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(name, total=None)
        catalog.get(name, root, progress=lambda done, total: bar.update(task, completed=done, total=total))
    print(catalog.check(name, root))


@app.command
def check(name: str, /, *, root: Path | None = None) -> None:
    """Read a data set completely and describe it."""
    from unveil.data import catalog

    print(catalog.check(name, root))
