"""Cached trunk features."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from unveil.data import cached_views as cached
from unveil.data.views import Draw

CPU = torch.device("cpu")
ITEMS, VIEWS = 6, 3


def feature(row: int, view: int, shape: tuple[int, ...]) -> Tensor:
    """What is stored of a row and a view; its first number names them."""
    return (10 * row + view + torch.arange(np.prod(shape)).reshape(shape) / 64).float()


def parts(shape: tuple[int, ...]) -> Iterator[tuple[int, int, Tensor]]:
    for first in range(0, ITEMS, 4):
        rows = range(first, min(first + 4, ITEMS))
        for view in range(VIEWS + 1):
            yield first, view, torch.stack([feature(row, view, shape) for row in rows])


def make(path: Path, dtype: str = "float16", shape: tuple[int, ...] = (2, 3, 2)) -> cached.CachedViews:
    stored = (*shape[1:], shape[0]) if len(shape) == 3 else shape
    cached.build(path, cached.Layout(items=ITEMS, views=VIEWS, shape=stored, dtype=dtype), parts(shape))
    return cached.CachedViews(path, CPU)


def chosen(x: Tensor, rows: list[int]) -> list[int]:
    """Which stored view each row is."""
    return [int(value) - 10 * row for value, row in zip(x.flatten(1)[:, 0].tolist(), rows, strict=True)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 3, 2), (4,)])
def test_what_was_stored_comes_back(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    views = make(tmp_path / "cache", dtype, shape)
    assert len(views) == ITEMS
    rows = np.array([4, 0, 5])
    ((clean, drawn),) = views.stream([Draw(rows, (None, 7))])
    numbers = chosen(drawn, rows.tolist())
    assert clean.dtype == cached.TYPES[dtype]
    for index, row in enumerate(rows.tolist()):
        assert torch.equal(clean[index], feature(row, 0, shape).to(clean.dtype))
        assert torch.equal(drawn[index], feature(row, numbers[index], shape).to(clean.dtype))


def test_two_views_of_a_draw_are_never_the_same_and_all_occur(tmp_path: Path) -> None:
    views = make(tmp_path / "cache")
    rows = np.arange(ITEMS)
    pairs = set()
    for seed in range(100):
        ((first, second),) = views.stream([Draw(rows, (seed, 1000 + seed))])
        pairs |= set(zip(chosen(first, rows.tolist()), chosen(second, rows.tolist()), strict=True))
    assert pairs == {(a, b) for a in range(1, VIEWS + 1) for b in range(1, VIEWS + 1) if a != b}


def test_one_stored_view_is_drawn_twice(tmp_path: Path) -> None:
    layout = cached.Layout(items=2, views=1, shape=(3,), dtype="float16")
    cached.build(tmp_path, layout, iter([(0, 0, torch.zeros(2, 3)), (0, 1, torch.ones(2, 3))]))
    ((a, b),) = cached.CachedViews(tmp_path, CPU).stream([Draw(np.array([1, 0]), (1, 2))])
    assert bool((a == 1).all())
    assert bool((b == 1).all())


def test_draws_are_functions_of_their_seeds(tmp_path: Path) -> None:
    views, rows = make(tmp_path / "cache"), np.arange(ITEMS)
    draws = [Draw(rows, seeds) for seeds in ((1, 2), (3, 4), (1, 2))]
    one, two, three = (torch.cat(found) for found in views.stream(draws))
    ((alone, _),) = views.stream(draws[2:])
    assert torch.equal(one, three)
    assert torch.equal(one[:ITEMS], alone)
    assert not torch.equal(one, two)


def test_a_cache_that_was_not_finished_is_not_complete(tmp_path: Path) -> None:
    def interrupted() -> Iterator[tuple[int, int, Tensor]]:
        yield next(parts((4,)))
        raise KeyboardInterrupt

    layout = cached.Layout(items=ITEMS, views=VIEWS, shape=(4,), dtype="float16")
    with pytest.raises(KeyboardInterrupt):
        cached.build(tmp_path, layout, interrupted())
    assert not cached.complete(tmp_path)
    cached.build(tmp_path, layout, parts((4,)))
    assert cached.complete(tmp_path)
    assert (tmp_path / "views.bin").stat().st_size == 2 * ITEMS * (VIEWS + 1) * 4


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shape", [(5, 3, 2), (5,)])
def test_a_byte_a_value_is_within_half_a_step(tmp_path: Path, relu: bool, shape: tuple[int, ...]) -> None:
    x = torch.randn(40, *shape, generator=torch.Generator().manual_seed(0)) * 7 - 1
    x = x.relu() if relu else x
    stored = (*shape[1:], shape[0]) if len(shape) == 3 else shape
    layout = cached.Layout(items=40, views=0, shape=stored, dtype="uint8")
    cached.build(tmp_path, layout, iter([(0, 0, x)]), sample=x)
    assert (tmp_path / "views.bin").stat().st_size == layout.bytes == x.numel()
    views = cached.CachedViews(tmp_path, CPU)
    ((found,),) = views.stream([Draw(np.arange(40), (None,))])
    assert views.range is not None
    step = views.range.step.view(-1, *[1] * (len(shape) - 1))
    assert bool(((found - x).abs() <= 0.5001 * step).all())
    assert float(step.max()) < 1.2 * float(x.max() - x.min()) / 255
    assert not relu or bool((found[x == 0] == 0).all())


def test_with_less_room_first_a_byte_a_value_then_fewer_views() -> None:
    layout = cached.Layout(items=10, views=4, shape=(3,), dtype="bfloat16")
    tried = [(one.dtype, one.views) for one in cached.smaller(layout, fewest=2)]
    assert tried == [("bfloat16", 4), ("uint8", 4), ("uint8", 3), ("uint8", 2)]
    sizes = [one.bytes for one in cached.smaller(layout, fewest=2)]
    assert sizes == [300, 150, 120, 90]
