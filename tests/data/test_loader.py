"""Batches of an epoch."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.loader import Batch, Loader, clean_draws
from unveil.data.views import Draw

thorough = settings(max_examples=50, deadline=None, derandomize=True)


class Recorded:
    """Views that show which rows and which seeds they were asked for."""

    shape = (2,)

    def __init__(self, size: int, first_view_clean: bool = False) -> None:
        self.size, self.first_view_clean = size, first_view_clean

    def __len__(self) -> int:
        return self.size

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        for draw in draws:
            rows = torch.from_numpy(draw.rows)
            yield tuple(torch.stack([rows, torch.full_like(rows, -1 if s is None else s)], 1) for s in draw.seeds)


def labels(labeled: int, unlabeled: int) -> NDArray[np.int64]:
    """Known classes are numbers of their rows, so that a label can be told from another's."""
    return np.random.default_rng(0).permutation(np.array([*range(labeled), *[-1] * unlabeled], dtype=np.int64))


def make(y: NDArray[np.int64], **options: Any) -> Loader:
    given_views = options.pop("views", None) or Recorded(len(y))
    defaults: dict[str, Any] = {"rows": np.arange(len(y)), "batch": 4, "seed": 0, "device": torch.device("cpu")}
    return Loader(views=given_views, labels=y, **{**defaults, **options})


def rows(batch: Batch) -> list[int]:
    return [int(row) for row in batch.views[0][:, 0]]


def seeds(batch: Batch) -> list[int]:
    return [int(view[0, 1]) for view in batch.views]


