"""Plan the runs of an experiment, find those that are done, and execute the others."""

import json
import multiprocessing
import os
import signal
import statistics
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from unveil import claims, files, recipe
from unveil.errors import UnveilError
from unveil.experiments.experiment import Experiment, Row, Scale, settings
from unveil.settings import Settings
from unveil.storage import identity
from unveil.training.interrupt import Interrupt

Record = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One training with one seed. Rows of several tables with the same settings share it."""

    row: str
    settings: Settings
    record: Path
    folder: Path

    def resolved(self) -> "Run":
        """The run with absolute paths, for processes that start elsewhere."""
        return replace(self, record=self.record.resolve(), folder=self.folder.resolve())

    def done(self) -> Record | None:
        return files.read_json(self.record) if self.record.exists() else None


@dataclass(frozen=True)
class Plan:
    """The runs of every row, by seed."""

    experiment: Experiment
    scale: Scale
    imbalance: float | None
    folder: Path  # directory of records, tables and pictures
    runs: dict[str, list[Run]]

    @property
    def title(self) -> str:
        """Title of the table: experiment, data and scale."""
        uneven = "" if self.imbalance is None else f", classes unbalanced by {self.imbalance:g}"
        return f"{self.experiment.title} ({self.scale.data}, {self.scale.name}{uneven})"

    @property
    def column(self) -> str | None:
        """The paper's column to compare with; None for unbalanced classes, which the paper does not have."""
        return self.scale.column if self.imbalance is None else None

    def missing(self) -> list[Run]:
        """The runs that are not done, each once."""
        wanted = {run.record: run for runs in self.runs.values() for run in runs if run.done() is None}
        return list(wanted.values())

    def records(self, row: Row) -> list[Record]:
        return [record for run in self.runs.get(row.name, []) if (record := run.done()) is not None]

    def estimate(self, run: Run) -> float | None:
        """Estimated seconds of discovery, from an epoch of the same method or, without any record of it, of all."""
        an_epoch: dict[str, list[float]] = {}
        for path in run.record.parent.glob("*.json"):
            record = files.read_json(path)
            seconds = record["seconds"]["discovery"] / max(1, record["config"]["discovery"]["epochs"])
            an_epoch.setdefault(record["method"], []).append(seconds)
        same = an_epoch.get(run.settings.discovery.method)
        everything = [value for values in an_epoch.values() for value in values]
        return run.settings.discovery.epochs * statistics.fmean(same or everything) if everything else None


def make_plan(
    experiment: Experiment, scale: Scale, seeds: int, *, out: Path, runs: Path, imbalance: float | None = None
) -> Plan:
    """The plan of an experiment. Records are in `out`, run directories in `runs`."""
    imbalance = None if imbalance == 1 else imbalance
    extra = dict(scale.experiments.get(experiment.name, {}))
    if imbalance is not None:
        extra["data.imbalance"] = imbalance
    name = f"{scale.name}-{scale.data}" + ("" if imbalance is None else f"-imbalance{imbalance:g}")
    planned: dict[str, list[Run]] = {}
    for row in experiment.rows:
        for seed in range(seeds):
            resolved = settings(row, scale, seed, extra)
            if resolved is None:
                continue
            title = title_of(resolved)
            run = Run(row.name, resolved, out / name / "records" / f"{title}.json", runs / name / title)
            planned.setdefault(row.name, []).append(run)
    return Plan(experiment, scale, imbalance, out / name, planned)


def title_of(resolved: Settings) -> str:
    """The name of a run: its method, a hash of the settings that differ from their defaults, its seed.

    A setting that a later version adds does not change it, and `machine` is not part of it.
    """
    table = {key: value for key, value in recipe.changed(resolved).items() if key not in ("machine", "name", "seed")}
    return f"{resolved.discovery.method}-{identity(settings=table)[:8]}-seed{resolved.seed}"


