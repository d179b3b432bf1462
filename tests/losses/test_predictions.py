"""Losses on probabilities."""

import math

import literal
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import agree, normal
from torch import Tensor

from unveil.losses import consistency, pairwise_bce, pairwise_kl

thorough = settings(max_examples=40, deadline=None, derandomize=True)
batches, classes, seeds = st.integers(0, 8), st.integers(2, 16), st.integers(0, 10**6)
dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def random_pairs(batch: int, seed: int) -> Tensor:
    return torch.rand(batch, batch, generator=torch.Generator().manual_seed(seed)) < 0.4


@dtypes
@given(batch=batches, count=classes, seed=seeds)
@thorough
def test_pairwise_bce_is_eq_3_in_both_views(dtype: torch.dtype, batch: int, count: int, seed: int) -> None:
    logits, other = normal(seed, batch, count, dtype=dtype), normal(seed + 1, batch, count, dtype=dtype)
    same = random_pairs(batch, seed)
    agree(
        lambda x: pairwise_bce(x.softmax(1), other.softmax(1), same),
        lambda x: literal.pairwise_bce(x.softmax(1), other.double().softmax(1), same),
        logits,
    )
    agree(
        lambda x: pairwise_bce(other.softmax(1), x.softmax(1), same),
        lambda x: literal.pairwise_bce(other.double().softmax(1), x.softmax(1), same),
        logits,
    )


@dtypes
@given(batch=batches, count=classes, seed=seeds)
@thorough
def test_consistency_is_eq_4_in_both_views(dtype: torch.dtype, batch: int, count: int, seed: int) -> None:
    logits, other = normal(seed, batch, count, dtype=dtype), normal(seed + 1, batch, count, dtype=dtype)
    agree(
        lambda x: consistency(x.softmax(1), other.softmax(1)),
        lambda x: literal.consistency(x.softmax(1), other.double().softmax(1)),
        logits,
    )
    agree(
        lambda x: consistency(other.softmax(1), x.softmax(1)),
        lambda x: literal.consistency(other.double().softmax(1), x.softmax(1)),
        logits,
    )


@pytest.mark.parametrize("count", [2, 5, 20])
def test_uniform_predictions(count: int) -> None:
    p = torch.full((6, count), 1 / count, dtype=torch.float64)
    same = torch.zeros(6, 6)
    same[:2] = 1  # a third of the pairs
    expected = -math.log(1 / count + 1e-7) / 3 - 2 * math.log(1 - 1 / count + 1e-7) / 3
    assert float(pairwise_bce(p, p, same)) == pytest.approx(expected, abs=1e-9)


def test_perfect_predictions_cost_nothing_and_opposite_ones_a_lot() -> None:
    y = torch.tensor([0, 1, 1, 2])
    p, same = torch.eye(3)[y], y[:, None] == y
    assert float(pairwise_bce(p, p, same)) == pytest.approx(0, abs=1e-6)
    assert float(pairwise_bce(p, p, ~same)) == pytest.approx(-math.log(1e-7), rel=1e-4)


@pytest.mark.parametrize("strength", [8.0, 17.0, 40.0, 1000.0])
def test_saturated_predictions_stay_finite(strength: float) -> None:
    logits = (strength * torch.eye(5)[torch.arange(64) % 5] + normal(0, 64, 5, dtype=torch.float32)).requires_grad_()
    p = logits.softmax(1)
    for same in (torch.zeros(64, 64), torch.ones(64, 64)):
        value = pairwise_bce(p, p, same)
        (gradient,) = torch.autograd.grad(value, logits, retain_graph=True)
        assert math.isfinite(value.item())
        assert bool(gradient.isfinite().all())


def test_consistency_closed_forms() -> None:
    eye = torch.eye(4)
    assert float(consistency(eye, eye)) == 0
    assert float(consistency(eye, eye.roll(1, 0))) == pytest.approx(2 / 4)


def test_nothing_to_compare_is_zero_with_a_gradient() -> None:
    p = torch.empty(0, 3, requires_grad=True)
    value = pairwise_bce(p, p, torch.empty(0, 0)) + consistency(p, p)
    value.backward()  # type: ignore[no-untyped-call]
    assert value.item() == 0


@given(seed=st.integers(0, 10**6), batch=st.integers(0, 5), classes=st.integers(1, 4))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_pairwise_kl_is_the_literal_sum(seed: int, batch: int, classes: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(batch, classes, generator=generator, dtype=torch.float64)
    same = torch.rand(batch, batch, generator=generator) < 0.5
    p = logits.softmax(dim=1)
    terms = []
    for i in range(batch):
        for j in range(batch):
            apart = sum(float(p[j, k] * ((p[j, k] + 1e-7).log() - (p[i, k] + 1e-7).log())) for k in range(classes))
            terms.append(apart if same[i, j] else max(0.0, 2.0 - apart))
    expected = sum(terms) / len(terms) if terms else 0.0
    assert float(pairwise_kl(p, same)) == pytest.approx(expected, abs=1e-5)


def test_pairwise_kl_moves_one_side_at_a_time() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    only = torch.tensor([[False, True], [False, False]])
    loss = pairwise_kl(logits.softmax(dim=1), only, margin=0.0)  # the pair (0, 1) alone counts
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert float(logits.grad[0].abs().sum()) > 0
    assert float(logits.grad[1].abs().sum()) == pytest.approx(0, abs=1e-7)
