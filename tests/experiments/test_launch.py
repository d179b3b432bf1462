"""Runs of a table as commands of their own: the plan file, and a launcher that starts them."""

import shlex
import sys
from pathlib import Path

import pytest
from conftest import TINY
from rich.console import Console

from unveil import files, recipe
from unveil.errors import UnveilError
from unveil.experiments import command, experiment, launch, plan
from unveil.experiments.options import PaperOptions

GIVEN = ("table3", "--data=digits", "--seeds=1")


def planned(folder: Path) -> list[plan.Run]:
    found = experiment.load("table3", "digits")
    return plan.make_plan(found, experiment.scale("desk", "digits"), 1, out=folder, runs=folder / "runs").missing()


def paper(folder: Path, **where: object) -> list[dict[str, object]]:
    places = {"out": folder, "runs": folder / "runs", "store": folder / "store"}
    options = PaperOptions(data="digits", seeds=1, jobs=2, **places, **where)  # type: ignore[arg-type]
    return command.run("table3", options, Console(quiet=True))


def test_a_plan_has_a_command_for_each_missing_run(tmp_path: Path) -> None:
    todo = planned(tmp_path)
    done = {"method": "ncl", "seconds": {"discovery": 1.0}, "config": {"discovery": {"epochs": 1}}}
    files.write_json(todo[0].record, done)
    paper(tmp_path, plan=tmp_path / "commands.txt")
    lines = (tmp_path / "commands.txt").read_text().splitlines()
    places = [f"--out={tmp_path}", f"--runs={tmp_path / 'runs'}", "--seeds=1", f"--store={tmp_path / 'store'}"]
    expected = [sys.executable, "-m", "unveil", "paper", "table3", "--data=digits", "--scale=desk", *places]
    assert [shlex.split(line) for line in lines] == [[*expected, "--only", run.record.stem] for run in todo[1:]]


def test_a_launcher_starts_every_run_and_tells_which_failed(tmp_path: Path) -> None:
    todo = planned(tmp_path)[:3]
    program = tmp_path / "launcher.py"
    program.write_text(
        "import pathlib, sys\n"
        "name = sys.argv[sys.argv.index('--only') + 1]\n"
        "pathlib.Path(sys.argv[1], name).touch()\n"
        f"sys.exit('unveil: no memory' if name == {todo[1].record.stem!r} else 0)\n"
    )
    (tmp_path / "started").mkdir()
    launcher = shlex.join([sys.executable, str(program), str(tmp_path / "started")])
    failed = {}
    for run, attempt in launch.by_launcher(todo, launcher, 2, GIVEN):
        try:
            attempt()
        except UnveilError as error:
            failed[run.record.stem] = str(error)
    assert {path.name for path in (tmp_path / "started").iterdir()} == {run.record.stem for run in todo}
    assert failed == {todo[1].record.stem: "no memory"}


def test_a_launcher_or_a_run_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="cannot be started"):
        list(launch.by_launcher(planned(tmp_path)[:1], "no-such-launcher -n 1", 1, GIVEN))
    with pytest.raises(UnveilError, match="is no run of this table"):
        paper(tmp_path, only="ncl-00000000-seed0")


def test_a_run_that_ends_without_a_record_fails_by_itself(tmp_path: Path) -> None:
    todo = planned(tmp_path)[:2]
    away = [(run, lambda: None) for run in todo]  # a launcher that queues the runs and returns at once
    failed = plan.execute(
        todo, jobs=1, store=tmp_path / "store", root=None, console=Console(quiet=True), elsewhere=away
    )
    assert [run for run, _ in failed] == todo
    assert all("without a record" in reason for _, reason in failed)


def test_ray_executes_the_runs_of_a_plan_and_tells_which_failed(tmp_path: Path) -> None:
    """Ray's own cluster on this machine, two workers."""

    def run(name: str, *overrides: str) -> plan.Run:
        settings = recipe.load("digits", recipe.parse_set([*TINY, *overrides]))
        return plan.Run(name, settings, tmp_path / "records" / f"{name}.json", tmp_path / "runs" / name)

    todo = [run("first"), run("second", "seed=1"), run("wrong", "discovery.lr=1e30", "seed=2")]
    away = launch.on_ray(todo, store=tmp_path / "store", root=None, jobs=2, address=None)
    failed = plan.execute(
        todo, jobs=2, store=tmp_path / "store", root=None, console=Console(quiet=True), elsewhere=away
    )
    records = {path.stem: files.read_json(path) for path in (tmp_path / "records").glob("*.json")}
    assert {name: record["seed"] for name, record in records.items()} == {"first": 0, "second": 1}
    assert [one.row for one, _ in failed] == ["wrong"]
    assert "diverged" in failed[0][1]
