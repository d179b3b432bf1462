"""Which tasks share a stored stage, and the batches of methods that see unlabeled items alone."""

import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import TINY
from rich.console import Console
from safetensors.torch import load_file

from unveil import recipe
from unveil.data.items import Items
from unveil.data.task import Task
from unveil.methods.catalog import make_method
from unveil.methods.method import Context
from unveil.own.run import run_recipe
from unveil.training.stages import _discovery_loader
from unveil.training.training import Training

WHOLE = ["rotation.epochs=0", "supervised.epochs=1", "supervised.train=all", "discovery.epochs=1", "data.known=3"]
SUBSETS = ['data.novel=["5", "6"]', 'data.novel=["7", "8", "9"]']


def run(folder: Path, *overrides: str, name: str = "run") -> None:
    resolved = recipe.load("digits", recipe.parse_set([*WHOLE, *overrides]), defaults=recipe.parse_set(TINY))
    run_recipe(resolved, out=folder / name, stages=folder / "store", console=Console(quiet=True))


def stages(folder: Path) -> Counter[str]:
    """How many trainings of each stage are in the store."""
    return Counter(json.loads(path.read_text())["stage"] for path in (folder / "store").glob("*/stage.json"))


def test_tasks_with_the_same_labeled_images_share_what_is_trained_on_these_alone(tmp_path: Path) -> None:
    similarity = ("discovery.method=kcl", "method.similarity.epochs=1", "method.similarity.batch=20")
    for number, subset in enumerate(SUBSETS):
        run(tmp_path, subset, *similarity, name=str(number))
    assert stages(tmp_path) == {"supervised": 1, "similarity": 1}
    run(tmp_path / "alone", SUBSETS[1], *similarity)  # what it would have trained by itself
    for stage in (tmp_path / "alone" / "store").glob("*/model.safetensors"):
        shared = load_file(tmp_path / "store" / stage.relative_to(tmp_path / "alone" / "store"))
        assert all(bool((value == shared[name]).all()) for name, value in load_file(stage).items())


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["rotation.epochs=1"], {"rotation": 2, "supervised": 2}),  # rotations are of all images
        (["data.encoder=pixels", "encoder.name=mlp"], {"supervised": 2}),  # vectors are scaled by all items
    ],
)
def test_what_depends_on_the_unlabeled_items_is_not_shared(
    overrides: list[str], expected: dict[str, int], tmp_path: Path
) -> None:
    for number, subset in enumerate(SUBSETS):
        run(tmp_path, subset, *overrides, name=str(number))
    assert stages(tmp_path) == expected


def test_other_labeled_items_or_labels_are_another_stage(tmp_path: Path) -> None:
    run(tmp_path, SUBSETS[0], name="a")
    run(tmp_path, SUBSETS[0], "data.per_class=20", name="b")
    run(tmp_path, SUBSETS[0], 'data.known=["1", "0", "2"]', name="c")
    assert stages(tmp_path) == {"supervised": 3}


def test_a_pinned_precision_uses_no_stage_of_another(tmp_path: Path) -> None:
    for number, precision in enumerate(["bfloat16", "float32", "float32", "auto"]):
        run(tmp_path, SUBSETS[0], f"machine.precision={precision}", name=str(number))
    assert stages(tmp_path) == {"supervised": 3}


def training(*overrides: str) -> Training:
    images = np.random.default_rng(0).integers(0, 255, (500, 8, 8, 1), dtype=np.uint8)
    labels = np.where(np.arange(500) < 400, np.arange(500) % 3, -1)
    task = Task(name="x", items=Items.of(images), labels=labels, known=("a", "b", "c"), n_novel=4)
    return Training(
        recipe.load("digits", recipe.parse_set(overrides), defaults=recipe.parse_set([*TINY, "discovery.batch=50"])),
        task,
    )


def sizes(given: Training) -> list[int]:
    model = given.model
    context = Context(
        settings=given.settings.method, seed=0, labels=given.task.labels, features=lambda rows: model.known_head.weight
    )
    method = make_method(given.settings.discovery.method, model, context)
    batches = list(_discovery_loader(given, method).epoch(0))
    if method.unlabeled_only:
        assert all(batch.labeled == 0 for batch in batches)
        rows = np.concatenate([batch.rows.numpy() for batch in batches if batch.rows is not None])
        assert sorted(rows) == list(range(400, 500))
    return [len(batch.views[0]) for batch in batches]


def test_methods_on_unlabeled_items_may_have_batches_of_their_own() -> None:
    assert sizes(training("discovery.method=dtc")) == [10] * 10  # as many as with labeled items
    assert sizes(training("discovery.method=dtc", "discovery.unlabeled_batch=40")) == [40, 40, 20]
    assert sizes(training("discovery.method=ncl", "discovery.unlabeled_batch=40")) == [50] * 10
    several = training("discovery.method=dtc", "discovery.unlabeled_batch=40", "discovery.labeled_per_batch=30")
    assert sizes(several) == [40, 40, 20]
    steps = ("discovery.unlabeled_batch=50", "discovery.steps=40", "discovery.epochs=4")
    assert training("discovery.method=dtc", *steps).settings.discovery.passes == 5
    assert training("discovery.method=ncl", *steps).settings.discovery.passes == 1


@pytest.mark.parametrize("method", ["dtc", "mcl"])
def test_a_last_batch_of_one_row_is_no_error(method: str, tmp_path: Path) -> None:
    novel, similarity = "data.novel=2", ("method.similarity.epochs=1",) if method == "mcl" else ()
    vectors = ("data.encoder=pixels", "encoder.name=mlp", "data.per_class=20", novel)  # 40 unlabeled rows
    run(tmp_path, *vectors, f"discovery.method={method}", "discovery.unlabeled_batch=13", *similarity)
    assert (tmp_path / "run" / "predictions.csv").exists()


def test_adam_trains_a_run(tmp_path: Path) -> None:
    run(tmp_path, SUBSETS[0], "supervised.optimizer=adam", "supervised.lr=0.001", "discovery.optimizer=adam")
    assert (tmp_path / "run" / "predictions.csv").exists()
    (stage,) = (tmp_path / "store").glob("*/stage.json")
    assert json.loads(stage.read_text())["settings"]["optimizer"] == "adam"


def test_only_what_an_earlier_process_trained_is_said_to_be_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    for seed in range(3):
        resolved = recipe.load(
            "digits", recipe.parse_set([*WHOLE, SUBSETS[0], f"seed={seed}"]), defaults=recipe.parse_set(TINY)
        )
        if seed == 2:
            assert "reused" not in said.getvalue()
            monkeypatch.setattr("unveil.training.stored_stages._MADE", set())  # as in another process
        run_recipe(resolved, out=tmp_path / str(seed), stages=tmp_path / "store", console=Console(file=said, width=500))
    assert "supervised: reused from" in said.getvalue()
