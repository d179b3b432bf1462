"""Every system of the paper's Table 4 and every variant of hard negatives, for a few steps on digits."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import TINY
from rich.console import Console

from unveil import recipe
from unveil.methods.catalog import names
from unveil.own.directories import default_folder
from unveil.own.run import run_recipe

QUICK = ("rotation.epochs=1", "method.similarity.epochs=1", "discovery.epochs=2", "method.ncl_start=0")
DTC = ("discovery.method=dtc", "method.warmup_epochs=0", "method.interval=1", "discovery.epochs=3")
HNG = ("discovery.method=ncl-hng", "method.scl_start=0", "method.hng_start=0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all, so that they share their pre-training as people's runs do."""
    return tmp_path_factory.mktemp("systems")


def go(folder: Path, *overrides: str) -> dict[str, Any]:
    settings = recipe.load("digits", recipe.parse_set(overrides), defaults=recipe.parse_set([*TINY, *QUICK]))
    out = folder / default_folder(settings, changed=True)
    return run_recipe(settings, out=out, stages=folder / "store", console=Console(quiet=True))


@pytest.mark.parametrize("method", names())
def test_every_system_runs_and_is_scored(folder: Path, method: str) -> None:
    record = go(folder, f"discovery.method={method}")
    metrics = record["metrics"]
    assert record["method"] == method
    for name in ("acc", "nmi", "test_acc", "known_acc", "open_all", "open_old", "open_new"):
        assert 0 <= metrics[name] <= 1, name
    assert metrics["acc"] > 0.2  # five classes: better than one cluster
    stages = [json.loads(path.read_text())["stage"] for path in (folder / "store").glob("*/stage.json")]
    assert stages.count("rotation") == 1  # shared by all
    assert stages.count("similarity") == (1 if "similarity" in stages else 0)


@pytest.mark.parametrize("method", ["kcl", "mcl"])
def test_learned_pairs_are_compared_with_the_truth(folder: Path, method: str) -> None:
    metrics = go(folder, f"discovery.method={method}", "method.similarity.epochs=20")["metrics"]
    assert metrics["pair_precision"] > 0.3  # of two random digits of five classes one pair in five is of one class
    assert 0.02 < metrics["pair_density"] < 0.6


@pytest.mark.parametrize("variant", ["baseline", "pi", "te", "tep"])
def test_every_variant_of_deep_transfer_clustering_runs(folder: Path, variant: str) -> None:
    record = go(folder, *DTC, f"method.variant={variant}")
    assert record["metrics"]["acc"] > 0.2
    assert ("consistency" in record["metrics"]) == (variant in ("pi", "te"))


@pytest.mark.parametrize("variant", ["v1", "v2", "v3", "v4", "v5", "v6"])
def test_every_variant_of_hard_negatives_runs(folder: Path, variant: str) -> None:
    record = go(folder, *HNG, f"method.variant={variant}")
    assert record["metrics"]["acc"] > 0.2
    assert record["metrics"]["ncl"] > 0
