"""`unveil paper`: run a table or figure of the paper."""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from unveil import files
from unveil import storage as stores
from unveil.errors import UnveilError, suggest
from unveil.experiments import experiment as experiments
from unveil.experiments import launch, maps, output, plan
from unveil.experiments.plan import Run


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where the runs of a table are executed: in this process and its children unless something else is given."""

    engine: str = "local"
    address: str | None = None
    launcher: str | None = None
    plan: Path | None = None
    only: str | None = None
    command: tuple[str, ...] = ()  # arguments of `unveil paper` that lead to the same plan

    def execute(
        self, todo: list[Run], store: Path, root: Path | None, jobs: int
    ) -> Iterable[tuple[Run, launch.Attempt]] | None:
        """The runs as they finish; None: they are executed here."""
        if self.launcher is not None:
            return launch.by_launcher(todo, self.launcher, jobs, self.command)
        if self.engine == "ray":
            return launch.on_ray(todo, store=store, root=root, jobs=jobs, address=self.address)
        return None


HERE = Where()


def overview() -> list[dict[str, Any]]:
    """All experiments: name, what it is, number of rows."""
    found = [experiments.load(name, "cifar10") for name in experiments.names()]
    return [{"name": one.name, "what": one.title, "rows": len(one.rows)} for one in found]


def run(
    name: str,
    *,
    data: str,
    scale: str,
    seeds: int | None,
    imbalance: float | None,
    jobs: int,
    dry_run: bool,
    show: bool = False,
    out: Path,
    runs: Path,
    root: Path | None,
    store: Path | None,
    console: Console,
    where: Where = HERE,
) -> list[dict[str, Any]]:
    """Run what is missing, unless the table is only to be shown, print it and write its files; returns its rows."""
    chosen = experiments.scale(scale, data)
    count = seeds or chosen.seeds
    experiment = experiments.load(name, data)
    experiments.check_data(experiment, data)
    planned = plan.make_plan(experiment, chosen, count, out=out, runs=runs, imbalance=imbalance)
    todo = planned.missing()
    estimates = [planned.estimate(run) for run in todo]
    total = len({run.record for runs_of_row in planned.runs.values() for run in runs_of_row})  # rows may share runs
    console.print(f"{planned.experiment.title}: {total - len(todo)} of {total} runs are done", soft_wrap=True)
    if where.only is not None:
        return _run_one(planned, where.only, store or stores.default_store(), root, console)
    if where.plan is not None:
        files.write(where.plan, launch.plan_text(todo, where.command))
        console.print(f"written: {where.plan}, {len(todo)} commands", soft_wrap=True)
        return []
    if dry_run:
        if todo:
            _announce(planned, todo, estimates, console)
        return []
    if show:
        todo = []
    if planned.experiment.shape == "map":
        maps.check()
    try:  # before anything is trained
        (planned.folder / "records").mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=planned.folder / "records").close()
    except OSError as error:
        raise files.disk_error(error, planned.folder / "records") from error
    if todo:
        console.print(f"{len(todo)} to run: {plan.total(estimates, jobs)}", soft_wrap=True)
    stages = store or stores.default_store()
    elsewhere = where.execute(todo, stages, root, jobs)
    failed = plan.execute(todo, jobs=jobs, store=stages, root=root, console=console, elsewhere=elsewhere)
    console.print(output.shown(planned))
    written = output.write(planned, planned.folder)
    if planned.experiment.shape == "map" and not failed:
        written.append(maps.draw(planned, planned.folder / f"{name}-map.png"))
    if not any(path.suffix == ".png" for path in written):
        console.print("no picture: it needs matplotlib (pip install 'unveil[paper]')")
    console.print("written: " + ", ".join(map(str, written)), soft_wrap=True)
    if failed:
        raise UnveilError(f"{len(failed)} of {len(todo)} runs failed; the first: {failed[0][1]}")
    return [dict(zip(output.HEADER, row, strict=True)) for row in output.cells(planned)]


def _run_one(planned: plan.Plan, name: str, store: Path, root: Path | None, console: Console) -> list[dict[str, Any]]:
    """Execute one run of a plan and print no table: what `--plan` and `--launcher` call."""
    found = {run.record.stem: run for runs in planned.runs.values() for run in runs}
    if name not in found:
        raise UnveilError(f"--only is '{name}', which is no run of this table{suggest(name, list(found))}")
    failed = plan.execute([found[name]], jobs=1, store=store, root=root, console=console)
    if failed:
        raise UnveilError(failed[0][1])
    return []


def _announce(planned: plan.Plan, todo: list[plan.Run], estimates: list[float | None], console: Console) -> None:
    table = Table("run", "changes", "about")
    rows = {run.record: row for row in planned.experiment.rows for run in planned.runs.get(row.name, [])}
    for run, seconds in zip(todo, estimates, strict=True):
        row, about = rows[run.record], "?" if seconds is None else f"{seconds:.0f} s"
        table.add_row(f"{row.name}, seed {run.settings.seed}", " ".join(row.set), about)
    console.print(table)
    console.print(plan.total(estimates), soft_wrap=True)
