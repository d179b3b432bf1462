"""The number of classes by pairs of rows: against the equation, and on classes of any size."""

import numpy as np
import pytest
from blobs import blobs

from unveil.counting import pairs as count_pairs
from unveil.counting.pairs import Pairs, weigh_pairs


def test_the_likeliest_number_solves_the_equation() -> None:
    """F = G / K + (1 − 1/K) H exactly, for classes that are all alike."""
    within, between = np.array([0.1, 0.4, 0.8]), np.array([0.01, 0.05, 0.3])
    known = np.where(np.eye(6, dtype=bool), within[:, None, None], between[:, None, None])
    for number in (1, 3, 12):
        mixture = within / number + (1 - 1 / number) * between
        likelihood = Pairs(known, mixture, np.zeros((3, 3))).log_likelihood(np.arange(1, 30))
        assert likelihood.argmax() + 1 == number


@pytest.mark.parametrize("size", [15, 300])
def test_the_size_of_a_class_does_not_matter(size: int) -> None:
    x, y = blobs(11, 300, apart=2.0)
    known = np.flatnonzero((y < 6) & (np.arange(len(y)) % 300 < 60))
    novel = np.flatnonzero((y >= 6) & (np.arange(len(y)) % 300 < size))
    found = weigh_pairs(x[known], y[known], x[novel], 60, 0)
    assert np.exp(found.mean) == pytest.approx(5, rel=0.35)  # 15 rows of a class say less than 300
    assert abs(found.mean - np.log(5)) < 2 * found.spread


def test_classes_that_vary_more_leave_more_doubt() -> None:
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 80)
    centers, noise = 3 * draw.normal(size=(12, 8))[y], draw.normal(size=(len(y), 8))
    spreads = []
    for widths in (np.ones(12), np.geomspace(0.3, 3, 12)):
        x = (centers + draw.permutation(widths)[y][:, None] * noise).astype(np.float32)
        known = y < 7
        spreads.append(weigh_pairs(x[known], y[known], x[~known], 60, 0).spread)
    assert spreads[1] > spreads[0]


def test_many_known_classes_whiten_the_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of noise hide the classes until known classes have shown that they are noise."""
    draw = np.random.default_rng(1)
    y = np.repeat(np.arange(40), 30)
    x = np.concatenate([6 * draw.normal(size=(40, 4))[y], np.zeros((len(y), 8))], axis=1)
    x = (x + draw.normal(size=x.shape) * np.array([1] * 4 + [8] * 8)).astype(np.float32)
    known = y < 30
    found = weigh_pairs(x[known], y[known], x[~known], 100, 0)
    assert abs(found.mean - np.log(10)) < 2 * found.spread
    monkeypatch.setattr(count_pairs, "WHITENED_FROM", 1000)
    assert weigh_pairs(x[known], y[known], x[~known], 100, 0).spread > 1.2 * found.spread
    curve = found.curve()
    assert curve.best in curve.numbers
    assert len(curve.numbers) == len(curve.values)
