"""Commands that print tables print the same as JSON, and nothing beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blobs import blobs

from unveil.cli.main import app


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    app([*words, "--json"], exit_on_error=False, result_action="return_value")
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def halves(tmp_path: Path) -> tuple[str, str]:
    """Six classes, the first four of them labeled."""
    x, y = blobs(6, 25)
    np.savez(tmp_path / "known.npz", X=x[y < 4], y=y[y < 4])
    np.savez(tmp_path / "new.npz", X=x[y >= 4])
    return str(tmp_path / "known.npz"), str(tmp_path / "new.npz")


def test_data_sets(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = printed(capsys, "data", "list", "--root", str(tmp_path))
    assert {row["name"]: row["here"] for row in rows}["digits"] is True
    assert {row["name"]: row["here"] for row in rows}["cifar10"] is False


def test_experiments_of_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert "table4" in {row["name"] for row in printed(capsys, "paper")}


def test_number_of_classes(capsys: pytest.CaptureFixture[str], halves: tuple[str, str], tmp_path: Path) -> None:
    estimate = printed(capsys, "classes", *halves, "--store", str(tmp_path))
    assert estimate["low"] <= estimate["number"] <= estimate["high"]
    assert estimate["sentence"].startswith(f"about {estimate['number']} novel class")
    assert len(estimate["curves"]) >= 3


def test_forecast(capsys: pytest.CaptureFixture[str], halves: tuple[str, str], tmp_path: Path) -> None:
    forecast = printed(capsys, "trust", halves[0], "--rehearsals", "1", "--n-novel", "2", "--store", str(tmp_path))
    assert 0 <= forecast["low"] <= forecast["accuracy"] <= forecast["high"] <= 1
    assert len(forecast["rehearsals"]) == 1


def test_demo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from unveil.experiments import demo

    def compare(seed: int, out: Path | None, console: Any) -> list[demo.Row]:
        console.print("a table")
        return [demo.Row("k-means", 0.9, 1.0)]

    monkeypatch.setattr(demo, "compare", compare)
    assert printed(capsys, "demo") == [{"name": "k-means", "accuracy": 0.9, "seconds": 1.0}]


def test_shells_complete_commands_and_options(tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = app.generate_completion(shell=shell)  # type: ignore[arg-type]
        for word in ("discover", "doctor", "n-novel", "known-in-unlabeled"):
            assert word in script, (shell, word)
