"""Losses and gradients stay finite for every finite input, in every precision."""

import itertools
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from unveil.losses import hard_negatives, neighborhood_contrastive, pairwise_bce, supervised_contrastive
from unveil.losses.lengths import unit
from unveil.losses.pairs import calibrated_threshold, cosine_pairs, nearest_pairs, ranking_pairs
from unveil.losses.predictions import consistency, pairwise_kl
from unveil.losses.transport import sinkhorn, swapped_prediction

TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def features(kind: str, rows: int, dtype: torch.dtype) -> Tensor:
    """Ordinary rows, or rows at the edge of what a number can be."""
    x = torch.randn(rows, 6, generator=torch.Generator().manual_seed(rows))
    large = min(3e38, torch.finfo(dtype).max * 0.99)
    match kind:
        case "zero":
            x = torch.zeros_like(x)
        case "some zero":
            x[::2] = 0
        case "same":
            x = x[:1].expand(rows, 6)
        case "huge":
            x = x.sign() * large
        case "one huge":
            x[:1] = large
        case "tiny":
            x = x * torch.finfo(dtype).tiny
    return x.to(dtype)


KINDS = ["ordinary", "zero", "some zero", "same", "huge", "one huge", "tiny"]


def check(loss: Callable[[Tensor], Tensor], x: Tensor) -> None:
    x = x.clone().requires_grad_()
    value = loss(x)
    assert torch.isfinite(value).all()
    if value.requires_grad:
        value.sum().backward()
        assert x.grad is None or torch.isfinite(x.grad).all()
        assert x.grad is None or x.grad.abs().max() < 1e8 or x.detach().abs().max() < 1e-6


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("stored", [0, 5])
def test_contrastive_losses(dtype: torch.dtype, stored: int) -> None:
    for kind, other in itertools.product(KINDS, repeat=2):
        z, z_hat, queue = features(kind, 4, dtype), features(other, 4, dtype), features(other, stored, dtype)
        for k, among in ((0, False), (2, True), (50, False)):
            check(partial(neighborhood_contrastive, z_hat=z_hat, queue=queue, k=k, view_among_neighbors=among), z)
        same = {"y": torch.arange(4), "queue": queue, "queue_y": torch.zeros(stored)}
        check(partial(supervised_contrastive, z_hat=z_hat, **same), z)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_hard_negatives(dtype: torch.dtype) -> None:
    for kind, other in itertools.product(KINDS, repeat=2):
        u, l = features(kind, 5, dtype), features(other, 3, dtype)  # noqa: E741
        for z in (features(kind, 4, dtype), features("ordinary", 4, dtype)):
            check(lambda x: hard_negatives(x, u, l, k_easy=3, k_hard=4), z)  # noqa: B023
            found = hard_negatives(z, u, l, k_easy=3, k_hard=4)
            assert found.abs().max() < 1.01


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_losses_of_predictions(dtype: torch.dtype) -> None:
    one_hot = torch.eye(4, dtype=dtype)
    for p, q in itertools.product((one_hot, one_hot.roll(1, 0), torch.full((4, 4), 0.25, dtype=dtype)), repeat=2):
        for same in (torch.eye(4).bool(), ~torch.eye(4).bool(), torch.ones(4, 4).bool()):
            check(lambda x: pairwise_bce(x, q, same), p)  # noqa: B023
            check(lambda x: pairwise_kl(x, same), p)  # noqa: B023
        check(lambda x: consistency(x, q), p)  # noqa: B023
    for size in (1, 2):  # few pairs, so that each weighs most
        p = torch.eye(2, dtype=dtype)[:size]
        check(lambda x, p=p: pairwise_bce(x, p.flip(1), torch.ones(len(p), len(p))), p)  # type: ignore[misc]
        check(lambda x, p=p: pairwise_kl(x, torch.ones(len(p), len(p))), p)  # type: ignore[misc]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_and_assignments(dtype: torch.dtype, kind: str) -> None:
    z = features(kind, 4, dtype)
    for same in (cosine_pairs(z), ranking_pairs(z), nearest_pairs(z, 2)):
        assert (same == same.T).all()
        assert same.diagonal().all()
    assert torch.isfinite(calibrated_threshold(z, torch.zeros(4)))
    q = sinkhorn(z)
    assert torch.isfinite(q).all()
    assert torch.allclose(q.sum(dim=1), torch.ones(4), atol=1e-3)
    check(lambda x: swapped_prediction(x, z, q, q), z)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ordinary_rows_are_normalized_as_ever(dtype: torch.dtype) -> None:
    x = torch.randn(50, 7, dtype=dtype, requires_grad=True)
    again = x.detach().clone().requires_grad_()
    expected = torch.nn.functional.normalize(again, dim=1)
    found = unit(x)
    assert torch.equal(found, expected)
    weights = torch.randn(50, 7, dtype=dtype)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert x.grad is not None
    assert again.grad is not None
    assert torch.equal(x.grad, again.grad)
