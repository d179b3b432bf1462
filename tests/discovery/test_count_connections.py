"""The number of classes by how strongly clusters are connected."""

import numpy as np
import pytest
from blobs import blobs

from unveil.discovery.count_connections import joins, weigh_connections


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


def test_classes_that_overlap_leave_more_doubt() -> None:
    spreads = []
    for apart in (6.0, 1.0):
        x, y = blobs(12, 60, apart=apart)
        known = y < 6
        found = weigh_connections(x[known], y[known], x[~known], 6.0, 0)
        assert found is not None
        spreads.append(found.spread)
    assert spreads[1] > 1.2 * spreads[0]


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


def test_classes_that_cannot_be_told_apart_say_little() -> None:
    spreads = []
    for apart in (2.0, 0.0):
        x, y = blobs(28, 40, apart=apart)
        known = y < 16
        found = weigh_connections(x[known], y[known], x[~known], 12.0, 0)
        assert found is not None
        spreads.append(found.spread)
    assert spreads[1] > 3 * spreads[0]
