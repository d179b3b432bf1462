"""Histograms of oriented gradients."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from unveil.clustering.graph import neighbor_graph
from unveil.data.items import Items
from unveil.encoders.gradients import BINS, CELLS, SIDE, gradient_histograms
from unveil.encoders.plain import gradients, pixels


def bar(at: int, upright: bool = True) -> np.ndarray:
    image = np.zeros((SIDE, SIDE), dtype=np.float32)
    image[:, at : at + 4] = 1
    return image if upright else image.T


def test_edges_count_in_the_cell_and_direction_where_they_are() -> None:
    (histogram,) = gradient_histograms(bar(14)[None]).reshape(-1, BINS, CELLS, CELLS)
    to_the_right, to_the_left = histogram[0], histogram[BINS // 2]
    assert np.square(to_the_right).sum() + np.square(to_the_left).sum() == pytest.approx(1, abs=1e-4)
    assert to_the_right.sum(axis=0).argmax() == 2  # the left edge of the bar, at pixel 14 of 32
    assert to_the_left.sum(axis=0).argmax() == 3  # its right edge, at pixel 18


def test_a_step_of_a_pixel_changes_little_and_a_turn_everything() -> None:
    first, moved, turned = gradient_histograms(np.stack([bar(14), bar(15), bar(14, upright=False)]))
    assert first @ moved > 0.9
    assert first @ turned < 0.1


def test_digits_have_more_neighbors_of_their_own_kind_than_by_pixels() -> None:
    digits = load_digits()
    items = Items.of((digits.images[:600, :, :, None] * 15.9).astype(np.uint8))
    shares = []
    for vectors in (gradients(items), pixels(items)):
        neighbors = neighbor_graph(vectors, 10).neighbors
        shares.append((digits.target[:600][neighbors] == digits.target[:600, None]).mean())
    assert shares[0] > shares[1] + 0.01


def test_a_flat_image_has_no_gradient() -> None:
    assert (gradient_histograms(np.full((2, SIDE, SIDE), 0.5, dtype=np.float32)) == 0).all()
