"""Numbers that would break a fit are found and mended; all others are left alone."""

import numpy as np
import pytest
from blobs import blobs
from sklearn.datasets import load_digits

from unveil.encoders.conditioning import conditioning
from unveil.encoders.scaling import Reduction, fit_reduction
from unveil.numerics import loses_in_float32

X, Y = blobs(5, 40)


def test_usual_vectors_are_left_alone() -> None:
    draw = np.random.default_rng(0)
    for x in (
        *(X, X * 1e-3, X * 1000, load_digits().data, load_digits().data / 16, draw.lognormal(0, 2, (300, 5))),
        *(draw.poisson(0.3, (300, 6)).astype(float), draw.integers(0, 2000, (300, 4)).astype(float), X[:5] * 1e9),
        *(np.where(draw.random((300, 6)) < 0.9, 0, 500.0), np.ones((50, 3)), draw.standard_t(2, (500, 8))),
    ):
        assert conditioning(x) == (None, [])


def test_marks_for_missing_values_are_named_and_replaced() -> None:
    for share in (0.001, 0.01, 0.1):
        x = X.copy()
        cells = np.random.default_rng(1).random(x.shape) < max(share, 4 / x.size)
        x[cells] = -999
        needed, notes = conditioning(x, [f"c{i}" for i in range(8)])
        assert needed is not None
        assert f"{cells.sum()} cells are -999" in notes[0]
        first = int(cells.any(axis=0).argmax())
        assert f"'c{first}'" in notes[0]
        assert np.abs(needed(x)).max() < 100
        np.testing.assert_array_equal(needed(x)[~cells], X[~cells])


def test_a_row_that_is_many_times_larger_is_shrunk() -> None:
    x = X.copy()
    x[7] *= 1000
    needed, notes = conditioning(x)
    assert needed is not None
    assert "row 7" in notes[0]
    found = needed(x)
    np.testing.assert_array_equal(np.delete(found, 7, axis=0), np.delete(X, 7, axis=0))
    assert np.linalg.norm(found[7]) < 3 * np.linalg.norm(X, axis=1).max()


@pytest.mark.parametrize(("offset", "factor"), [(1e8, 1), (-1e12, 1), (0, 1e-12), (0, 1e-30), (0, 1e9), (1, 1e-9)])
def test_offsets_and_spreads_change_nothing(offset: float, factor: float) -> None:
    x = X.astype(np.float64) * factor + offset
    needed, notes = conditioning(x)
    assert needed is not None
    assert notes == []
    found = needed(x)
    assert found.dtype == np.float32
    centered, expected = found - found.mean(axis=0), X - X.mean(axis=0)
    np.testing.assert_allclose(centered * (expected.std() / centered.std()), expected, atol=1e-2 if offset else 1e-4)
    assert 0.05 < centered.std() < 20


def test_a_reduction_with_conditioning_is_stored_whole() -> None:
    x = X.astype(np.float64) + 1e8
    needed, _ = conditioning(x)
    assert needed is not None
    reduction = fit_reduction(needed(x), standardize=True, components=4)
    whole = Reduction(**{**reduction.__dict__, "first": needed})
    again = Reduction.from_arrays(whole.arrays())
    np.testing.assert_array_equal(again(x), whole(x))
    np.testing.assert_array_equal(whole(x), reduction(needed(x)))


def test_float64_is_kept_where_float32_would_lose_the_classes() -> None:
    assert loses_in_float32(X.astype(np.float64) + 1e8)
    assert not loses_in_float32(X.astype(np.float64))
    assert not loses_in_float32(X + np.float32(1e8))
    assert not loses_in_float32(np.full((4, 2), 1e8))
