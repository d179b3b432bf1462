"""What speaks for a number of classes."""

import numpy as np
import pytest
from blobs import blobs

from unveil.discovery.count_evidence import prominence, spread_curve, spread_evidence, spread_of_classes


def test_spread_is_the_mean_squared_distance_to_the_cluster_mean() -> None:
    x = np.array([[0.0], [2.0], [10.0], [12.0]], dtype=np.float32)
    assert np.exp(spread_curve(x)) == pytest.approx([26, 1, 0.5])


def test_classes_that_differ_in_width_are_said_to_differ() -> None:
    x = np.array([[-1.0], [1.0], [-1.0], [1.0], [-2.0], [2.0]], dtype=np.float32)
    assert spread_of_classes(x, np.array([0, 0, 1, 1, 2, 2])) == pytest.approx(np.sqrt(3) / 2)  # of 1, 1 and 4


def test_a_peak_of_agreement_stands_out() -> None:
    tried = np.arange(2, 9)
    values = np.array([0.5, 0.5, 0.9, 0.5, 0.5, 0.5, 0.5])
    numbers = np.arange(1, 12)
    rise = prominence(tried, values, numbers)
    assert numbers[rise.argmax()] == 4
    assert rise[0] == 0
    assert (rise[8:] == 0).all()  # nothing is known of more clusters than were tried


def test_novel_classes_may_have_another_size_than_known_ones() -> None:
    x, y = blobs(9, 160, seed=2)
    known = (y < 5) & (np.arange(len(y)) % 4 == 0)
    evidence = spread_evidence(x[known], y[known], x[y >= 5], np.arange(1, 30), 0)
    assert evidence[:3].max() < evidence[3] - 10  # 4 novel classes: fewer are far too wide
