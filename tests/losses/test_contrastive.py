"""Neighborhood and supervised contrastive losses against their literal equations, closed forms and bad input."""

import math
from collections.abc import Callable
from typing import Any

import literal
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import agree, normal
from torch import Tensor

from unveil.losses import neighborhood_contrastive, supervised_contrastive
from unveil.losses.contrastive import _neighborhood_contrastive

thorough = settings(max_examples=40, deadline=None, derandomize=True)
batches, stored, dims, seeds = st.integers(0, 8), st.integers(0, 40), st.integers(1, 16), st.integers(0, 10**6)
dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


@dtypes
@pytest.mark.parametrize("view_among_neighbors", [False, True])
@given(
    batch=batches,
    size=stored,
    dim=dims,
    seed=seeds,
    k=st.integers(0, 50),
    extra=st.one_of(st.none(), st.integers(0, 6)),
    alpha=st.floats(0, 1),
    temperature=st.floats(0.05, 1),
)
@thorough
def test_neighborhood_is_its_equation(
    dtype: torch.dtype,
    view_among_neighbors: bool,
    batch: int,
    size: int,
    dim: int,
    seed: int,
    k: int,
    extra: int | None,
    alpha: float,
    temperature: float,
) -> None:
    z, z_hat, queue = (normal(seed + i, n, dim, dtype=dtype) for i, n in enumerate((batch, batch, size)))
    hard = None if extra is None else normal(seed + 3, batch, extra, dtype=dtype).tanh()
    options: dict[str, Any] = {
        "k": k,
        "alpha": alpha,
        "temperature": temperature,
        "view_among_neighbors": view_among_neighbors,
    }
    agree(
        lambda z: neighborhood_contrastive(z, z_hat, queue, hard=hard, **options),
        lambda z: literal.neighborhood_contrastive(
            z, z_hat.double(), queue.double(), hard=None if hard is None else hard.double(), **options
        ),
        z,
    )


@dtypes
@given(batch=batches, size=stored, dim=dims, seed=seeds, classes=st.integers(1, 5), temperature=st.floats(0.05, 1))
@thorough
def test_supervised_is_its_equation(
    dtype: torch.dtype, batch: int, size: int, dim: int, seed: int, classes: int, temperature: float
) -> None:
    z, z_hat, queue = (normal(seed + i, n, dim, dtype=dtype) for i, n in enumerate((batch, batch, size)))
    generator = torch.Generator().manual_seed(seed)
    y, queue_y = (torch.randint(classes, (n,), generator=generator) for n in (batch, size))
    agree(
        lambda z: supervised_contrastive(z, z_hat, y, queue, queue_y, temperature=temperature),
        lambda z: literal.supervised_contrastive(
            z, z_hat.double(), y, queue.double(), queue_y, temperature=temperature
        ),
        z,
    )


def neighborhood(z: Tensor, z_hat: Tensor, queue: Tensor, **options: Any) -> Tensor:
    return neighborhood_contrastive(z, z_hat, queue, **{"k": 3, **options})


def published(z: Tensor, z_hat: Tensor, queue: Tensor, **options: Any) -> Tensor:
    return neighborhood(z, z_hat, queue, view_among_neighbors=True, **options)


def supervised(z: Tensor, z_hat: Tensor, queue: Tensor, **options: Any) -> Tensor:
    y, queue_y = torch.arange(len(z)) % 3, torch.arange(len(queue)) % 3
    return supervised_contrastive(z, z_hat, y, queue, queue_y, **options)


Loss = Callable[..., Tensor]
every = pytest.mark.parametrize("loss", [neighborhood, published, supervised])


@pytest.mark.parametrize("loss", [neighborhood, supervised])
@pytest.mark.parametrize("size", [0, 1, 7, 40])
def test_equal_cosines_cost_the_log_of_the_number_of_candidates(loss: Loss, size: int) -> None:
    one = torch.ones(4, 6)
    assert float(loss(one, one, torch.ones(size, 6))) == pytest.approx(math.log(1 + size), abs=1e-5)


def test_equal_cosines_with_hard_negatives() -> None:
    one = torch.ones(4, 6)
    value = neighborhood(one, one, torch.ones(7, 6), hard=torch.ones(4, 5))
    assert float(value) == pytest.approx(math.log(1 + 7 + 5), abs=1e-5)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_published_targets_lose_the_mass_of_the_displaced_neighbor(k: int) -> None:
    one = torch.ones(4, 6, dtype=torch.float64)  # all cosines are equal: the view is among the first k
    value = neighborhood_contrastive(one, one, one.repeat(5, 1), k=k, alpha=0.2, view_among_neighbors=True)
    mass = 0.2 + 0.8 * (k - 1) / k
    assert float(value) == pytest.approx(mass * math.log(1 + 20), abs=1e-9)


def test_published_targets_are_the_papers_where_the_view_is_far_away() -> None:
    z, queue = normal(0, 4, 8), normal(1, 20, 8)
    assert float(published(z, -z, queue)) == pytest.approx(float(neighborhood(z, -z, queue)), abs=1e-12)


