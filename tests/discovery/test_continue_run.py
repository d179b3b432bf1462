"""A discovery that goes on from a review: named clusters are known classes now."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs
from rich.console import Console

from unveil.discovery.continue_run import continue_run, from_review
from unveil.discovery.run import run_own_data
from unveil.errors import UnveilError
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
        overrides=["data.n_novel=3", "rehearsals=0"],
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
    name = read_items(run)[first]["id"]
    assert given.rejected == {name: "Ünbekannt"}
    record = continue_run(run, out=tmp_path / "second", stages=tmp_path / "store")
    assert record["n_novel"] == 2
    assert set(record["known"]) == {"0", "1", "2", "Ünbekannt"}
    items = read_items(tmp_path / "second")
    assert sum(item["label"] == "Ünbekannt" for item in items) == 39
    assert next(item for item in items if item["id"] == name)["label"] != "Ünbekannt"
    say(run, ("name", {"cluster": 3, "text": "Other"}))
    with pytest.raises(UnveilError, match="other data or settings"):
        continue_run(run, out=tmp_path / "second", stages=tmp_path / "store")  # the review has changed since


def test_from_the_command_line(run: Path, unveil: Call, tmp_path: Path) -> None:
    result = unveil("discover", "--continue", "run")
    assert "has no review" in result.stderr
    say(run, ("accept", {"cluster": 3}))
    assert "no cluster of run has a name" in unveil("discover", "--continue", "run").stderr
    say(run, ("name", {"cluster": 3, "text": "a"}), ("known", {"cluster": 4, "class": 0}))
    result = unveil("discover", "--continue", "run")
    assert result.returncode == 0, result.stderr
    assert "1 novel class of 40 items" in result.stdout
    assert (tmp_path / "run-continued" / "items.csv").is_file()
    assert "not both" in unveil("discover", "known.npz", "new.npy", "--continue", "run").stderr
    assert "give KNOWN and NEW" in unveil("discover", "known.npz").stderr
