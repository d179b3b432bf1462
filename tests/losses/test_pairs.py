"""Rules for positive pairs against their literal definitions."""

import literal
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import normal
from torch import Tensor

from unveil.losses import calibrated_threshold, cosine_pairs, nearest_pairs, ranking_pairs

thorough = settings(max_examples=60, deadline=None, derandomize=True)
batches, dims, seeds = st.integers(0, 8), st.integers(1, 16), st.integers(0, 10**6)

RULES = {
    "cosine": lambda z: cosine_pairs(z, 0.5),
    "ranking": lambda z: ranking_pairs(z, 2),
    "nearest": lambda z: nearest_pairs(z, 2),
}
every = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


@given(batch=batches, dim=dims, seed=seeds, threshold=st.floats(-0.99, 0.99))
@thorough
def test_cosine_pairs_are_eq_2(batch: int, dim: int, seed: int, threshold: float) -> None:
    z = normal(seed, batch, dim)
    assert cosine_pairs(z, threshold).tolist() == literal.cosine_pairs(z, threshold)


def test_the_default_threshold_is_the_papers() -> None:
    angles = torch.tensor([0.0, 0.31, 0.33])  # cos 0.31 = 0.952, cos 0.33 = 0.946
    z = torch.stack([angles.cos(), angles.sin()], dim=1)
    assert cosine_pairs(z)[0].tolist() == [True, True, False]


@given(batch=batches, dim=dims, seed=seeds, top=st.integers(1, 20))
@thorough
def test_ranking_pairs_have_the_same_top_dimensions(batch: int, dim: int, seed: int, top: int) -> None:
    z = normal(seed, batch, dim)
    assert ranking_pairs(z, top).tolist() == literal.ranking_pairs(z, top)


def test_ranking_looks_at_the_set_and_not_the_order() -> None:
    z = torch.tensor([[9.0, 8, 1, 0], [1, 2, 0, 0.5], [9, 1, 8, 0]])
    assert ranking_pairs(z, 2).tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    assert ranking_pairs(z, 4).all()


@given(batch=batches, dim=st.integers(2, 16), seed=seeds, k=st.integers(0, 12))
@thorough
def test_nearest_pairs_are_the_union_of_neighborhoods(batch: int, dim: int, seed: int, k: int) -> None:
    z = normal(seed, batch, dim)
    assert nearest_pairs(z, k).tolist() == literal.nearest_pairs(z, k)


@every
@given(batch=batches, dim=dims, seed=seeds, zero=st.booleans(), same=st.booleans())
@thorough
def test_pairs_are_symmetric_and_reflexive_for_any_input(
    rule: object, batch: int, dim: int, seed: int, zero: bool, same: bool
) -> None:
    z = normal(seed, batch, dim, dtype=torch.float32)
    z = torch.zeros_like(z) if zero else z[:1].repeat(batch, 1) if same and batch else z
    pairs = rule(z.requires_grad_())  # type: ignore[operator]
    assert pairs.dtype == torch.bool
    assert pairs.shape == (batch, batch)
    assert bool((pairs == pairs.T).all())
    assert bool(pairs.diagonal().all())


@every
def test_scale_does_not_matter(rule: object) -> None:
    z = normal(0, 8, 5)
    scaled = z * torch.linspace(0.01, 50, 8, dtype=z.dtype)[:, None]
    assert rule(z).tolist() == rule(scaled).tolist()  # type: ignore[operator]


def best_f1(z: Tensor, y: Tensor, threshold: float | Tensor) -> object:
    i, j = torch.triu_indices(len(z), len(z), offset=1)
    return literal.f1((y[i] == y[j]).tolist(), cosine_pairs(z, threshold)[i, j].tolist())


@given(batch=st.integers(0, 9), dim=st.integers(2, 12), seed=seeds, classes=st.integers(1, 4))
@thorough
def test_calibrated_threshold_is_the_best_cosine(batch: int, dim: int, seed: int, classes: int) -> None:
    z = normal(seed, batch, dim)
    y = torch.randint(classes, (batch,), generator=torch.Generator().manual_seed(seed))
    expected = literal.calibrated_threshold(z, y, 0.7)
    assert float(calibrated_threshold(z, y, 0.7)) == pytest.approx(expected, abs=1e-6)


@given(hot=st.lists(st.integers(0, 3), min_size=2, max_size=9), seed=seeds)
@thorough
def test_calibrated_threshold_takes_all_pairs_of_one_cosine_or_none(hot: list[int], seed: int) -> None:
    z = torch.eye(4)[hot]  # all cosines are 0 or 1
    y = torch.randint(2, (len(hot),), generator=torch.Generator().manual_seed(seed))
    threshold = calibrated_threshold(z, y)
    assert float(threshold) == pytest.approx(literal.calibrated_threshold(z.double(), y, 0.95))
    if len(set(y.tolist())) < len(y):
        assert best_f1(z, y, threshold) == max(best_f1(z, y, 0.0), best_f1(z, y, 1.0))


def test_separable_classes_are_separated() -> None:
    z = torch.tensor([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]])
    y = torch.tensor([0, 0, 1, 1])
    assert cosine_pairs(z, calibrated_threshold(z, y)).tolist() == (y[:, None] == y).tolist()


@pytest.mark.parametrize("labels", [[], [3], [0, 1, 2]])
def test_no_pair_of_one_class_leaves_the_default(labels: list[int]) -> None:
    y = torch.tensor(labels, dtype=torch.long)
    assert float(calibrated_threshold(torch.ones(len(y), 2), y, 0.8)) == pytest.approx(0.8)
