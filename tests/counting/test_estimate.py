"""How many classes: on blobs whose number is known."""

import numpy as np
import pytest
from blobs import blobs

from unveil.counting.estimate import Estimate, check_count, estimate_classes, unbalanced
from unveil.errors import UnveilError


@pytest.mark.parametrize(("known", "novel"), [(5, 5), (10, 4), (4, 9)])
def test_separate_classes_are_counted(known: int, novel: int) -> None:
    x, y = blobs(known + novel, 60, seed=known)
    old = y < known
    found = estimate_classes(x[old], y[old], x[~old])
    assert found.number == novel
    assert found.low <= novel <= found.high


def test_all_criteria_are_shown() -> None:
    x, y = blobs(10, 40)
    old = y < 6
    found = estimate_classes(x[old], y[old], x[~old])
    names = ["probability", "agreement", "pairs of one class", "connections"]
    assert [curve.name for curve in found.curves] == names
    for curve in found.curves:
        assert len(curve.numbers) == len(curve.values)
        assert curve.best in range(1, 13)
    assert found.number == found.curves[0].best == 4


@pytest.mark.parametrize(("known", "novel", "part"), [(5, 3, 2), (4, 6, 3), (8, 4, 4)])
def test_known_classes_inside_are_not_counted(known: int, novel: int, part: int) -> None:
    x, y = blobs(known + novel, 120, seed=novel)
    labeled = (y < known) & (np.arange(len(y)) % part == 0)
    found = estimate_classes(x[labeled], y[labeled], x[~labeled], known_in_unlabeled=True)
    assert found.number == novel


def test_with_few_items_of_a_class_known_ones_are_subtracted() -> None:
    x, y = blobs(8, 12, seed=1)
    labeled = (y < 5) & (np.arange(len(y)) % 2 == 0)
    everything = estimate_classes(x[labeled], y[labeled], x[~labeled])
    found = estimate_classes(x[labeled], y[labeled], x[~labeled], known_in_unlabeled=True)
    assert everything.number > 6
    assert found.number == everything.number - 5
    assert found.curves[0].best == found.number
    assert min(found.curves[0].numbers) == 1


@pytest.mark.parametrize("known", [1, 3])
@pytest.mark.parametrize("strangers", [0, 1, 2])
def test_hardly_any_item_is_novel(known: int, strangers: int) -> None:
    x, y = blobs(known, 200, seed=3)
    labeled = np.arange(len(y)) % 2 == 0
    x[np.flatnonzero(~labeled)[:strangers]] += 1000
    found = estimate_classes(x[labeled], y[labeled], x[~labeled], known_in_unlabeled=True)
    assert found.low <= found.number <= found.high
    assert found.number in range(1, 4 if known > 1 else 50)  # one known class says little about what a class is


def test_many_novel_classes_beside_few_labels() -> None:
    x, y = blobs(22, 200, seed=5)
    labeled = (y < 2) & (np.arange(len(y)) % 5 == 0)
    found = estimate_classes(x[labeled], y[labeled], x[~labeled], known_in_unlabeled=True)
    assert 16 <= found.number <= 24


def test_without_known_classes_compact_clusters_count() -> None:
    x, _ = blobs(4, 50)
    none = np.empty(0, dtype=np.int64)
    assert estimate_classes(x[:0], none, x).number == 4
    same = np.ones((30, 3), dtype=np.float32)
    assert estimate_classes(same[:0], none, same).number == 1
    assert estimate_classes(same[:0], none, same[:1]).number == 1


def test_imbalance_is_told() -> None:
    assert unbalanced([100, 10])
    assert not unbalanced([100, 30])
    assert not unbalanced([5])
    told = Estimate(2, 2, 3, (), (100, 10)).sentence()
    assert "about 2 novel classes, between 2 and 3" in told
    assert "10 times" in told
    assert "unbalanced" not in Estimate(1, 1, 1, (), (9,)).sentence()


@pytest.mark.parametrize(("number", "items", "message"), [(0, 5, "1 or more"), (6, 5, "fewer classes or more items")])
def test_a_count_that_cannot_be(number: int, items: int, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        check_count(number, items)
    check_count(items, items)
