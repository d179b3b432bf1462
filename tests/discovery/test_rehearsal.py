"""Rehearsals on hidden known classes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs
from rich.console import Console
from unveil.discovery.fitting import KMEANS, Problem, Trained, start_clusters, train, ways

from unveil import rng
from unveil.discovery.rehearsal import Rehearsal, _calibration, hide, rehearse
from unveil.metrics import in_matched_class


def problem(classes: int, each: int = 30, apart: float = 6.0, inside: bool = False) -> Problem:
    x, y = blobs(classes, each, apart=apart)
    return Problem(x=x, labels=y, n_novel=3, inside=inside)


def run(given: Problem, folder: Path, **options: object):  # type: ignore[no-untyped-def]
    settings = {"tries": 2, "seed": 0, "steps": 10, "console": Console(quiet=True), "device": "cpu", **options}
    return rehearse(given, ways("ncl-hng")[:2], folder=folder, **settings)  # type: ignore[arg-type]


def test_easy_classes_are_trusted_and_hard_ones_are_not(tmp_path: Path) -> None:
    easy = run(problem(8), tmp_path / "easy")
    hard = run(problem(8, apart=0.3), tmp_path / "hard")
    assert easy.accuracy > 0.95
    assert easy.high == 1.0
    assert hard.accuracy < 0.75
    assert hard.low < hard.accuracy < hard.high
    assert len(easy.rehearsals) == 2
    assert "2 times" in easy.sentence()
    assert easy.count_error == 0


def test_kmeans_is_taken_only_where_it_does_clearly_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(problem(8), tmp_path / "tie").way == "ncl-hng"  # both find everything

    def worse(*_: object, **__: object) -> Trained:
        return replace(trained, clusters=np.zeros_like(trained.clusters))

    given = problem(8)
    some = replace(given, labels=np.where(given.labels > 4, -1, given.labels))
    options = {"seed": 0, "steps": 1, "console": Console(quiet=True), "device": "cpu"}
    trained = train(some, ways("ncl-hng")[1], start_clusters(some, 0), folder=tmp_path / "one", **options)  # type: ignore[arg-type]
    monkeypatch.setattr("unveil.discovery.rehearsal.train", worse)
    assert run(problem(8), tmp_path / "worse").way == KMEANS.name


@pytest.mark.parametrize("given", [problem(3), problem(8, each=4)])
def test_too_little_to_rehearse_with(given: Problem, tmp_path: Path) -> None:
    found = run(given, tmp_path)
    assert found.accuracy is None
    assert found.way == "ncl-hng"
    assert "nothing was rehearsed" in found.sentence()
    np.testing.assert_array_equal(found.calibrated(np.array([0.3], dtype=np.float32)), [np.float32(0.3)])


def test_hidden_classes_are_unlabelled_and_the_rest_is_not() -> None:
    given = problem(9)
    made, truth = hide(given.x, given.labels, given, rng.numpy(0, "test"))
    assert made.n_novel == 3  # of 9 known and 3 novel classes a quarter is novel, rounded up
    assert made.n_known == 6
    assert len(truth) == (made.labels == -1).sum() == 90
    assert set(np.unique(truth)) == {6, 7, 8}
    inside = problem(9, inside=True)
    made, truth = hide(inside.x, inside.labels, inside, rng.numpy(0, "test"))
    assert len(truth) > 130
    assert made.n_clusters == 9
    assert len(np.unique(made.labels[made.labels >= 0])) == 6


def test_confidence_is_worth_what_it_was_in_rehearsal() -> None:
    draw = np.random.default_rng(0)
    sure = draw.uniform(0.5, 1, 4000).astype(np.float32)
    right = draw.random(4000) < (sure - 0.5) * 2  # a confidence of 0.75 is right half of the time
    knots = _calibration([Rehearsal(2, {}, {"a": sure}, {"a": right}, 2)], "a")
    given, share = np.array(knots).T
    assert (np.diff(share) >= 0).all()
    np.testing.assert_allclose(share, (given - 0.5) * 2, atol=0.08)


def test_matched_items() -> None:
    truth, clusters = np.array([0, 0, 0, 1, 1]), np.array([5, 5, 2, 2, 2])
    assert in_matched_class(truth, clusters).tolist() == [True, True, False, True, True]