@every
@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_without_neighbors_it_is_plain_contrastive(loss: Loss, temperature: float) -> None:
    z, z_hat, queue = normal(0, 5, 8), normal(1, 5, 8), normal(2, 12, 8)
    view, others = F.cosine_similarity(z, z_hat), F.cosine_similarity(z[:, None], queue[None], dim=2)
    logits = torch.cat([view[:, None], others], dim=1) / temperature
    expected = F.cross_entropy(logits, torch.zeros(5, dtype=torch.long))
    if loss is supervised:
        value = supervised_contrastive(z, z_hat, torch.zeros(5), queue, torch.ones(12), temperature=temperature)
    else:
        value = loss(z, z_hat, queue, k=0, temperature=temperature)
    assert float(value) == pytest.approx(float(expected), abs=1e-10)


def test_alpha_one_ignores_the_neighbors_and_alpha_zero_the_view() -> None:
    z, z_hat, queue = normal(0, 5, 8), normal(1, 5, 8), normal(2, 12, 8)
    values = {alpha: float(neighborhood(z, z_hat, queue, alpha=alpha)) for alpha in (0.0, 0.3, 1.0)}
    assert values[1.0] == pytest.approx(float(neighborhood(z, z_hat, queue, k=0)), abs=1e-10)
    assert values[0.3] == pytest.approx(0.3 * values[1.0] + 0.7 * values[0.0], abs=1e-10)
    assert values[0.0] != pytest.approx(values[1.0], abs=1e-3)


def test_every_negative_opposite_costs_nothing() -> None:
    z = normal(0, 5, 8).abs()
    assert float(neighborhood(z, z, -z[:0], k=3)) == pytest.approx(0, abs=1e-10)
    assert float(neighborhood(z, 2 * z, -z.abs(), k=0)) == pytest.approx(0, abs=1e-5)
    same_class = supervised_contrastive(z, 2 * z, torch.zeros(5), -z, torch.ones(5))
    assert float(same_class) == pytest.approx(0, abs=1e-5)


def test_supervised_without_a_class_mate_is_plain_contrastive_and_with_all_is_their_mean() -> None:
    z = normal(0, 3, 8)
    queue = z[:1].expand(4, 8)
    y = torch.tensor([0, 1, 2])
    alone = supervised_contrastive(z, z, y, queue, torch.full((4,), 9))
    assert float(alone) == pytest.approx(float(neighborhood(z, z, queue, k=0)), abs=1e-10)
    mates = supervised_contrastive(z[:1], z[:1], y[:1], queue, torch.zeros(4))
    assert float(mates) == pytest.approx(math.log(5), abs=1e-10)


@every
def test_views_and_queues_are_constants_to_the_gradient(loss: Loss) -> None:
    z, z_hat, queue = (normal(i, n, 8).requires_grad_() for i, n in enumerate((5, 5, 12)))
    gradients = torch.autograd.grad(loss(z, z_hat, queue), (z, z_hat, queue), allow_unused=True)
    assert gradients[0] is not None
    assert float(gradients[0].abs().max()) > 1e-3
    assert gradients[1:] == (None, None)


def test_the_gradient_flows_through_hard_negatives() -> None:
    z, z_hat, queue = (normal(i, n, 8) for i, n in enumerate((5, 5, 12)))
    hard = normal(3, 5, 4).tanh().requires_grad_()
    (gradient,) = torch.autograd.grad(neighborhood(z, z_hat, queue, hard=hard), hard)
    assert bool((gradient > 0).all())  # a closer negative costs more


@every
@given(scale=st.floats(1e-3, 1e3), seed=seeds)
@thorough
def test_lengths_do_not_matter(loss: Loss, scale: float, seed: int) -> None:
    z, z_hat, queue = (normal(seed + i, n, 8) for i, n in enumerate((5, 5, 12)))
    expected = float(loss(z, z_hat, queue))
    assert float(loss(scale * z, z_hat, queue)) == pytest.approx(expected, abs=1e-9)
    assert float(loss(z, z_hat / scale, scale * queue)) == pytest.approx(expected, abs=1e-9)


@every
@pytest.mark.parametrize("batch", [0, 1, 4])
@pytest.mark.parametrize("size", [0, 1, 9])
@pytest.mark.parametrize("fill", [0.0, 1.0, -1.0, 1e-30, 1e18])
def test_degenerate_input_stays_finite(loss: Loss, batch: int, size: int, fill: float) -> None:
    z = torch.full((batch, 3), fill, requires_grad=True)
    value = loss(z, torch.zeros(batch, 3), torch.full((size, 3), fill))
    assert value.shape == ()
    assert math.isfinite(value.item())
    (gradient,) = torch.autograd.grad(value, z)
    assert bool(gradient.isfinite().all())
    if batch == 0:
        assert value.item() == 0


def test_cosines_from_the_caller_change_nothing() -> None:
    z, z_hat, queue = normal(0, 3, 8), normal(1, 3, 8), normal(2, 20, 8)
    cosines = F.normalize(z, dim=1) @ F.normalize(queue, dim=1).T
    one = neighborhood_contrastive(z, z_hat, queue, k=4)
    options: dict[str, Any] = {"k": 4, "alpha": 0.2, "temperature": 0.05, "hard": None, "view_among_neighbors": False}
    torch.testing.assert_close(one, _neighborhood_contrastive(z, z_hat, cosines, **options))
    assert not torch.allclose(one, _neighborhood_contrastive(z, z_hat, -cosines, **options))
