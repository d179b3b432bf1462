"""The comparison on own data: tasks, records and tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import own_data, own_records, own_tables, peers
from benchmarks.own_tasks import TASKS, TaskSpec, draw, last, with_known_classes

from unveil.data.items import Items

pytest.importorskip("sklearn")


def blobs() -> tuple[Items, np.ndarray]:
    truth = np.repeat(np.arange(6), 60)
    centers = 6 * np.random.default_rng(0).normal(size=(6, 5))
    noise = np.random.default_rng(1).normal(size=(360, 5))
    return Items.of((centers[truth] + noise).astype(np.float32)), truth


SPEC = TaskSpec(blobs, "table", last(2))


def test_rows_are_drawn_once_and_novel_classes_are_hidden() -> None:
    drawn, again = draw(SPEC, 100), draw(SPEC, 100)
    assert np.array_equal(drawn.x, again.x)
    assert (len(drawn.x), int(drawn.hidden.sum()), drawn.n_novel) == (200, 100, 2)
    assert set(drawn.truth[drawn.hidden]) == {4, 5}
    assert set(drawn.y[~drawn.hidden]) == {0, 1, 2, 3}


@pytest.mark.parametrize(("sizes", "expected"), [("10 to 1", [60, 6]), ("long tail", [60, 6])])
def test_unbalanced_forms(sizes: Any, expected: list[int]) -> None:
    drawn = draw(TaskSpec(blobs, "table", last(2), sizes=sizes), 100)
    assert sorted(np.unique(drawn.truth[drawn.hidden], return_counts=True)[1], reverse=True) == expected


def test_known_classes_inside_keep_the_number_of_new_ones() -> None:
    mixed = with_known_classes(draw(SPEC, 200), 0)
    assert mixed.n_novel == 2
    assert 0.4 < (mixed.truth[mixed.hidden] < 4).sum() / 200 < 0.6


def test_peers_for_known_classes_inside_find_separate_blobs() -> None:
    mixed = with_known_classes(draw(SPEC, 240), 0)
    for cluster in peers.GENERAL_PEERS.values():
        labels = cluster(mixed.x, mixed.y, 2, 0)
        assert own_data.open_accuracy(mixed.truth[mixed.hidden], labels, 4)["all"] > 0.95


@pytest.mark.parametrize("kind", ["given", "auto", "general"])
def test_a_record_of_unveil(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "blobs", SPEC)
    record = json.loads(json.dumps(own_data.measure("blobs", kind, 0, 240)))
    assert record["classes"] == {"known": 4, "novel": 2}
    found = record["given"] if kind == "general" else record
    assert found["all" if kind == "general" else "acc"] > 0.95
    assert found["seconds"] > 0
    assert found["peak_mb"] >= 0


def records(folder: Path) -> own_records.Records:
    """Two tasks, two seeds: unveil is ahead on the first, and behind on the second."""
    common = {"held_out": False, "rows": {"labeled": 3000, "unlabeled": 3000}, "classes": {"known": 5, "novel": 5}}
    cost = {"seconds": 1.0, "peak_mb": 10}
    for task, ours, peer in (("first", 0.9, 0.8), ("second", 0.6, 0.7)):
        for seed in (0, 1):
            scores = {name: {"acc": peer, "clusters": 4, **cost} for name in peers.PEERS}
            told = {"accuracy": ours - 0.05, "low": ours - 0.1, "high": ours - 0.01 + 0.02 * seed}
            fit = {"acc": ours + 0.01 * seed, "clusters": 5 + seed, "forecast": told, "forecast_sentence": "", **cost}
            for kind, more in (("peers", {"scores": scores}), ("given", fit), ("auto", fit)):
                record = {"task": task, "kind": kind, "seed": seed, **common, **more}
                path = folder / task / f"{kind}-seed{seed}.json"
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(record))
    return own_records.read(folder)


def test_tables_of_every_task(tmp_path: Path) -> None:
    read = records(tmp_path)
    given = own_tables.given(read)
    assert "| first | 5 + 5 | 90.5 ± 0.5 | 85 (80–90) | **80.0** |" in given
    assert "| mean, balanced |  | 75.5 |  | 75.0 |" in given
    assert "| first | 5 | 5–6 | 4 | 90.5 | 85 (80–90) | 80.0 | 80.0 |" in own_tables.auto(read)
    assert "| number of classes given | 2 of 4 | 5.5 points |" in own_tables.forecasts(read)
    assert own_tables.general(read) == own_tables.NOTHING
