"""Runs of recipes can be looked at as discoveries can."""

import csv
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from unveil.discovery.unfold import viewable

from unveil import files
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.pages.report.truth import compare
from unveil.runs.reader import load

Call = Callable[..., subprocess.CompletedProcess[str]]


def test_a_recipe_is_reported_and_exported(unveil: Call, tiny: list[str], tmp_path: Path) -> None:
    result = unveil("run", "digits", *tiny, "--out", "mine")
    assert result.returncode == 0, result.stderr
    record = files.read_json(tmp_path / "mine" / "record.json")
    result = unveil("report", "mine", "--without-map")
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "mine" / "look" / "report.html").read_text()
    assert "<title>mine" in page
    assert "neighbour purity" in page
    assert "discovery.lr" in page

    look = load(tmp_path / "mine" / "look")
    found = compare(look)
    assert found is not None
    assert found.scores["acc"] == pytest.approx(record["metrics"]["acc"])
    assert found.kmeans == pytest.approx(record["kmeans"]["acc"])
    assert look.pictures is not None
    np.testing.assert_array_equal(
        look.features[look.new], np.load(tmp_path / "mine" / "features.npy")
    )  # known items come first
    assert len(look.features) == len(look.ids) == len(look.pictures)
    mean = look.features[~look.new].mean()
    assert np.isfinite(mean)
    assert mean != 0

    result = unveil("export", "mine", "--format", "csv", "--out", "labels.csv")
    assert result.returncode == 0, result.stderr
    with (tmp_path / "labels.csv").open() as file:
        labels = {row["id"]: row["label"] for row in csv.DictReader(file)}
    with (tmp_path / "mine" / "look" / "truth.csv").open() as file:
        truth = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert truth.keys() == labels.keys()
    accuracy = clustering_accuracy(list(truth.values()), [labels[name] for name in truth])
    assert accuracy == pytest.approx(record["metrics"]["acc"])

    (tmp_path / "mine" / "record.json").unlink()
    shutil.rmtree(tmp_path / "mine" / "look")
    with pytest.raises(UnveilError, match="not finished"):
        viewable(tmp_path / "mine")


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    assert viewable(tmp_path) == tmp_path
    assert list(tmp_path.iterdir()) == []
