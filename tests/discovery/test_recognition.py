"""Which unlabeled rows are of known classes, by the labels of their neighbors."""

import numpy as np
import pytest
from blobs import blobs
from sklearn.datasets import load_digits

from unveil.data.items import Items
from unveil.data.task import Task
from unveil.discovery.recognition import (
    estimate_novel,
    nearest_means,
    neighbor_shares,
    probability_known,
    recognize_known,
    recognized_rows,
)
from unveil.encoders.metric import Metric
from unveil.numerics import Labels, Matrix


def digits() -> tuple[Matrix, Labels, Labels]:
    """Digits 0 to 4 are known, and about half of their rows have a label."""
    x, y = load_digits(return_X_y=True)
    return x.astype(np.float32), y, np.where((y < 5) & (np.random.default_rng(0).random(len(y)) < 0.5), y, -1)


def test_rows_of_known_classes_are_recognized_with_their_class() -> None:
    x, y, labels = digits()
    found = recognize_known(x, labels, 0)
    assert found is not None
    hidden = labels < 0
    np.testing.assert_array_equal(found[~hidden], labels[~hidden])
    assert ((found[hidden] >= 0) == (y[hidden] < 5)).mean() > 0.97
    right = hidden & (found >= 0) & (y < 5)
    assert (found[right] == y[right]).mean() > 0.98


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_whatever_the_share_of_known_rows_is(share: float) -> None:
    x, y, labels = digits()
    draw = np.random.default_rng(0)
    hidden_known = np.flatnonzero((labels < 0) & (y < 5))
    kept = draw.permutation(hidden_known)[: round(share * len(hidden_known))]
    novel = np.flatnonzero(y >= 5) if share < 1 else np.zeros(0, dtype=np.int64)
    rows = np.sort(np.concatenate([np.flatnonzero(labels >= 0), kept, novel]))
    found = recognize_known(x[rows], labels[rows], 0)
    assert found is not None
    hidden = labels[rows] < 0
    assert ((found[hidden] >= 0) == (y[rows][hidden] < 5)).mean() > 0.96


def test_few_labeled_rows_and_many_unlabeled_ones_in_several_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = blobs(5, 120)
    labels = np.where((y < 3) & (np.arange(len(y)) % 12 == 0), y, -1)  # 30 labeled rows among 600
    found = recognize_known(x, labels, 0)
    assert found is not None
    assert ((found >= 0) == (y < 3)).mean() > 0.9
    monkeypatch.setattr("unveil.discovery.recognition.LABELED", 20)
    sampled = recognize_known(x, labels, 0)
    assert sampled is not None
    np.testing.assert_array_equal(sampled[labels >= 0], labels[labels >= 0])
    assert recognize_known(x, np.where(np.arange(len(y)) % 120 == 0, y, -1), 0) is None  # one row of each class
    assert recognize_known(x, np.full(len(y), -1), 0) is None


def test_a_label_does_not_count_for_its_own_row() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 4)).astype(np.float32)  # no classes at all
    labels = np.where(draw.random(300) < 0.5, draw.integers(0, 2, 300), -1)
    shares, scores = neighbor_shares(x, labels)
    assert shares.shape == (300, 2)
    assert shares.max() <= 1
    assert abs(scores[labels >= 0].mean() - scores[labels < 0].mean()) < 0.3 * scores.std()


def test_labeled_rows_that_shape_the_vectors_are_not_compared_with_unlabeled_ones() -> None:
    draw = np.random.default_rng(1)
    y = np.repeat(np.arange(6), 40)
    x = (draw.normal(size=(6, 100))[y] + 2 * draw.normal(size=(240, 100))).astype(np.float32)
    labels = np.where((y < 4) & (np.arange(240) % 2 == 0), y, -1)  # 80 rows fit 100 dimensions too well
    metric = Metric("none", 0.1)

    def shape(vectors: Matrix, given: Labels) -> Matrix:
        return metric.shaping(vectors, given)(vectors)

    halves, together = recognize_known(x, labels, 0, shape), recognize_known(shape(x, labels), labels, 0)
    assert halves is not None
    assert together is not None
    known, novel = (labels < 0) & (y < 4), y >= 4
    assert (halves[known] >= 0).mean() > 0.95
    assert (halves[novel] >= 0).mean() < (together[novel] >= 0).mean() / 2


def test_the_probability_is_that_of_a_mixture() -> None:
    draw = np.random.default_rng(0)
    labeled = draw.normal(2, 1, 4000)
    truth = draw.random(6000) < 0.3
    unlabeled = np.where(truth, draw.normal(2, 1, 6000), draw.normal(-2, 1, 6000))
    p = probability_known(labeled, unlabeled)
    assert ((p > 0.5) == truth).mean() > 0.97
    assert p.mean() == pytest.approx(0.3, abs=0.03)
    assert (probability_known(labeled, draw.normal(-8, 1, 1000)) > 0.5).mean() < 0.01


def test_nearest_means_are_whitened() -> None:
    x, y = blobs(3, 100, apart=0.8)
    stretched = x * np.array([1, 20, 20, 20, 20, 20, 20, 20], dtype=np.float32)
    found = nearest_means(stretched[::2], y[::2], stretched[1::2])
    assert (found == y[1::2]).mean() > 0.8
    np.testing.assert_array_equal(nearest_means(x[::2], 5 + y[::2], x[1::2]) >= 5, True)


def test_novel_classes_are_counted_among_the_rows_that_are_left() -> None:
    x, y = blobs(8, 80)
    labels = np.where((y < 5) & (np.arange(len(y)) % 2 == 0), y, -1)
    task = Task(name="blobs", items=Items.of(x), labels=labels, known=tuple(range(5)), known_in_unlabeled=True)
    recognized = recognized_rows(task, x, 0)
    assert recognized is not None
    assert estimate_novel(task, x, recognized).number == 3
    same = recognized_rows(task, x, 0, task, lambda shaped: shaped)
    np.testing.assert_array_equal(same, recognized)
