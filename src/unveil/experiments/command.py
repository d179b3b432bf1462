"""`unveil paper`: run a table or figure of the paper."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from unveil import files
from unveil import storage as stores
from unveil.errors import UnveilError, suggest
from unveil.experiments import experiment as experiments
from unveil.experiments import launch, maps, output, plan
from unveil.experiments.options import PaperOptions
from unveil.experiments.plan import Run


def overview() -> list[dict[str, Any]]:
    """All experiments: name, what it is, number of rows."""
    found = [experiments.load(name, "cifar10") for name in experiments.names()]
    return [{"name": one.name, "what": one.title, "rows": len(one.rows)} for one in found]


def run(name: str, options: PaperOptions, console: Console) -> list[dict[str, Any]]:
    """Run what is missing, unless the table is only to be shown, print it and write its files; returns its rows."""
    chosen = experiments.scale(options.scale, options.data)
    experiment = experiments.load(name, options.data)
    experiments.check_data(experiment, options.data)
    planned = plan.make_plan(
        experiment,
        chosen,
        options.seeds or chosen.seeds,
        out=options.out,
        runs=options.runs,
        imbalance=options.imbalance,
    )
    todo = planned.missing()
    estimates = [planned.estimate(run) for run in todo]
    total = len({run.record for runs_of_row in planned.runs.values() for run in runs_of_row})  # rows may share runs
    console.print(f"{planned.experiment.title}: {total - len(todo)} of {total} runs are done", soft_wrap=True)
    stages = options.store or stores.default_store()
    if options.only is not None:
        return _run_one(planned, options.only, stages, options.root, console)
    if options.plan is not None:
        files.write(options.plan, launch.plan_text(todo, options.arguments(name)))
        console.print(f"written: {options.plan}, {len(todo)} commands", soft_wrap=True)
        return []
    if options.dry_run:
        _announce(planned, todo, estimates, console)
        return []
    if options.show:
        todo = []
    if planned.experiment.shape == "map":
        maps.check()
    try:  # before anything is trained
        (planned.folder / "records").mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=planned.folder / "records").close()
    except OSError as error:
        raise files.disk_error(error, planned.folder / "records") from error
    if todo:
        console.print(f"{len(todo)} to run: {plan.total(estimates, options.jobs)}", soft_wrap=True)
    elsewhere = _elsewhere(name, options, todo, stages)
    failed = plan.execute(
        todo, jobs=options.jobs, store=stages, root=options.root, console=console, elsewhere=elsewhere
    )
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


def _elsewhere(
    name: str, options: PaperOptions, todo: list[Run], stages: Path
) -> Iterable[tuple[Run, launch.Attempt]] | None:
    """The runs as they finish; None: they are executed in this process and its children."""
    if options.launcher is not None:
        return launch.by_launcher(todo, options.launcher, options.jobs, options.arguments(name))
    if options.engine == "ray":
        return launch.on_ray(todo, store=stages, root=options.root, jobs=options.jobs, address=options.address)
    return None


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
        row = rows[run.record]
        about = "?" if seconds is None else f"{seconds:.0f} s"
        changes = " ".join(f"{key}={value}" for key, value in row.changes.items())
        table.add_row(f"{row.name}, seed {run.settings.seed}", changes, about)
    console.print(table)
    console.print(plan.total(estimates), soft_wrap=True)
