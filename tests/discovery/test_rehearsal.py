"""Rehearsals on hidden known classes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs
from rich.console import Console

from unveil import recipe, rng
from unveil.data.items import Items
from unveil.data.task import Task
from unveil.discovery.candidates import KMEANS, candidates
from unveil.discovery.fit import Fitted, NetworkLearner
from unveil.discovery.forecast import Forecast
from unveil.discovery.rehearsal import hide, rehearse
from unveil.storage import Storage

QUICK = ["discovery.steps=10", "rehearsals=2", "machine.device=cpu"]


def task(classes: int, each: int = 30, apart: float = 6.0, known_in_unlabeled: bool = False) -> Task:
    x, y = blobs(classes, each, apart=apart)
    known = tuple(range(classes))
    inside = known_in_unlabeled
    return Task(name="blobs", items=Items.of(x), labels=y, known=known, n_novel=3, known_in_unlabeled=inside)


def run(given: Task, *overrides: str, storage: Storage | None = None) -> Forecast:
    settings = recipe.load("trained-vectors", recipe.parse_set([*QUICK, *overrides]))
    return rehearse(given, settings, candidates(settings)[:2], storage=storage, console=Console(quiet=True))


def test_easy_classes_are_trusted_and_hard_ones_are_not() -> None:
    easy = run(task(8))
    hard = run(task(8, apart=0.3))
    assert easy.accuracy is not None
    assert easy.accuracy > 0.95
    assert easy.high == 1.0
    assert hard.accuracy is not None
    assert hard.low is not None
    assert hard.high is not None
    assert hard.accuracy < 0.75
    assert hard.low < hard.accuracy < hard.high
    assert len(easy.rehearsals) == 2
    assert "from 2 rehearsals" in easy.sentence()


def test_kmeans_is_taken_only_where_it_does_clearly_better(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(task(8)).candidate == "ncl-hng"  # both find everything

    fit = NetworkLearner.fit

    def worse(*args: object) -> Fitted:
        fitted = fit(*args)  # type: ignore[arg-type]
        return replace(fitted, clusters=np.zeros_like(fitted.clusters))

    monkeypatch.setattr(NetworkLearner, "fit", worse)
    assert run(task(8)).candidate == KMEANS.name


@pytest.mark.parametrize("given", [task(3), task(8, each=4)])
def test_too_little_to_rehearse_with(given: Task) -> None:
    forecast = run(given)
    assert forecast.accuracy is None
    assert forecast.candidate == "ncl-hng"
    assert "a rehearsal needs 4 known classes and 40 labeled items, and there are" in forecast.sentence()
    np.testing.assert_array_equal(forecast.calibrated(np.array([0.3], dtype=np.float32)), [np.float32(0.3)])


@pytest.mark.parametrize("classes", [2, 8])
def test_no_rehearsals_are_explained_as_asked_for(classes: int) -> None:
    sentence = run(task(classes), "rehearsals=0").sentence()
    assert sentence == "The accuracy cannot be forecast: no rehearsals were asked for."


def test_what_is_stored_gives_the_same_forecast(tmp_path: Path) -> None:
    stored = run(task(6), "rehearsals=1", storage=Storage(tmp_path / "stages", tmp_path / "run"))
    assert stored == run(task(6), "rehearsals=1")
    assert not (tmp_path / "stages").exists()  # trainings of rehearsals stay inside the run
    assert list((tmp_path / "run" / "work").rglob("model.safetensors"))


def test_hidden_classes_are_unlabeled_and_the_rest_is_not() -> None:
    made, truth = hide(task(9), rng.numpy(0, "test"))
    assert made.n_novel == 3  # as many as there are novel ones
    assert len(made.known) == 6
    assert len(truth) == (made.labels == -1).sum() == 90
    assert set(np.unique(truth)) == {6, 7, 8}
    assert hide(replace(task(9), n_novel=20), rng.numpy(0, "test"))[0].n_novel == 5  # some have to stay known
    made, truth = hide(task(9, known_in_unlabeled=True), rng.numpy(0, "test"))
    assert len(truth) > 130
    assert made.n_clusters == 9
    assert len(np.unique(made.labels[made.labels >= 0])) == 6


def test_a_rehearsal_keeps_items_labels_and_names_together() -> None:
    given = replace(task(6, each=5), known=("a", "b", "c", "d", "e", "f"))
    made, truth = hide(given, rng.numpy(1, "test"))
    rows = {vector.tobytes(): row for row, vector in enumerate(given.items.array)}
    origin = [rows[vector.tobytes()] for vector in made.items.array]
    for row, label in zip(origin, made.labels, strict=True):
        assert label == -1 or made.known[label] == given.known[given.labels[row]]
    names = [given.known[given.labels[row]] for row, label in zip(origin, made.labels, strict=True) if label == -1]
    assert len(set(zip(names, truth.tolist(), strict=True))) == made.n_novel
    assert not set(names) & set(made.known)
