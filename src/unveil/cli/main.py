"""The command line. Everything heavy is imported inside the command that needs it, so that help answers at once."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from unveil import __version__
from unveil.cli import own as cli_own
from unveil.errors import UnveilError

app = App(
    name="unveil",
    help="Find the classes that nobody has named yet.",
    version=__version__,
    suppress_keyboard_interrupt=False,
)
data = App(name="data", help="Data sets: list them, download them, check what is there.")
app.command(data)
for own in cli_own.COMMANDS:
    app.command(own)


@app.command
def run(
    recipe: str,
    /,
    *,
    seed: int | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="", allow_leading_hyphen=False)] = None,
    out: Path | None = None,
    root: Path | None = None,
    store: Path | None = None,
    cache_gb: float | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run all stages of a recipe: pre-training (reused where it is already stored), then discovery.

    Parameters
    ----------
    recipe
        A recipe that comes with unveil (cifar10-desk, digits, …) or a TOML file.
    seed
        Seed of the discovery stage.
    set_
        Change a setting, for example --set method.alpha=0.3; may be given several times.
    out
        The run directory. Default: runs/RECIPE-METHOD-seedN, with a mark where --set is used.
    root
        Where data sets lie. Default: UNVEIL_DATA, or ~/.cache/unveil/data.
    store
        Where finished stages are kept for reuse. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    cache_gb
        The most disk that the trunk cache may take: with less, its values take a byte each, then it has fewer views.
    resume
        Go on with an interrupted run.
    """
    from unveil import recipe as recipes

    given = {"seed": seed, "machine.cache_gb": cache_gb}
    overrides = [*(set_ or []), *(f"{key}={value}" for key, value in given.items() if value is not None)]
    settings = recipes.load(recipe, overrides)  # before torch is imported: a mistyped key is told at once

    from unveil.discovery import run as runs
    from unveil.storage import default_store

    folder = out or runs.default_folder(settings, changed=bool(set_))
    record = runs.run(settings, out=folder, store=store or default_store(), root=root, resume=resume)
    _summary(record, folder)


def _summary(record: dict, folder: Path) -> None:  # type: ignore[type-arg]
    from rich.console import Console
    from rich.table import Table

    table = Table("", "ACC %", "NMI", "ARI", "seconds", title=f"{record['recipe']}, unlabelled training items")
    seconds = record["seconds"]
    pretraining = sum(value for stage, value in seconds.items() if stage != "discovery")
    rows = [("k-means on the pre-trained features", record["kmeans"], pretraining)]
    if "kmeans_inputs" in record:
        rows.insert(0, ("k-means on the inputs", record["kmeans_inputs"], 0.0))
    if record["metrics"]:
        rows.append((record["method"], record["metrics"], pretraining + seconds["discovery"]))
    for name, scores, spent in rows:
        table.add_row(
            name, f"{100 * scores['acc']:.1f}", f"{scores['nmi']:.3f}", f"{scores['ari']:.3f}", f"{spent:.0f}"
        )
    console = Console(markup=False)
    console.print(table)
    console.print(f"run directory: {folder}", soft_wrap=True)


@app.command
def paper(
    experiment: str | None = None,
    /,
    *,
    data: str = "cifar10",
    scale: str = "desk",
    seeds: int | None = None,
    imbalance: float | None = None,
    jobs: int = 1,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    out: Path = Path("results/paper"),
    runs: Path = Path("runs/paper"),
    root: Path | None = None,
    store: Path | None = None,
) -> None:
    """Run a table or figure of the paper, as far as it is not there yet, and show it beside the paper's numbers.

    Parameters
    ----------
    experiment
        table2, table3, table4, hng-variants, memory, … Without one: all that there are.
    data
        cifar10, cifar100, imagenet, cifar10-embedded, cifar100-embedded, digits.
    scale
        desk: for a machine without an accelerator. paper: the published setting.
    seeds
        How many. Default: that of the scale.
    imbalance
        The first class has so many times more items than the last.
    jobs
        Runs at the same time.
    dry_run
        Only say what would be run, and how long it may take.
    out
        Where records, tables and pictures go. Records that are there are used again.
    runs
        Where run directories go; an interrupted one goes on where it stopped.
    root
        Where data sets lie. Default: UNVEIL_DATA, or ~/.cache/unveil/data.
    store
        Where finished stages are kept for reuse. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    """
    from unveil.experiments import command

    if jobs < 1 or (seeds is not None and seeds < 1):
        raise UnveilError("--jobs and --seeds are counts: give 1 or more")
    if experiment is None:
        command.overview()
        return
    command.run(
        experiment,
        data=data,
        scale=scale,
        seeds=seeds,
        imbalance=imbalance,
        jobs=jobs,
        dry_run=dry_run,
        out=out,
        runs=runs,
        root=root,
        store=store,
    )


@app.command
def bench(
    recipe: str = "cifar10",
    /,
    *,
    device: str = "auto",
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="", allow_leading_hyphen=False)] = None,
) -> None:
    """Measure discovery steps on this machine: the time of each part, its limit, and how much of it is reached.

    Parameters
    ----------
    recipe
        Whose network and settings; images are random, so the data set need not be there.
    device
        auto, cpu, cuda, cuda:1, mps.
    set_
        Change a setting, for example --set machine.precision=float32; may be given several times.
    """
    from unveil import recipe as recipes

    settings = recipes.load(recipe, [*(set_ or []), f"machine.device={device}"])

    from rich.console import Console

    from unveil import hardware
    from unveil.experiments import bench

    where = hardware.pick_device(settings.machine.device)
    report = bench.measure(settings, where, hardware.pick_precision(settings.machine, where))
    console = Console()
    for table in bench.tables(report):
        console.print(table)


@data.command(name="list")
def list_(*, root: Path | None = None) -> None:
    """List the data sets that unveil knows, and whether they are there."""
    from rich.console import Console
    from rich.table import Table

    from unveil.data import catalog

    table = Table("name", "here", "what it is", "path")
    for entry, present, path in catalog.status(root):
        table.add_row(entry.name, "yes" if present else "no", entry.description, str(path))
    Console().print(table)


@data.command
def get(name: str, /, *, root: Path | None = None) -> None:
    """Download a data set from its public home; a broken download goes on where it stopped."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from unveil.data import catalog

    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task(name, total=None)
        catalog.get(name, root, progress=lambda done, total: bar.update(task, completed=done, total=total))
    print(catalog.check(name, root))


@data.command
def check(name: str, /, *, root: Path | None = None) -> None:
    """Read a data set completely and say what is in it."""
    from unveil.data import catalog

    print(catalog.check(name, root))


def main() -> None:
    """Entry point: errors for people are one line and exit code 2."""
    try:
        app(exit_on_error=False, print_error=False)
    except (UnveilError, CycloptsError, OSError) as error:
        print(f"unveil: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        how = " with --resume" if sys.argv[1:2] == ["run"] else ""
        print(f"unveil: stopped; run the same command{how} to go on", file=sys.stderr)
        sys.exit(130)
