"""Contrastive losses within a batch and the entropy of the mean prediction, against their literal and closed forms."""

import math

import literal
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import agree, normal

from unveil.losses import batch_contrastive, mean_entropy

thorough = settings(max_examples=30, deadline=None, derandomize=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(
    count=st.integers(0, 7),
    classes=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    temperature=st.sampled_from([0.07, 1]),
)
@thorough
def test_it_is_the_sum_over_pairs(dtype: torch.dtype, count: int, classes: int, seed: int, temperature: float) -> None:
    z, y = normal(seed, count, 5, dtype=dtype), torch.arange(count) % classes
    same = y[:, None] == y
    agree(
        lambda z: batch_contrastive(z, same, temperature=temperature),
        lambda z: literal.batch_contrastive(z, same.tolist(), temperature),
        z,
    )


def test_closed_forms() -> None:
    views = torch.arange(4).repeat(2)
    z = torch.ones(8, 3)  # all the same: the positive is one of seven equal others
    assert batch_contrastive(z, views[:, None] == views).item() == pytest.approx(math.log(7), rel=1e-5)
    apart = torch.eye(4).repeat(2, 1)  # cosines 1 to the other view and 0 to the rest
    expected = -math.log(math.e / (math.e + 6))
    assert batch_contrastive(apart, views[:, None] == views, temperature=1.0).item() == pytest.approx(
        expected, rel=1e-5
    )
    pair = torch.eye(2, dtype=torch.bool)
    assert batch_contrastive(torch.eye(2), pair).item() == 0  # a row is never its own positive
    assert batch_contrastive(torch.zeros(0, 3), torch.zeros(0, 0, dtype=torch.bool)).item() == 0
    assert batch_contrastive(torch.ones(1, 3), torch.ones(1, 1, dtype=torch.bool)).item() == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_entropy_of_the_mean(dtype: torch.dtype) -> None:
    scores = normal(3, 6, 4, dtype=dtype)
    agree(lambda z: mean_entropy(z.softmax(1)), lambda z: literal.mean_entropy(z.softmax(1)), scores)
    assert mean_entropy(torch.eye(5)).item() == pytest.approx(math.log(5))
    assert mean_entropy(torch.eye(5)[:1].repeat(3, 1)).item() == 0
    assert mean_entropy(torch.zeros(0, 4)).item() == 0
