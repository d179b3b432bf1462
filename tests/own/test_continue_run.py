"""A discovery that goes on from a review: named clusters are known classes now."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs
from rich.console import Console

from unveil.errors import UnveilError
from unveil.own.continue_run import continue_run, from_review
from unveil.own.predict_run import predict_run
from unveil.own.run import run_own_data
from unveil.runs.reader import read_items

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    x, y = blobs(6, 40)
    np.savez(tmp_path / "known.npz", X=x[y < 3], y=y[y < 3])
    np.save(tmp_path / "new.npy", x[y >= 3])
    run_own_data(
        tmp_path / "known.npz",
        tmp_path / "new.npy",
        out=tmp_path / "run",
        stages=tmp_path / "store",
        changes={"data.n_novel": 3, "rehearsals": 0},
        console=Console(quiet=True),
    )
    return tmp_path / "run"


def say(run: Path, *actions: tuple[str, dict[str, object]]) -> None:
    entries = [
        {"number": number, "time": "2026-01-01T00:00:00+00:00", "kind": kind, "data": data}
        for number, (kind, data) in enumerate(actions, start=1)
    ]
    (run / "review.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def test_named_clusters_are_known_and_rejected_items_stay_out(run: Path, tmp_path: Path) -> None:
    first = next(row for row, item in enumerate(read_items(run)) if item["label"] == "novel-0")
    say(run, ("name", {"cluster": 3, "text": "Ünbekannt"}), ("reject", {"rows": [first]}))
    given, unnamed = from_review(run)
    assert unnamed == 2
    assert len(given.labels) == 39
    assert given.unnamed == ()
    assert sorted(set(given.clusters.values())) == ["novel-1", "novel-2"]
    name = read_items(run)[first]["id"]
    assert given.rejected == {name: "Ünbekannt"}
    record = continue_run(run, out=tmp_path / "second", stages=tmp_path / "store")
    assert record["n_novel"] == 2
    assert set(record["known"]) == {"0", "1", "2", "Ünbekannt"}
    items = read_items(tmp_path / "second")
    assert sum(item["label"] == "Ünbekannt" for item in items) == 39
    before = {item["id"]: item["confidence"] for item in read_items(run)}
    named = [item for item in items if item["label"] == "Ünbekannt" and item["id"] in given.labels]
    assert [float(item["confidence"]) for item in named] != [1.0] * len(named)  # a name does not make items right
    assert np.mean([abs(float(item["confidence"]) - float(before[item["id"]])) < 0.2 for item in named]) > 0.9
    assert next(item for item in items if item["id"] == name)["label"] != "Ünbekannt"
    say(run, ("name", {"cluster": 3, "text": "Other"}))
    with pytest.raises(UnveilError, match="other data or settings"):
        continue_run(run, out=tmp_path / "second", stages=tmp_path / "store")  # the review has changed since


def test_merges_splits_and_noes_hold_and_clusters_keep_their_names(run: Path, tmp_path: Path) -> None:
    items = read_items(run)
    rows = {name: [row for row, item in enumerate(items) if item["label"] == name] for name in ("novel-0", "novel-2")}
    part = rows["novel-0"][:15]
    say(
        run,
        ("split", {"cluster": 3, "parts": [rows["novel-0"][15:], part]}),
        ("move", {"rows": rows["novel-2"][:1], "to": 6}),
        ("no", {"question": "merge", "clusters": [3, 6]}),
    )
    given, left = from_review(run)
    assert left == 2
    assert given.unnamed == ("novel-0", "novel-3")
    record = continue_run(run, out=tmp_path / "second", stages=tmp_path / "store")
    assert record["known"] == ["0", "1", "2"]
    assert sorted(record["novel"]) == ["novel-0", "novel-1", "novel-2", "novel-3"]  # clusters can be edited still
    assert record["summary"]["result"].startswith("4 novel classes")
    found = {item["id"]: item for item in read_items(tmp_path / "second")}
    moved = items[rows["novel-2"][0]]["id"]
    assert found[moved]["label"] == "novel-3"
    for name in ("novel-1", "novel-2"):  # nobody said anything about these
        before = {item["id"] for item in items if item["label"] == name} - {moved}
        assert {found[one]["label"] for one in before} == {name}
    assert {item["kind"] for item in found.values() if item["label"] == "novel-0"} == {"novel"}
    second = tmp_path / "second"
    say(second, ("merge", {"clusters": [3, 4, 5, 6]}))  # everything is decided: there is nothing left to discover
    record = continue_run(second, out=tmp_path / "third", stages=tmp_path / "store")
    assert record["novel"] == ["novel-0"]
    assert sum(item["label"] == "novel-0" for item in read_items(tmp_path / "third")) == 120
    lines, _ = predict_run(tmp_path / "third", tmp_path / "new.npy")
    assert {line[1:3] for line in lines} == {("novel-0", "novel")}


def test_from_the_command_line(run: Path, unveil: Call, tmp_path: Path) -> None:
    result = unveil("discover", "--continue", "run")
    assert "has no review" in result.stderr
    say(run, ("accept", {"cluster": 3}), ("undo", {}))
    assert "says nothing about its clusters" in unveil("discover", "--continue", "run").stderr
    say(run, ("name", {"cluster": 3, "text": "a"}), ("known", {"cluster": 4, "class": 0}))
    result = unveil("discover", "--continue", "run")
    assert result.returncode == 0, result.stderr
    assert "1 novel class of 40 items" in result.stdout
    assert (tmp_path / "run-continued" / "items.csv").is_file()
    assert "not both" in unveil("discover", "known.npz", "new.npy", "--continue", "run").stderr
    assert "give KNOWN and NEW" in unveil("discover", "known.npz").stderr
