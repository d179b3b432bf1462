"""Pseudo-labels by optimal transport, and swapped prediction."""

import math

import literal
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import agree, normal

from unveil.losses import sinkhorn, swapped_prediction

thorough = settings(max_examples=40, deadline=None, derandomize=True)
batches, classes, seeds = st.integers(1, 9), st.integers(1, 7), st.integers(0, 10**6)


@given(batch=batches, count=classes, seed=seeds, iterations=st.integers(1, 5))
@thorough
def test_assignments_are_those_of_the_published_loop(batch: int, count: int, seed: int, iterations: int) -> None:
    cosines = normal(seed, batch, count).clamp(-3, 3) / 3
    expected = torch.tensor(literal.sinkhorn(cosines, 0.05, iterations), dtype=torch.float64)
    found = sinkhorn(cosines, epsilon=0.05, iterations=iterations)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


@given(batch=batches, count=classes, seed=seeds)
@thorough
def test_rows_sum_to_one_and_columns_to_equal_parts(batch: int, count: int, seed: int) -> None:
    cosines = normal(seed, batch, count).clamp(-3, 3) / 3
    few = sinkhorn(cosines)
    torch.testing.assert_close(few.sum(dim=1), torch.ones(batch))
    many = sinkhorn(cosines, epsilon=0.5, iterations=200)
    torch.testing.assert_close(many.sum(dim=0), torch.full((count,), batch / count), rtol=1e-3, atol=1e-3)


def test_equal_cosines_are_spread_evenly_and_clear_ones_are_not() -> None:
    torch.testing.assert_close(sinkhorn(torch.zeros(6, 3)), torch.full((6, 3), 1 / 3))
    clear = torch.eye(3).repeat(2, 1)  # two samples of each cluster
    torch.testing.assert_close(sinkhorn(clear), clear, rtol=0, atol=1e-6)
    assert sinkhorn(torch.zeros(0, 3)).shape == (0, 3)


def test_a_cluster_that_everybody_prefers_is_shared_out() -> None:
    cosines = torch.tensor([[0.9, 0.8], [0.9, 0.1]])  # both prefer the first cluster, the second row by far
    assert sinkhorn(cosines).argmax(dim=1).tolist() == [1, 0]


def test_a_small_epsilon_does_not_overflow_and_there_is_no_gradient() -> None:
    cosines = torch.tensor([[1.0, -1.0], [0.5, -0.5]], requires_grad=True)
    found = sinkhorn(cosines, epsilon=1e-3)
    assert bool(found.isfinite().all())
    assert not found.requires_grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(batch=st.integers(0, 6), count=classes, seed=seeds)
@thorough
def test_each_view_predicts_the_targets_of_the_other(dtype: torch.dtype, batch: int, count: int, seed: int) -> None:
    logits, other = normal(seed, batch, count, dtype=dtype), normal(seed + 1, batch, count, dtype=dtype)
    t, t_hat = (normal(seed + k, batch, count).softmax(dim=1) for k in (2, 3))
    agree(
        lambda x: swapped_prediction(x, other, t.to(dtype), t_hat.to(dtype)),
        lambda x: literal.swapped_prediction(x, other.double(), t, t_hat),
        logits,
    )


def test_the_loss_of_certain_targets_is_their_surprise() -> None:
    logits = torch.tensor([[math.log(3.0), 0.0]])  # p = 3/4, 1/4
    first, second = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    expected = -(math.log(1 / 4) + math.log(3 / 4)) / 2
    assert swapped_prediction(logits, logits, first, second).item() == pytest.approx(expected)
