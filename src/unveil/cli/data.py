"""Commands for data sets: `unveil data list | get | check`."""

from pathlib import Path

from cyclopts import App

app = App(name="data", help="Data sets: list, download and check them.")


@app.command(name="list")
def list_(*, root: Path | None = None) -> None:
    """List the data sets of the catalog, and whether they are present."""
    from rich.console import Console
    from rich.table import Table

    from unveil.data import catalog

    table = Table("name", "here", "what it is", "path")
    for entry, present, path in catalog.status(root):
        table.add_row(entry.name, "yes" if present else "no", entry.description, str(path))
    Console().print(table)


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
