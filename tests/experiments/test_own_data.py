"""The comparison on own data: tasks, records and tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import own_data, own_records, own_tables, peers
from benchmarks.own_tasks import TASKS, TaskSpec, draw, with_known_classes

pytest.importorskip("sklearn")
SPEC = TaskSpec("blobs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pool")
    truth = np.repeat(np.arange(8), 60)
    centers = 6 * np.random.default_rng(0).normal(size=(8, 5))
    noise = np.random.default_rng(1).normal(size=(480, 5))
    np.savez(path / "blobs.npz", X=(centers[truth] + noise).astype(np.float32), y=truth)
    return path


@pytest.mark.parametrize(("few_known", "known"), [(False, 4), (True, 4)])
def test_rows_are_drawn_once_and_novel_classes_are_hidden(few_known: bool, known: int, folder: Path) -> None:
    spec = TaskSpec("blobs", few_known=few_known)
    drawn, again = draw(spec, folder), draw(spec, folder)
    assert np.array_equal(drawn.x, again.x)
    assert (len(drawn.x), int(drawn.hidden.sum()), drawn.n_novel) == (480, 240, 4)
    assert len(np.unique(drawn.y[~drawn.hidden])) == known
    assert not set(drawn.truth[drawn.hidden]) & set(drawn.y[~drawn.hidden])
    assert np.array_equal(drawn.truth[~drawn.hidden], drawn.y[~drawn.hidden])


@pytest.mark.parametrize(("sizes", "expected"), [("10 to 1", [60, 60, 6, 6]), ("long tail", [60, 27, 12, 6])])
def test_unbalanced_forms(sizes: Any, expected: list[int], folder: Path) -> None:
    drawn = draw(TaskSpec("blobs", sizes=sizes), folder)
    assert sorted(np.unique(drawn.truth[drawn.hidden], return_counts=True)[1], reverse=True) == expected


def test_the_pool_has_many_tasks_of_every_kind() -> None:
    specs = list(TASKS.values())
    assert len(TASKS) == 76
    assert len({spec.data for spec in specs}) == 32
    assert {spec.kind for spec in specs} == {"embeddings", "pixels", "table"}
    assert sum(not spec.balanced for spec in specs) == 12
    assert all(own_records.is_unbalanced(name) != spec.balanced for name, spec in TASKS.items())


def test_confidence_is_scored_by_its_order_and_its_size() -> None:
    correct, confidence = np.array([True, True, False, False]), np.array([0.95, 0.95, 0.05, 0.05])
    scores = own_data.of_confidence(correct, confidence)
    assert scores["auroc"] == 1.0
    assert scores["calibration_error"] == pytest.approx(0.05)
    assert own_data.of_confidence(correct[:2], confidence[:2])["auroc"] is None


def test_known_classes_inside_keep_the_number_of_new_ones(folder: Path) -> None:
    drawn = draw(SPEC, folder)
    mixed = with_known_classes(drawn, 0)
    assert mixed.n_novel == 4
    assert 0.4 < (mixed.hidden & ~drawn.hidden).sum() / 240 < 0.6


def test_peers_for_known_classes_inside_find_separate_blobs(folder: Path) -> None:
    drawn = draw(SPEC, folder)
    mixed = with_known_classes(drawn, 0)
    place = np.argsort(np.argsort(np.where(np.isin(np.arange(8), drawn.y), 0, 8) + np.arange(8)))
    for cluster in peers.GENERAL_PEERS.values():
        labels = cluster(mixed.x, mixed.y, 4, 0)
        assert own_data.open_accuracy(place[mixed.truth[mixed.hidden]], labels, 4)["all"] > 0.95


@pytest.mark.parametrize("kind", ["given", "auto", "general"])
def test_a_record_of_unveil(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "blobs", SPEC)
    record = json.loads(json.dumps(own_data.measure("blobs", kind, 0, folder)))
    assert record["classes"] == {"known": 4, "novel": 4}
    found = record["given"] if kind == "general" else record
    assert found["all" if kind == "general" else "acc"] > 0.95
    assert found["seconds"] > 0
    assert found["peak_mb"] >= 0


def records(folder: Path) -> own_records.Records:
    """Two tasks, two seeds: unveil is ahead on digits, and behind on letters."""
    common = {"rows": {"labeled": 3000, "unlabeled": 3000}, "classes": {"known": 5, "novel": 5}}
    cost = {"seconds": 1.0, "peak_mb": 10}
    for task, ours, peer in (("digits", 0.9, 0.8), ("letter", 0.6, 0.7)):
        for seed in (0, 1):
            scores = {name: {"acc": peer, "clusters": 4, **cost} for name in peers.PEERS}
            told = {"accuracy": ours - 0.05, "low": ours - 0.1, "high": ours - 0.01 + 0.02 * seed}
            fit = {
                "acc": ours + 0.01 * seed,
                "clusters": 5 + seed,
                "forecast": told,
                "auroc": 0.75,
                "calibration_error": 0.04,
                **cost,
            }
            for kind, more in (("peers", {"scores": scores}), ("given", fit), ("auto", fit)):
                record = {"task": task, "kind": kind, "seed": seed, **common, **more}
                path = folder / task / f"{kind}-seed{seed}.json"
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(record))
    return own_records.read(folder)


def test_tables_of_every_task(tmp_path: Path) -> None:
    read = records(tmp_path)
    given = own_tables.given(read)
    assert "| digits | 5+5 | 90.5 | 85 (80–90) | **80.0** |" in given
    assert given.index("| letter |") < given.index("| digits |")  # the worst first
    assert "| mean, balanced |  | 75.5 |  | 75.0 |" in given
    assert "| digits | 5 | 5–6 | 4 | 90.5 | 85 (80–90) | 80.0 | 80.0 |" in own_tables.auto(read)
    assert "| number of classes given | 2 of 4 | 5.5 points | 10 points |" in own_tables.forecasts(read)
    assert own_tables.general(read) == own_tables.NOTHING
    summary = own_tables.summary(read)
    assert "| mean accuracy | 75.5 % |" in summary
    assert "| more than 4 points behind k-means or UMAP + k-means | 1 of 2 tasks |" in summary
    assert "| confidence: right before wrong items (AUROC) | 0.75 |" in summary
    assert "| pixels | **90.5** | 80.0 | 80.0 | 80.0 | 1 of 1 |" in own_tables.versus(read)
