"""`unveil paper`: plans, reuse, tables beside the paper's; every row of every experiment for a few steps on digits."""

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY
from PIL import Image
from rich.console import Console

from unveil import recipe
from unveil.errors import UnveilError
from unveil.experiments import command, maps, output, plan
from unveil.experiments import experiment as experiments
from unveil.experiments.options import PaperOptions
from unveil.experiments.plan import title_of
from unveil.experiments.summary import Line, pair_rule, plain_kmeans, summarize
from unveil.methods.dtc import DTCSettings
from unveil.methods.ranking import RankingSettings
from unveil.methods.similarity import PairwiseSettings
from unveil.settings import Settings
from unveil.training.loop import learning_rate

QUICK = recipe.parse_set(
    [
        *TINY,
        "rotation.epochs=1",
        "method.similarity.epochs=1",
        "method.similarity.batch=20",
        "discovery.epochs=1",
        "method.ncl_start=0",
        "method.scl_start=0",
        "method.hng_start=0",
        "method.warmup_epochs=0",
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paper")


def tiny() -> experiments.Scale:
    place = experiments.scale("desk", "digits")
    without = {"rotation.epochs": 0, "supervised.epochs": 1, "supervised.train": "all"}
    return replace(place, changes=QUICK, without_self_supervision=without, column="cifar10")


def planned(name: str, folder: Path, seeds: int = 1, **options: float) -> plan.Plan:
    found = experiments.load(name, "digits")
    return plan.make_plan(found, tiny(), seeds, out=folder / "out", runs=folder / "runs", **options)


def execute(todo: list[plan.Run], folder: Path, jobs: int = 1) -> list[tuple[plan.Run, str]]:
    return plan.execute(todo, jobs=jobs, store=folder / "store", root=None, console=Console(quiet=True))


FOR_ALL = [name for name in experiments.names() if not experiments.load(name, "digits").data]


@pytest.mark.parametrize("name", FOR_ALL)
def test_every_row_of_every_experiment_runs(folder: Path, name: str) -> None:
    found = planned(name, folder)
    assert not execute(found.missing(), folder)
    assert found.missing() == []
    lines = summarize(found)
    assert [line.row.name for line in lines] == [row.name for row in found.experiment.rows]
    written = output.write(found, folder / "tables")
    assert [path.suffix for path in written] == [".md", ".csv", ".tex", ".png"]
    with written[1].open(newline="") as file:
        rows = list(csv.DictReader(file))
    for line, row in zip(lines, rows, strict=True):
        record = found.records(line.row)[0]
        assert float(row["acc_mean"]) == pytest.approx(100 * record["metrics"]["acc"], abs=1e-3)
        rule = f"| {line.pairs} " if "| pairs |" in written[0].read_text() else ""
        assert f"| {line.row.name} {rule}| 1 |" in written[0].read_text()
        for key in ("commit", "processor"):
            assert key in record["environment"]


def test_rows_that_mean_the_same_share_a_run(folder: Path) -> None:
    def of(name: str, row: str) -> plan.Run:
        return planned(name, folder).runs[row][0]

    assert of("table2", "baseline").record == of("table3", "baseline").record
    assert (
        of("table3", "NCL").record == of("hng-variants", "NCL").record == of("rounds", "iterations of HNG N = 0").record
    )
    assert of("table3", "NCL").record != of("table3", "NCL + HNG").record
    for row in ("baseline, cosine above 0.95", "NCL + HNG, cosine above 0.95, random head"):
        assert of("table3", row).record == of("table4", row).record == of("pair-rules", row).record


def test_rows_name_their_rule_for_pairs(folder: Path) -> None:
    def rule(*changes: str) -> str:
        row = experiments.Row(name="x", changes=recipe.parse_set(changes))
        found = experiments.settings(row, tiny(), 0)
        assert found is not None
        return pair_rule(found)

    rules = {
        "discovery.method=baseline": "nearest",
        "discovery.method=baseline method.pairs=calibrated": "calibrated",
        "discovery.method=ncl-hng method.pairs=cosine": "cosine 0.95",
        "discovery.method=ncl method.pairs=cosine method.threshold=0.8": "cosine 0.8",
        "discovery.method=ncl method.pairs=ranking": "ranking",
        "discovery.method=rs+": "ranking",
        "discovery.method=rs method.ranking_top=1": "ranking",
        "discovery.method=mcl": "learned",
        "discovery.method=baseline method.bce_weight=0": "–",
        **{f"discovery.method={name}": "–" for name in ("kmeans", "dtc", "uno", "simgcd")},
    }
    assert {changes: rule(*changes.split()) for changes in rules} == rules
    execute(planned("table4-all", folder).missing(), folder)
    written = output.write(planned("table4-all", folder), folder / "rules")[0].read_text()
    assert written.startswith("|  | pairs | seeds |")
    assert "| KCL, no self-supervision | learned | 1 |" in written
    assert "| UNO | – | 1 |" in written
    some = planned("table4-all", folder)
    only = tuple(row for row in some.experiment.rows if row.name in ("UNO", "DTC, targets alone"))
    without = replace(some, experiment=replace(some.experiment, rows=only))
    assert output.write(without, folder / "rules")[0].read_text().startswith("|  | seeds |")  # no rule in any row


def test_a_row_beside_one_that_was_not_run_has_no_effect(tmp_path: Path) -> None:
    found = planned("table3", tmp_path)
    for row in ("NCL + HNG, cosine above 0.95", "baseline, cosine above 0.95, random head", "baseline"):
        (run,) = found.runs[row]
        run.record.parent.mkdir(parents=True, exist_ok=True)
        content = {"seed": 0, "metrics": {"acc": 0.5}, "seconds": {"discovery": 1.0}}
        run.record.write_text(json.dumps({"method": "x", **content}))
    lines = summarize(found)
    assert [line.row.name for line in lines][1:] == [
        "NCL + HNG, cosine above 0.95",
        "baseline, cosine above 0.95, random head",
    ]
    assert all(line.against == line.verdict == "" for line in lines)
    assert all(line.effect is None and line.paper_effect is None for line in lines)


def test_an_experiment_for_one_data_set_is_run_on_that_alone(
    unveil: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    refused = unveil("paper", "known-classes", "--data", "cifar10", "--dry-run")
    assert refused.returncode != 0
    assert "known-classes is for cifar100: give --data cifar100" in refused.stderr
    place = experiments.scale("desk", "cifar100-embedded")
    rows = experiments.load("known-classes", "cifar100-embedded").rows
    found = [experiments.settings(row, place, 0) for row in rows]
    assert [one.data.known for one in found if one is not None] == [10, 10, 20, 20, 40, 40, 80, 80]


@pytest.mark.parametrize(("data", "epochs"), [("cifar10", 10), ("cifar10-embedded", 20)])
def test_a_scale_has_settings_for_an_experiment(data: str, epochs: int, tmp_path: Path) -> None:
    place = experiments.scale("desk", data)
    found = plan.make_plan(experiments.load("epochs", data), place, 1, out=tmp_path, runs=tmp_path)
    lengths = {run.settings.discovery.epochs for runs in found.runs.values() for run in runs}
    assert lengths == {epochs}
    (other,) = plan.make_plan(experiments.load("table4", data), place, 1, out=tmp_path, runs=tmp_path).runs["RS"]
    assert other.settings.discovery.epochs < epochs


def test_kmeans_stands_beside_the_rows_that_were_run(tmp_path: Path) -> None:
    found = planned("epochs", tmp_path)
    assert plain_kmeans(found) == {}
    (run,) = found.runs["NCL"]
    run.record.parent.mkdir(parents=True)
    run.record.write_text(json.dumps({"method": "ncl", "kmeans": {"acc": 0.5}}))
    assert plain_kmeans(found) == {"k-means on features of unit length": [50.0]}


def test_rows_are_repeated_for_each_alphabet() -> None:
    rows = experiments.load("omniglot", "omniglot").rows
    assert [row.name for row in rows[2:4]] == ["Atemayar Qelisayer: k-means", "Atemayar Qelisayer: NCL + HNG"]
    assert rows[3].against == rows[2].name
    found = [experiments.settings(row, experiments.scale("desk", "omniglot"), 0) for row in rows]
    assert len({(one.discovery.method, one.data.novel) for one in found if one is not None}) == len(rows) == 40


@pytest.mark.parametrize("data", ["cifar10", "cifar100", "imagenet"])
@pytest.mark.parametrize("name", FOR_ALL)
def test_every_row_is_a_valid_recipe_at_the_published_scale(name: str, data: str) -> None:
    place = experiments.scale("paper", data)
    found = [experiments.settings(row, place, seed) for row in experiments.load(name, data).rows for seed in (0, 1)]
    assert any(one is not None for one in found)
    assert place.seeds == (3 if data == "imagenet" else 10)
    if data == "imagenet":
        assert len({one.data.novel for one in found if one is not None}) == 2  # a subset for each seed


def test_records_are_used_again_and_an_edited_setting_is_not(folder: Path, tmp_path: Path) -> None:
    first = planned("table3", tmp_path)
    (run,) = first.runs["baseline"]
    config = {"discovery": {"epochs": 2 * run.settings.discovery.epochs}}
    record = {"method": "baseline", "seed": 0, "metrics": {"acc": 0.5}, "seconds": {"discovery": 60.0}}
    run.record.parent.mkdir(parents=True)
    run.record.write_text(json.dumps(record | {"config": config}))
    assert run not in first.missing()
    assert len(first.missing()) == 9
    assert first.estimate(first.missing()[0]) == pytest.approx(30.0)  # half as many epochs
    other = plan.make_plan(
        first.experiment,
        replace(tiny(), changes={**QUICK, "discovery.lr": 0.03}),
        1,
        out=tmp_path / "out",
        runs=tmp_path / "runs",
    )
    assert len(other.missing()) == 10


def test_effects_are_paired_by_seed_and_stand_beside_the_papers(tmp_path: Path) -> None:
    found = planned("table3", tmp_path, seeds=3)
    scores = {"baseline": (0.5, 0.6, 0.7), "NCL": (0.55, 0.66, 0.74), "NCL without pseudo-positives": (0.6, 0.5, 0.8)}
    for row, values in scores.items():
        for run, acc in zip(found.runs[row], values, strict=True):
            run.record.parent.mkdir(parents=True, exist_ok=True)
            content = {"seed": run.settings.seed, "metrics": {"acc": acc}, "seconds": {"discovery": 1.0}}
            run.record.write_text(json.dumps({"method": "x", **content}))
    lines: dict[str, Line] = {line.row.name: line for line in summarize(found)}
    assert lines["baseline"].mean["acc"] == pytest.approx(60)
    assert lines["baseline"].spread["acc"] == pytest.approx(10)
    assert lines["NCL"].effect == pytest.approx((5, 1))
    assert lines["NCL"].paper_effect == pytest.approx(5.5)
    assert lines["NCL"].verdict == "same sign, p 0.013"  # t = 5 / (1 / √3) with two degrees of freedom
    without = lines["NCL without pseudo-positives"]
    assert without.against == "NCL"
    assert without.effect is not None
    assert without.effect[0] == pytest.approx(-5 / 3)
    assert without.verdict.startswith("same sign, p 0.8")
    assert lines["baseline"].verdict == ""


def test_processes_side_by_side_give_the_same_records(folder: Path, tmp_path: Path) -> None:
    some = [run for runs in planned("table3", tmp_path).runs.values() for run in runs][:2]
    assert not execute(some, tmp_path, jobs=2)
    execute(planned("table3", folder).missing(), folder)
    for run in some:
        twin = folder / "out" / run.record.relative_to(tmp_path / "out")
        assert json.loads(twin.read_text())["metrics"]["acc"] == (run.done() or {})["metrics"]["acc"]


def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    found = planned("table3", tmp_path)
    bad = found.runs["baseline"][0]
    bad.folder.parent.mkdir(parents=True)
    bad.folder.write_text("in the way")
    failed = execute([bad, found.runs["NCL"][0]], tmp_path)
    assert [run for run, _ in failed] == [bad]
    assert "is a file" in failed[0][1]
    assert found.runs["NCL"][0].done() is not None


def test_imbalance_is_another_setting(tmp_path: Path) -> None:
    found = planned("table3", tmp_path, imbalance=4)
    run = found.runs["baseline"][0]
    assert run.settings.data.imbalance == 4
    assert "imbalance4" in str(run.record)
    assert not execute([run], tmp_path)
    sizes = sorted((run.done() or {})["metrics"]["cluster_sizes"])
    assert sum(sizes) == 24 + 17 + 12 + 8 + 6  # 24 · 4^(-i/4)


@pytest.mark.parametrize(
    ("name", "data", "scale", "said"),
    [
        ("table5", "cifar10", "desk", "did you mean 'table"),
        ("table4", "cifar11", "desk", "did you mean 'cifar1"),
        ("table4", "cifar10", "dusk", "did you mean 'desk'"),
    ],
)
def test_a_mistyped_name_is_told(name: str, data: str, scale: str, said: str) -> None:
    def both() -> None:
        experiments.load(name, data)
        experiments.scale(scale, data)

    with pytest.raises(UnveilError, match=said):
        both()


def test_a_table_of_the_runs_that_are_done(folder: Path, tmp_path: Path) -> None:
    found = planned("table3", folder)
    baseline = found.runs["baseline"][0]
    execute([run for run in found.missing() if run == baseline], folder)
    some = plan.make_plan(found.experiment, experiments.scale("desk", "digits"), 1, out=tmp_path, runs=tmp_path)
    (copy := some.runs["baseline"][0].record).parent.mkdir(parents=True)
    copy.write_text(baseline.record.read_text())
    options = PaperOptions(data="digits", seeds=1, out=tmp_path, runs=tmp_path)
    rows = command.run("table3", replace(options, show=True), Console(quiet=True))
    assert [row[""] for row in rows] == ["baseline"]
    assert not list(tmp_path.rglob("config.toml"))
    for run in some.missing():
        run.record.write_text(baseline.record.read_text())
    done = Console(record=True)
    command.run("table3", replace(options, dry_run=True), done)
    assert done.export_text().strip().endswith("10 of 10 runs are done")  # nothing to run: no table, no estimate


def test_the_command(unveil, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    listed = unveil("paper")
    assert listed.returncode == 0
    assert "table4" in listed.stdout
    where = ("--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs"))
    dry = unveil("paper", "table3", "--data", "digits", "--seeds", "2", "--dry-run", *where)
    assert dry.returncode == 0, dry.stderr
    assert "0 of 20 runs are done" in dry.stdout
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "runs").exists()
    wrong = unveil("paper", "table9", "--data", "digits")
    assert wrong.returncode == 2
    assert "table" in wrong.stderr
    assert recipe.load("digits").name == "digits"


def test_the_map_shows_every_row_and_what_is_misplaced(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("openTSNE")
    found = planned("tsne", folder)
    execute(found.missing(), folder)
    path = maps.draw(found, tmp_path / "map.png")
    with Image.open(path) as picture:
        assert picture.width > 4 * 300
        assert len(picture.convert("RGB").resize((200, 80)).getcolors(99999) or []) > 50
    y, clusters = np.array([0, 0, 0, 1, 1, 1]), np.array([7, 7, 7, 7, 4, 4])
    assert maps.misplaced(y, clusters) == [(3, 0)]
    (folder / "none").mkdir(exist_ok=True)
    lost = replace(found, runs={"x": [replace(found.runs["RS"][0], folder=folder / "none")]})
    with pytest.raises(UnveilError, match="needs the run directory"):
        maps.draw(lost, tmp_path / "map.png")


def test_ctrl_c_ends_all_jobs_and_loses_nothing(tmp_path: Path, unveil) -> None:  # type: ignore[no-untyped-def]
    """SIGINT to the command alone: its workers save and end, and the next call goes on."""
    where = ["--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs"), "--store", str(tmp_path / "store")]
    command = ["paper", "table3", "--data", "digits", "--seeds", "1", "--jobs", "2", *where]
    process = subprocess.Popen(
        [sys.executable, "-m", "unveil", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list((tmp_path / "runs").glob("*/*/metrics.jsonl")):
        time.sleep(0.2)  # until a run has finished an epoch
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped" in errors
    assert "Traceback" not in errors
    began = {path.parent.name for path in (tmp_path / "runs").glob("*/*/config.toml")}
    assert 1 <= len(began) <= 4  # nothing new is started after it


def test_a_place_that_cannot_be_written_to_is_told_first(unveil, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").write_text("")
    where = ("--out", str(tmp_path / "file" / "x"), "--runs", str(tmp_path / "runs"))
    told = unveil("paper", "table3", "--data", "digits", "--seeds", "1", *where)
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_keeps_its_name_when_settings_are_added() -> None:
    resolved = recipe.load("digits", {"seed": 3, "method.alpha": 0.4})
    table = recipe.to_table(resolved)
    del table["discovery"]["passes"]  # as a record of an older version has it
    assert title_of(recipe.from_table(table)) == title_of(resolved)
    assert title_of(resolved) == title_of(recipe.load("digits", {"seed": 3, "method.alpha": 0.4, "machine.workers": 1}))
    assert title_of(resolved) != title_of(recipe.load("digits", {"seed": 3, "method.alpha": 0.3}))


KCL_AND_MCL = {
    "similarity": ("adam", 1e-3, 50, (30, 40), 0.1, 100, 20),
    "discovery": ("adam", 1e-3, 150, (100,), 0.1, 100),
}
DTC_VALUES = {  # variant, warm-up, interval, γ, T, epochs, weight decay; then the rate by epoch
    "cifar10": (("pi", 10, 5, 10, 5, 110, 1e-4), {0: 0.1, 9: 0.1, 10: 0.05, 109: 0.05}),
    "cifar100": (("te", 30, 10, 10, 5, 130, 1e-5), {29: 0.1, 30: 0.05, 49: 0.05, 50: 0.025, 70: 0.0125, 110: 0.003125}),
    "imagenet": (("tep", 10, 5, 100, 5, 70, 1e-5), {9: 0.1, 10: 0.05, 69: 0.05}),
}


def published(method: str, data: str) -> Settings:
    row = experiments.Row(name=method, changes={"discovery.method": method})
    found = experiments.settings(row, experiments.scale("paper", data), 0)
    assert found is not None
    return found


@pytest.mark.parametrize("data", DTC_VALUES)
def test_other_systems_have_their_authors_values_at_the_published_scale(data: str) -> None:
    found = published("dtc", data)
    stage, method = found.discovery, found.method
    assert isinstance(method, DTCSettings)
    values, rates = DTC_VALUES[data]
    given = method.variant, method.warmup_epochs, method.interval, method.consistency, method.rampup
    assert (*given, stage.epochs, stage.weight_decay) == values
    assert {epoch: learning_rate(stage, epoch) for epoch in rates} == pytest.approx(rates)
    assert (stage.optimizer, stage.momentum, stage.unlabeled_batch) == ("sgd", 0.9, 128)
    for name in ("kcl", "mcl"):
        found = published(name, data)
        assert isinstance(found.method, PairwiseSettings)
        for part, stage in (("similarity", found.method.similarity), ("discovery", found.discovery)):
            size = (stage.batch, stage.classes_per_batch) if part == "similarity" else (stage.unlabeled_batch,)  # type: ignore[attr-defined]
            given = stage.optimizer, stage.lr, stage.epochs, stage.milestones, stage.decay
            assert (*given, *size) == KCL_AND_MCL[part]
            assert stage.weight_decay == 0
    joint = published("rs+", data)
    assert isinstance(joint.method, RankingSettings)
    stage = joint.discovery
    ramp = joint.method.consistency, joint.method.rampup
    other = {"cifar10": (5, 50), "imagenet": (10, 50)}
    if data == "cifar100":
        assert (stage.batch, stage.epochs, stage.milestones, *ramp) == (256, 400, (340,), 25, 300)
    else:
        assert ramp == other[data]


@pytest.mark.parametrize("data", DTC_VALUES)
def test_later_systems_at_the_published_scale(data: str) -> None:
    stage, shared = published("uno", data).discovery, published("ncl-hng", data).discovery
    assert (stage.optimizer, stage.lr, stage.momentum, stage.weight_decay) == ("sgd", 0.4, 0.9, 1.5e-4)
    assert learning_rate(stage, 5) == pytest.approx(0.2)  # warm-up over ten epochs, then a cosine
    assert learning_rate(stage, 10) == pytest.approx(0.4)
    assert learning_rate(stage, 10 + (stage.epochs - 10) / 2) == pytest.approx(0.2)
    sizes = stage.batch, stage.epochs, stage.labeled_per_batch
    assert sizes == ((512, 90, 384) if data == "imagenet" else (512, 200, None))
    assert replace(published("simgcd", data).discovery, method="ncl-hng") == shared
