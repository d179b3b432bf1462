"""Vectors before anything is learned from them."""

import numpy as np
import pytest
import torch

from unveil.data.items import Items
from unveil.data.views import Draw, make_views
from unveil.encoders.scaling import Reduction, fit_reduction
from unveil.errors import UnveilError
from unveil.settings import Augment, Data

X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32) * np.array([5, 3, 1, 1, 1, 0.1], np.float32)


def test_unit_length_and_principal_components() -> None:
    reduce = fit_reduction(X, unit=True, components=3)
    train = reduce(X)
    assert train.shape == (50, 3)
    np.testing.assert_allclose(train[:7], reduce(X[:7]), atol=1e-5)  # one projection for all
    centered = X / np.linalg.norm(X, axis=1, keepdims=True)
    centered = centered - centered.mean(axis=0)
    values = np.linalg.svd(centered, compute_uv=False)[:3]
    np.testing.assert_allclose(np.linalg.norm(train, axis=0), values, rtol=1e-3)


def test_nothing_is_changed_unless_asked() -> None:
    np.testing.assert_array_equal(fit_reduction(X)(X), X)
    assert fit_reduction(X, components=100)(X).shape == (50, 6)  # no more than there are


def test_standardized_columns_and_the_way_back_from_arrays() -> None:
    constant = np.concatenate([X, np.ones((50, 1), dtype=np.float32)], axis=1)
    reduce = fit_reduction(constant, standardize=True, components=4)
    again = Reduction.from_arrays(reduce.arrays())
    np.testing.assert_array_equal(again(constant), reduce(constant))
    standard = fit_reduction(constant, standardize=True)(constant)
    np.testing.assert_allclose(standard.std(axis=0), [1] * 6 + [0], atol=1e-4)
    np.testing.assert_allclose(standard.mean(axis=0), np.zeros(7), atol=1e-4)


@pytest.mark.parametrize("scaling", ["feature", "common"])
def test_scaling_keeps_proportions_or_not_and_noise_follows_each_spread(scaling: str) -> None:
    config = Data(name="v", scaling=scaling)  # type: ignore[arg-type]
    views = make_views(Items.of(X), config, Augment(noise=0.5), torch.device("cpu"), workers=0)
    draws = [Draw(np.arange(50), (None, seed)) for seed in range(200)]
    clean, noisy = zip(*views.stream(draws), strict=True)
    spread = clean[0].std(dim=0, correction=0)
    noise = (torch.stack(noisy) - clean[0]).std(dim=(0, 1))
    torch.testing.assert_close(noise / spread, torch.full((6,), 0.5), rtol=0.05, atol=0)
    ratio = float(spread[0] / spread[5])
    assert ratio == pytest.approx(1 if scaling == "feature" else float(X.std(axis=0)[0] / X.std(axis=0)[5]), rel=1e-3)
    assert float(spread.square().mean().sqrt()) == pytest.approx(1, rel=1e-3)


def test_test_items_are_scaled_like_the_training_items() -> None:
    config, cpu = Data(name="v"), torch.device("cpu")
    views = make_views(Items.of(X), config, Augment(noise=0.5), cpu, workers=0)
    other = make_views(Items.of(X[:5] + 3), config, Augment(noise=0.5), cpu, 0, views)
    ((found,),) = other.stream([Draw(np.arange(5), (None,))])
    ((expected,),) = views.stream([Draw(np.arange(5), (None,))])
    shift = torch.from_numpy(3 / X.std(axis=0))
    torch.testing.assert_close(found, expected + shift, rtol=1e-3, atol=1e-3)


def test_dropped_features_are_at_their_mean() -> None:
    config, cpu = Data(name="v"), torch.device("cpu")
    views = make_views(Items.of(X), config, Augment(dropout=0.4), cpu, workers=0)
    ((clean, other),) = views.stream([Draw(np.arange(50), (None, 3))])
    lost = other == 0
    assert 0.3 < float(lost.float().mean()) < 0.5
    torch.testing.assert_close(other[~lost], clean[~lost])


def test_mixed_items_lie_on_the_way_to_their_nearest_neighbor() -> None:
    config, cpu = Data(name="v"), torch.device("cpu")
    views = make_views(Items.of(X), config, Augment(mix=0.6), cpu, workers=0)
    ((clean, other),) = views.stream([Draw(np.arange(50), (None, 3))])
    apart = torch.cdist(clean, clean).fill_diagonal_(torch.inf)
    way = clean[apart.argmin(dim=1)] - clean
    step = ((other - clean) * way).sum(dim=1) / way.square().sum(dim=1)
    assert 0 <= float(step.min()) < 0.1 < 0.5 < float(step.max()) <= 0.6
    torch.testing.assert_close(other, clean + step[:, None] * way, rtol=1e-4, atol=1e-4)
    ((alone, moved),) = views.stream([Draw(np.arange(1), (None, 3))])
    torch.testing.assert_close(moved, alone)


@pytest.mark.parametrize("setting", ["dropout", "mix"])
def test_a_share_above_one_is_refused(setting: str) -> None:
    with pytest.raises(UnveilError, match=f"{setting} is 1.5: give a share"):
        Augment(**{setting: 1.5})