@given(labeled=st.integers(0, 15), unlabeled=st.integers(0, 15), size=st.integers(1, 20), epoch=st.integers(0, 3))
@thorough
def test_each_row_once_and_labeled_rows_first(labeled: int, unlabeled: int, size: int, epoch: int) -> None:
    y = labels(labeled, unlabeled)
    loader = make(y, batch=size)
    batches = list(loader.epoch(epoch))
    assert len(batches) == loader.steps() == -(-len(y) // size)
    assert sorted(row for batch in batches for row in rows(batch)) == list(range(len(y)))
    for step, batch in enumerate(batches):
        assert (batch.epoch, batch.step) == (epoch, step)
        own = y[rows(batch)]
        assert batch.labeled == int((own >= 0).sum())
        assert batch.y.tolist() == own[: batch.labeled].tolist()
        assert all(rows(batch) == view[:, 0].tolist() for view in batch.views)
        assert step == len(batches) - 1 or len(rows(batch)) == size


def test_only_the_given_rows_are_dealt_out() -> None:
    batches = make(labels(6, 6), rows=np.array([3, 5, 8, 9, 11])).epoch(0)
    assert sorted(row for batch in batches for row in rows(batch)) == [3, 5, 8, 9, 11]


@given(labeled=st.integers(1, 20), unlabeled=st.integers(1, 20), each=st.integers(1, 6), rest=st.integers(0, 6))
@thorough
def test_two_streams_have_their_sizes_and_go_round(labeled: int, unlabeled: int, each: int, rest: int) -> None:
    y = labels(labeled, unlabeled)
    batches = list(make(y, batch=each + rest, labeled_per_batch=each).epoch(1))
    assert len(batches) == -(-labeled // each)
    first = [row for batch in batches for row in rows(batch)[: batch.labeled]]
    second = [row for batch in batches for row in rows(batch)[batch.labeled :]]
    assert sorted(first) == np.flatnonzero(y >= 0).tolist()
    assert [batch.labeled for batch in batches[:-1]] == [each] * (len(batches) - 1)
    assert [len(rows(batch)) - batch.labeled for batch in batches] == [rest] * len(batches)
    assert bool((y[second] == -1).all())
    counts = np.bincount(second, minlength=len(y))[y == -1]
    assert counts.max() - counts.min() <= 1  # nobody comes again before everybody has come


def test_each_pass_over_the_unlabeled_rows_has_its_own_order() -> None:
    y = labels(12, 6)
    batches = list(make(y, batch=8, labeled_per_batch=2).epoch(0))
    passes = [rows(batch)[2:] for batch in batches]
    assert all(sorted(one) == sorted(passes[0]) for one in passes)
    assert len({tuple(one) for one in passes}) > 1


@pytest.mark.parametrize("labeled_per_batch", [None, 1])
@pytest.mark.parametrize("skip", [0, 1, 3, 6])
def test_a_resumed_epoch_is_the_rest_of_the_whole_one(labeled_per_batch: int | None, skip: int) -> None:
    loader = make(labels(6, 18), labeled_per_batch=labeled_per_batch)
    whole, rest = list(loader.epoch(2)), list(loader.epoch(2, skip=skip))
    assert len(whole) == 6
    assert len(rest) == len(whole) - skip
    for expected, found in zip(whole[skip:], rest, strict=True):
        assert (found.epoch, found.step) == (expected.epoch, expected.step)
        assert all(map(torch.equal, found.views, expected.views))
        assert torch.equal(found.y, expected.y)


def test_order_and_seeds_differ_by_epoch_step_view_and_seed() -> None:
    y = labels(8, 8)
    found = [batch for seed in (0, 1) for epoch in (0, 1) for batch in make(y, seed=seed).epoch(epoch)]
    drawn = [seed for batch in found for seed in seeds(batch)]
    assert len(set(drawn)) == len(drawn) == 2 * 2 * 4 * 2
    orders = [tuple(row for batch in found[i : i + 4] for row in rows(batch)) for i in range(0, 16, 4)]
    assert len(set(orders)) == 4
    again = [seed for batch in make(y).epoch(0) for seed in seeds(batch)]
    assert again == drawn[:8]


@pytest.mark.parametrize("n_views", [1, 2, 3])
@pytest.mark.parametrize("clean", [False, True])
def test_number_of_views_and_a_clean_first_one(n_views: int, clean: bool) -> None:
    y = labels(4, 4)
    for batch in make(y, views=Recorded(8, clean), n_views=n_views).epoch(0):
        assert len(batch.views) == n_views
        assert [seed == -1 for seed in seeds(batch)] == [clean and n_views > 1] + [False] * (n_views - 1)


@pytest.mark.parametrize("n_views", [1, 2])
def test_a_single_view_is_augmented_unless_pretraining_is_not(n_views: int) -> None:
    y = labels(4, 4)
    options = {"views": Recorded(8, first_view_clean=True), "n_views": n_views}
    for augmented in (True, False):
        for batch in make(y, **options, augment_single_view=augmented).epoch(0):
            clean = n_views == 2 or not augmented
            assert [seed == -1 for seed in seeds(batch)] == [clean] + [False] * (n_views - 1)


def test_clean_draws_go_through_once() -> None:
    draws = clean_draws(np.array([5, 2, 9, 4, 7]), 2)
    assert [draw.rows.tolist() for draw in draws] == [[5, 2], [9, 4], [7]]
    assert {draw.seeds for draw in draws} == {(None,)}


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_balanced_batches_hold_equally_many_of_some_classes(classes: int) -> None:
    y = np.repeat([0, 1, 2, -1], [40, 10, 3, 20])
    loader = make(y, rows=np.flatnonzero(y >= 0), batch=12, classes_per_batch=classes)
    count = min(classes, 3)
    batches = list(loader.epoch(0))
    assert len(batches) == loader.steps() == 5  # 53 rows in batches of 12
    for batch in batches:
        found = np.bincount(batch.y.numpy(), minlength=3)
        assert sorted(found[found > 0].tolist()) == [12 // count] * count
        assert batch.rows is not None
        assert y[batch.rows.numpy()].tolist() == batch.y.tolist()
    assert {label for batch in batches for label in batch.y.tolist()} == {0, 1, 2}


@pytest.mark.parametrize("each", [None, 3])
@pytest.mark.parametrize("unlabeled", [3, 30, 33])
def test_without_labeled_rows_the_order_is_the_same(each: int | None, unlabeled: int) -> None:
    y = labels(20, unlabeled)
    whole = list(make(y, batch=8, labeled_per_batch=each).epoch(2))
    loader = make(y, batch=8, labeled_per_batch=each, unlabeled_only=True)
    part = list(loader.epoch(2))
    assert [row for batch in part for row in rows(batch)] == [row for b in whole for row in rows(b) if y[row] < 0]
    assert all(batch.labeled == 0 and len(rows(batch)) >= 2 for batch in part)
    assert len(part) == loader.steps() == len(list(loader.epoch(5)))
    assert len(part) == (len(whole) if unlabeled > 3 else len(part))
