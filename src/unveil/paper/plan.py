"""What an experiment has to run, what is there already, and running the rest."""

import statistics
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

from unveil import files, recipe
from unveil.errors import UnveilError
from unveil.paper.experiment import Experiment, Row, Scale, settings
from unveil.settings import Settings
from unveil.store import identity

Record = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One training with one seed. Rows of several tables that mean the same thing share it."""

    settings: Settings
    record: Path
    folder: Path

    def done(self) -> Record | None:
        found: Record | None = files.read_json(self.record) if self.record.exists() else None
        return found


@dataclass(frozen=True)
class Plan:
    """The runs of every row, by seed."""

    experiment: Experiment
    scale: Scale
    runs: dict[str, list[Run]]

    def missing(self) -> list[Run]:
        """What has to be run, each once."""
        wanted = {run.record: run for runs in self.runs.values() for run in runs if run.done() is None}
        return list(wanted.values())

    def records(self, row: Row) -> list[Record]:
        return [record for run in self.runs.get(row.name, []) if (record := run.done()) is not None]

    def estimate(self, run: Run) -> float | None:
        """Seconds of discovery, from records of the same method, else of any."""
        seconds: dict[str, list[float]] = {}
        for path in run.record.parent.glob("*.json"):
            record = files.read_json(path)
            seconds.setdefault(record["method"], []).append(record["seconds"]["discovery"])
        same = seconds.get(run.settings.discovery.method)
        everything = [value for values in seconds.values() for value in values]
        return statistics.fmean(same or everything) if everything else None


def make_plan(
    experiment: Experiment, place: Scale, seeds: int, *, out: Path, runs: Path, imbalance: float | None = None
) -> Plan:
    """The runs of an experiment. Records lie in `out`, run directories in `runs`."""
    extra = () if imbalance is None else (f"data.imbalance={imbalance:g}",)
    name = f"{place.name}-{place.data}" + ("" if imbalance is None else f"-imbalance{imbalance:g}")
    found: dict[str, list[Run]] = {}
    for row in experiment.rows:
        for seed in range(seeds):
            resolved = settings(row, place, seed, extra)
            if resolved is None:
                continue
            table = {key: value for key, value in recipe.to_table(resolved).items() if key != "machine"}
            title = f"{resolved.discovery.method}-{identity(settings=table)[:8]}-seed{seed}"
            run = Run(resolved, out / name / "records" / f"{title}.json", runs / name / title)
            found.setdefault(row.name, []).append(run)
    return Plan(experiment, place, found)


def execute(todo: list[Run], *, jobs: int, store: Path, root: Path | None, console: Console) -> list[tuple[Run, str]]:
    """Run what is missing; returns the runs that failed, and why. What was interrupted goes on where it stopped."""
    failed: list[tuple[Run, str]] = []

    def finish(number: int, run: Run, attempt: Callable[[], None]) -> None:
        what = f"{run.settings.discovery.method}, seed {run.settings.seed}"
        try:
            attempt()
        except UnveilError as error:
            failed.append((run, str(error)))
            console.print(f"[{number}/{len(todo)}] {what}: {error}", style="red", soft_wrap=True)
        else:
            record = run.done() or {}
            acc = 100 * record["metrics"]["acc"]
            seconds = record["seconds"]["discovery"]
            console.print(f"[{number}/{len(todo)}] {what}: ACC {acc:.1f} %, {seconds:.0f} s", soft_wrap=True)

    if jobs == 1:
        for number, run in enumerate(todo, 1):
            finish(number, run, lambda run=run: _one(run, store, root, threads=None))  # type: ignore[misc]
        return failed
    threads = max(1, _cores() // jobs)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_one, run, store, root, threads) for run in todo]
        try:
            for number, (run, future) in enumerate(zip(todo, futures, strict=True), 1):
                finish(number, run, future.result)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return failed


def _one(run: Run, store: Path, root: Path | None, threads: int | None) -> None:
    import torch

    from unveil import runs

    if threads is not None:
        torch.set_num_threads(threads)
    record = runs.run(run.settings, out=run.folder, store=store, root=root, resume=True, console=Console(quiet=True))
    files.write_json(run.record, record)


def _cores() -> int:
    import os

    return os.cpu_count() or 1


def total(estimates: Iterable[float | None]) -> str:
    """In words."""
    known = [value for value in estimates if value is not None]
    if not known:
        return "no record to estimate the time from"
    return f"about {sum(known) / 60:.0f} minutes of discovery, and pre-training where none is stored"
