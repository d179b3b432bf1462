"""ω(t)."""

import math

import literal
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.losses import sigmoid_rampup


@given(epoch=st.floats(-10, 1000), length=st.floats(0.1, 500))
def test_is_the_formula(epoch: float, length: float) -> None:
    assert sigmoid_rampup(epoch, length) == pytest.approx(literal.sigmoid_rampup(epoch, length), abs=1e-12)


@given(length=st.floats(0.1, 500), a=st.floats(-10, 1000), b=st.floats(-10, 1000))
def test_never_falls(length: float, a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert 0 < sigmoid_rampup(low, length) <= sigmoid_rampup(high, length) <= 1


@pytest.mark.parametrize(
    ("epoch", "length", "expected"),
    [
        (0, 50, math.exp(-5)),
        (-3, 50, math.exp(-5)),
        (25, 50, math.exp(-1.25)),
        (50, 50, 1),
        (99, 50, 1),
        (0, 0, 1),
        (75, 150, 14.3 / 50),  # CIFAR-100: 14.3 of 50 halfway
    ],
)
def test_known_values(epoch: float, length: float, expected: float) -> None:
    assert sigmoid_rampup(epoch, length) == pytest.approx(expected, rel=2e-3)
