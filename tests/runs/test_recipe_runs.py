"""Runs of recipes are reported and exported as those of own data are."""

import csv
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY
from rich.console import Console

from unveil import files, recipe
from unveil.metrics import clustering_accuracy
from unveil.own.run import run_recipe
from unveil.pages.report.page import write
from unveil.pages.report.truth import compare
from unveil.runs.reader import load

Call = Callable[..., subprocess.CompletedProcess[str]]


def test_a_recipe_is_reported_and_exported(unveil: Call, tiny: list[str], tmp_path: Path) -> None:
    result = unveil("run", "digits", *tiny, "--out", "mine")
    assert result.returncode == 0, result.stderr
    record = files.read_json(tmp_path / "mine" / "record.json")
    assert record["source"] == {"kind": "data set", "name": "digits"}
    result = unveil("report", "mine", "--without-map")
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "mine" / "report.html").read_text()
    assert "<title>mine" in page
    assert "neighbor purity" in page
    assert "discovery.lr" in page
    assert "k-means on features of unit length" in page

    run = load(tmp_path / "mine")
    comparison = compare(run)
    assert comparison is not None
    assert comparison.scores["acc"] == pytest.approx(record["metrics"]["acc"])
    assert comparison.kmeans == pytest.approx(record["kmeans"]["acc"])
    assert run.pictures is not None
    assert len(run.features) == len(run.ids) == len(run.pictures)
    assert run.new.tolist() == sorted(run.new.tolist())  # known items come first
    assert [run.classes[label] for label in run.labels[~run.new]] == [text for text in run.given if text]
    mean = run.features[~run.new].mean()
    assert np.isfinite(mean)
    assert mean != 0

    result = unveil("export", "mine", "--format", "csv", "--out", "labels.csv")
    assert result.returncode == 0, result.stderr
    with (tmp_path / "labels.csv").open() as file:
        labels = {row["id"]: row["label"] for row in csv.DictReader(file)}
    with (tmp_path / "mine" / "truth.csv").open() as file:
        truth = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert truth.keys() == labels.keys()
    accuracy = clustering_accuracy(list(truth.values()), [labels[name] for name in truth])
    assert accuracy == pytest.approx(record["metrics"]["acc"])

    (tmp_path / "mine" / "record.json").unlink()
    assert "not finished" in unveil("report", "mine").stderr


def test_a_report_does_not_load_the_data_set(tmp_path: Path) -> None:
    draw, y = np.random.default_rng(0), np.repeat(np.arange(5), 20)
    data = tmp_path / "vectors.npz"
    np.savez(data, X=(8 * draw.normal(size=(5, 6))[y] + draw.normal(size=(100, 6))).astype(np.float32), y=y)
    vectors = [f"data.name={data}", "data.known=2", "encoder.name=mlp", "rotation.epochs=0", "augment.noise=0.5"]
    settings = recipe.load("digits", recipe.parse_set([*TINY, *vectors]))
    run_recipe(settings, out=tmp_path / "run", stages=tmp_path / "store", console=Console(quiet=True))
    data.unlink()
    page = write(tmp_path / "run", with_map=False).read_text()
    assert "Most unusual columns" in page
    assert load(tmp_path / "run").inputs is not None
