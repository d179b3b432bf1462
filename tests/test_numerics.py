"""Small functions of arrays, each against a slow literal form or a closed one."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.numerics import (
    match_clusters,
    mean_directions,
    principal_directions,
    softmax,
    spread_rows,
    squared_distances,
    sums_by_label,
    typicality,
    unit_rows,
)

DRAW = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_unit_length(dtype: type) -> None:
    x = np.array([[3, 4], [0, 0], [0, -2]], dtype=dtype)
    rows = unit_rows(x)
    assert rows.dtype == dtype
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [0, -1]], rtol=1e-6)
    np.testing.assert_allclose(unit_rows(x[None])[0], rows)  # along the last axis


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_clusters_are_matched_as_by_trying_everything(clusters: int, classes: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 9, (clusters, classes))
    class_of = match_clusters(counts)
    matched = [(i, c) for i, c in enumerate(class_of.tolist()) if c >= 0]
    assert len(matched) == min(clusters, classes) == len({c for _, c in matched})
    wide = counts if clusters <= classes else counts.T
    best = max(
        sum(wide[i, c] for i, c in enumerate(choice))
        for choice in itertools.permutations(range(wide.shape[1]), len(wide))
    )
    assert sum(counts[i, c] for i, c in matched) == best


def test_sums_means_and_typicality() -> None:
    x, labels = DRAW.normal(size=(20, 5)).astype(np.float32), DRAW.integers(0, 3, 20)
    sums = sums_by_label(x, labels, 4)
    np.testing.assert_allclose(sums[1], x[labels == 1].sum(axis=0), rtol=1e-5)
    assert not sums[3].any()
    for label in range(3):
        rows = x[labels == label] / np.linalg.norm(x[labels == label], axis=1, keepdims=True)
        mean = rows.mean(axis=0)
        np.testing.assert_allclose(mean_directions(x, labels, 4)[label], mean / np.linalg.norm(mean), rtol=1e-4)
        cosines = rows @ mean / np.linalg.norm(mean)
        np.testing.assert_allclose(typicality(x, labels)[labels == label], cosines, rtol=1e-4, atol=1e-6)
    assert typicality(7 * x[:1], labels[:1]).tolist() == pytest.approx([1.0])  # alone in its class, at any length
    assert typicality(x[:0], labels[:0]).shape == (0,)


def test_principal_directions_are_ordered_and_have_one_sign() -> None:
    x = DRAW.normal(size=(500, 3)) * [1.0, 5.0, 0.1]
    directions = principal_directions(np.cov(x.T), 2)
    assert directions.shape == (3, 2)
    np.testing.assert_allclose(directions, np.eye(3)[:, [1, 0]], atol=0.1)
    np.testing.assert_array_equal(principal_directions(np.cov(-x.T), 2), directions)
    assert principal_directions(np.eye(1), 5).shape == (1, 1)


def test_squared_distances() -> None:
    x, centers = DRAW.normal(size=(6, 4)).astype(np.float32), DRAW.normal(size=(3, 4)).astype(np.float32)
    literal = np.square(x[:, None] - centers[None]).sum(axis=2)
    np.testing.assert_allclose(squared_distances(x, centers), literal, rtol=1e-4)
    assert (squared_distances(x, x).diagonal() >= 0).all()


@pytest.mark.parametrize(("count", "most", "rows"), [(0, 5, []), (3, 5, [0, 1, 2]), (9, 3, [0, 4, 8]), (5, 1, [0])])
def test_spread_rows(count: int, most: int, rows: list[int]) -> None:
    assert spread_rows(count, most).tolist() == rows


def test_softmax() -> None:
    p = softmax(np.array([[0.0, np.log(3)], [1000.0, 0.0]]))
    np.testing.assert_allclose(p, [[0.25, 0.75], [1, 0]], atol=1e-6)
    assert p.dtype == np.float32


def test_it_is_light() -> None:
    code = (
        "import sys, unveil.numerics, unveil.rng; print([m for m in ('torch', 'scipy', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