def execute(
    todo: list[Run],
    *,
    jobs: int,
    store: Path,
    root: Path | None,
    console: Console,
    elsewhere: Iterable[tuple[Run, Callable[[], None]]] | None = None,
) -> list[tuple[Run, str]]:
    """Execute the runs; returns those that failed, and why. An interrupted run continues where it stopped.

    `elsewhere`: runs that are executed by somebody else, as they finish, each with a function that raises its error.
    """
    failed: list[tuple[Run, str]] = []
    count = 0

    def finish(run: Run, attempt: Callable[[], None]) -> None:
        nonlocal count
        count += 1
        what = f"[{count}/{len(todo)}] {run.row}, seed {run.settings.seed}"
        try:
            attempt()
            record = run.done()
            if record is None:
                raise UnveilError("it ended without a record: does the launcher wait for it, and does it see --out?")
        except BrokenProcessPool:
            raise UnveilError("a worker was killed, perhaps for lack of memory: use fewer --jobs") from None
        except Exception as error:  # one run must not take the others with it
            reason = str(error) if isinstance(error, UnveilError) else f"{type(error).__name__}: {error}"
            failed.append((run, reason))
            console.print(f"{what}: {reason}", style="red", soft_wrap=True)
        else:
            acc, seconds = 100 * record["metrics"]["acc"], record["seconds"]["discovery"]
            warned = "".join(f"; {warning.partition(':')[0]}" for warning in record.get("warnings", ()))
            console.print(f"{what}: ACC {acc:.1f} %, {seconds:.0f} s{warned}", soft_wrap=True)

    if elsewhere is not None:
        for run, attempt in elsewhere:
            finish(run, attempt)
        return failed
    if jobs == 1:
        progress = Console(stderr=True, markup=False, quiet=console.quiet)
        for run in todo:
            finish(run, lambda run=run: execute_run(run, store, root, progress))  # type: ignore[misc]
        return failed
    context = multiprocessing.get_context("spawn")
    threads = max(1, len(os.sched_getaffinity(0)) // jobs) if hasattr(os, "sched_getaffinity") else 1
    with (
        Interrupt() as interrupt,  # a KeyboardInterrupt could be lost in a callback of the pool
        ProcessPoolExecutor(jobs, mp_context=context, initializer=_worker, initargs=(threads,)) as pool,
    ):
        waiting, running = list(todo), dict[Future[None], Run]()
        try:
            while waiting or running:
                while waiting and len(running) < jobs:  # no more than that: nothing is queued when Ctrl-C comes
                    run = waiting.pop(0)
                    running[pool.submit(execute_run, run, store, root, None)] = run
                for future in wait(running, timeout=0.2, return_when=FIRST_COMPLETED).done:
                    finish(running.pop(future), future.result)
                if interrupt.asked:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            for child in multiprocessing.active_children():
                os.kill(child.pid or 0, signal.SIGINT)  # each saves its work and ends
            raise
    return failed


def _worker(threads: int) -> None:
    """Set up a worker process in its own session: it gets Ctrl-C only once, from `execute`."""
    import torch

    if hasattr(os, "setsid"):
        os.setsid()
    torch.set_num_threads(threads)


def execute_run(run: Run, store: Path, root: Path | None, console: Console | None) -> None:
    """Execute a run and write its record, unless another process has done so or does."""
    from unveil.own.run import run_recipe

    console = console or Console(quiet=True)

    def make() -> None:
        record = run_recipe(run.settings, out=run.folder, stages=store, root=root, resume=True, console=console)
        history = run.folder / "metrics.jsonl"
        rows = [json.loads(line) for line in history.read_text().splitlines()] if history.exists() else []
        evaluated = [row for row in rows if "acc" in row and "epoch" in row]  # k-means has none
        by_epoch = [(row["epoch"] + 1, row["acc"]) for row in evaluated]
        files.write_json(run.record, {**record, "acc_by_epoch": by_epoch})

    claims.once(run.record, make)  # others, on other machines perhaps, may work on the same table


def total(estimates: Iterable[float | None], jobs: int = 1) -> str:
    """The estimated time as a sentence."""
    known = [value for value in estimates if value is not None]
    if not known:
        return "no record to estimate the time from"
    return f"about {sum(known) / 60 / jobs:.0f} minutes of discovery, and pre-training where none is stored"
