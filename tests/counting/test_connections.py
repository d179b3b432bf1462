"""The number of classes by how strongly clusters are connected."""

import numpy as np
import pytest
from blobs import blobs

from unveil.counting.connections import joins, weigh_connections


def test_parts_of_a_class_are_connected_more_strongly_than_classes() -> None:
    x, _ = blobs(5, 60)
    connections = np.exp(joins(x, 15, 15, 0))
    assert connections[:4].max() < 0.3 * connections[4:].min()  # four joins of two classes, then parts of one


@pytest.mark.parametrize("novel", [4, 9])
def test_known_classes_set_the_threshold(novel: int) -> None:
    x, y = blobs(6 + novel, 60)
    known = y < 6
    found = weigh_connections(x[known], y[known], x[~known], 6.0, 0)
    assert found is not None
    assert round(float(np.exp(found.mean))) == novel
    assert found.spread < 0.4


@pytest.mark.parametrize(
    ("classes", "each", "known", "guess", "apart", "more"),
    [(12, 60, 6, 6.0, (6.0, 1.0), 1.2), (28, 40, 16, 12.0, (2.0, 0.0), 3.0)],
    ids=["classes that overlap", "classes that cannot be told apart"],
)
def test_they_leave_more_doubt(
    classes: int, each: int, known: int, guess: float, apart: tuple[float, float], more: float
) -> None:
    spreads = []
    for distance in apart:
        x, y = blobs(classes, each, apart=distance)
        found = weigh_connections(x[y < known], y[y < known], x[y >= known], guess, 0)
        assert found is not None
        spreads.append(found.spread)
    assert spreads[1] > more * spreads[0]


def test_few_rows_of_a_class_say_nothing() -> None:
    x, y = blobs(8, 4)
    known = y < 4
    assert weigh_connections(x[known], y[known], x[~known], 4.0, 0) is None


@pytest.mark.parametrize("guess", [4.0, 12.0, 36.0])
def test_a_wrong_guess_is_taken_out(guess: float) -> None:
    x, y = blobs(28, 40, apart=1.6)
    known = y < 16
    found = weigh_connections(x[known], y[known], x[~known], guess, 0)
    assert found is not None
    assert abs(found.mean - np.log(12)) < 0.3  # without that, 9, 12 and 21
