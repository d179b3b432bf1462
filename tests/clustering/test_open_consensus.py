"""Neighbor consensus with known classes among the unlabeled rows, from the outside."""

from pathlib import Path

import numpy as np
import pytest
from blobs import blobs
from sklearn.datasets import load_digits

from unveil import NovelClassDiscovery
from unveil.clustering.vote import NeighborVote
from unveil.metrics import clustering_accuracy, open_accuracy

X, Y = load_digits(return_X_y=True)
GIVEN = np.where((Y < 5) & (np.arange(len(Y)) % 2 == 0), Y, -1)


@pytest.fixture(scope="module")
def fitted() -> NovelClassDiscovery:
    return NovelClassDiscovery(n_novel=5, known_in_unlabeled=True, rehearsals=1, random_state=0).fit(X, GIVEN)


def test_known_and_novel_digits_are_found(fitted: NovelClassDiscovery) -> None:
    hidden = GIVEN < 0
    scores = open_accuracy(Y[hidden], fitted.labels_[hidden], 5)
    assert scores["old"] > 0.95
    assert scores["all"] > 0.9
    assert "consensus of many clusterings" in fitted.choice_
    assert fitted.forecast_.accuracy == pytest.approx(scores["all"], abs=0.12)


def test_one_vote_predicts_known_and_novel_classes(fitted: NovelClassDiscovery, tmp_path: Path) -> None:
    hidden = GIVEN < 0
    predicted = fitted.predict(X)
    np.testing.assert_array_equal(predicted[hidden], fitted.labels_[hidden])
    assert (predicted[~hidden] == Y[~hidden]).mean() > 0.97
    assert fitted.predict_proba(X).shape == (len(X), 10)
    model = fitted._predictor.model
    assert model is not None
    assert isinstance(model.novel_head, NeighborVote)
    assert len(model.novel_head.points) == len(X)
    fitted.save(tmp_path / "run", X)
    again = NovelClassDiscovery.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(X), predicted)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)


def test_new_rows_get_the_class_of_their_neighbors() -> None:
    x, y = blobs(6, 100)
    given = np.where((y < 3) & (np.arange(len(y)) % 2 == 0), y, -1)
    seen = np.arange(len(y)) % 5 > 0
    fit = NovelClassDiscovery(n_novel=3, known_in_unlabeled=True, rehearsals=0, random_state=0)
    fit.fit(x[seen], given[seen])
    predicted = fit.predict(x[~seen])
    known = y[~seen] < 3
    np.testing.assert_array_equal(predicted[known], y[~seen][known])
    assert clustering_accuracy(y[~seen], predicted) == 1.0


@pytest.mark.parametrize("each", [1, 2, 5])  # a class with one labeled row has no labeled neighbors
def test_few_labeled_rows(each: int) -> None:
    x, y = blobs(6, 40)
    given = np.where((y < 3) & (np.arange(len(y)) % 40 < each), y, -1)
    fit = NovelClassDiscovery(n_novel=3, known_in_unlabeled=True, rehearsals=0, random_state=0).fit(x, given)
    assert clustering_accuracy(y, fit.labels_) > 0.9


def test_unlabeled_rows_that_are_all_known_or_all_novel() -> None:
    x, y = blobs(6, 40)
    half = np.arange(len(y)) % 2 == 0
    known = y < 3
    for n_novel in (2, "auto"):
        fit = NovelClassDiscovery(n_novel=n_novel, known_in_unlabeled=True, rehearsals=0, random_state=0)
        fit.fit(x[known], np.where(half, y, -1)[known])
        assert (fit.labels_ == y[known]).mean() > 0.95
    fit = NovelClassDiscovery(n_novel=3, known_in_unlabeled=True, rehearsals=0, random_state=0)
    fit.fit(x, np.where(known, y, -1))
    assert clustering_accuracy(y, fit.labels_) > 0.98
