"""The options of `unveil paper`. Imports nothing heavy: the command line reads its help from here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from unveil.errors import UnveilError


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Which runs of a table are made, where they are executed, and where they are kept.

    Parameters
    ----------
    data
        cifar10, cifar100, imagenet, cifar10-embedded, cifar100-embedded, omniglot, digits.
    scale
        desk: for a machine without an accelerator. paper: the published setting.
    seeds
        Number of seeds. Default: that of the scale.
    imbalance
        How many times more items the first class has than the last.
    jobs
        Number of runs at the same time.
    engine
        local: processes on this machine. ray: tasks on a Ray cluster (pip install 'unveil[ray]').
    address
        The address of a running Ray cluster. Default: one with as many CPUs as --jobs is started here.
    launcher
        Start every run as a command of its own after this one, for example --launcher "srun -n 1".
    plan
        Only write a file with one command for each missing run, for any scheduler.
    only
        Execute this run alone and print no table: what the commands of --plan and --launcher do.
    dry_run
        Only print the missing runs and an estimate of their time.
    show
        Run nothing: make the table of the runs that are done.
    out
        Directory of records, tables and pictures. Existing records are reused.
    runs
        Directory of the run directories; an interrupted run continues where it stopped.
    root
        Directory of the data sets. Default: UNVEIL_DATA, or ~/.cache/unveil/data.
    store
        Directory in which finished stages are stored for reuse. Default: UNVEIL_STORE, or ~/.cache/unveil/stages.
    """

    data: str = "cifar10"
    scale: str = "desk"
    seeds: int | None = None
    imbalance: float | None = None
    jobs: int = 1
    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    launcher: str | None = None
    plan: Path | None = None
    only: str | None = None
    dry_run: bool = False
    show: bool = False
    out: Path = Path("results/paper")
    runs: Path = Path("runs/paper")
    root: Path | None = None
    store: Path | None = None

    def check(self) -> None:
        """Raise an error where an option is out of range or contradicts another."""
        if self.jobs < 1 or (self.seeds is not None and self.seeds < 1):
            raise UnveilError("--jobs and --seeds are counts: give 1 or more")
        if self.address is not None and self.engine != "ray":
            raise UnveilError("--address is that of a Ray cluster: add --engine ray")

    def arguments(self, experiment: str) -> list[str]:
        """Arguments of `unveil paper` that lead to the same runs from any directory."""
        names = ("data", "scale", "out", "runs", "seeds", "imbalance", "root", "store")
        values = {name: getattr(self, name) for name in names}
        given = {name: value.resolve() if isinstance(value, Path) else value for name, value in values.items()}
        return [experiment, *(f"--{name}={value}" for name, value in given.items() if value is not None)]
