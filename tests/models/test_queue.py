"""The queue against a plain list, and the products kept beside it against the full product."""

from collections import deque

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unveil.models.queue import Products, Queue

thorough = settings(max_examples=60, deadline=None, derandomize=True)
pushes = st.lists(st.integers(0, 20), max_size=12)


def numbered(first: int, count: int) -> tuple[Tensor, Tensor]:
    """`count` features of different directions and lengths, and the numbers that name them."""
    y = torch.arange(first, first + count)
    angles = y * 0.01
    return torch.stack([angles.cos(), angles.sin()], dim=1) * (1 + y[:, None]), y


def direction(y: Tensor) -> Tensor:
    return torch.stack([(y * 0.01).cos(), (y * 0.01).sin()], dim=1)


@given(size=st.integers(1, 9), counts=pushes)
@thorough
def test_holds_the_last_ones_that_were_pushed(size: int, counts: list[int]) -> None:
    queue, expected, pushed = Queue(size, 2), deque[int](maxlen=size), 0
    for count in counts:
        z, y = numbered(pushed, count)
        before = queue.labels.clone()
        slots = queue.push(z, y)
        expected.extend(y.tolist())
        pushed += count
        assert len(queue) == len(expected) == min(pushed, size)
        assert sorted(queue.filled_labels().tolist()) == list(expected)
        torch.testing.assert_close(queue.filled(), direction(queue.filled_labels()))  # normalized, beside their labels
        assert {i for part in slots for i in range(part.start, part.stop)} == set(
            (before != queue.labels).nonzero()[:, 0].tolist()
        )


def test_wraps_around_over_the_oldest() -> None:
    queue = Queue(5, 2)
    for first, count in ((0, 3), (3, 3), (6, 3)):
        queue.push(*numbered(first, count))
    assert queue.filled_labels().tolist() == [5, 6, 7, 8, 4]


def test_a_batch_larger_than_the_queue_leaves_its_last_rows_in_order() -> None:
    queue = Queue(4, 2)
    queue.push(*numbered(0, 3))
    queue.push(*numbered(3, 11))
    assert sorted(queue.filled_labels().tolist()) == [10, 11, 12, 13]
    queue.push(*numbered(14, 2))  # 10 and 11 are the oldest
    assert sorted(queue.filled_labels().tolist()) == [12, 13, 14, 15]


def test_empty_slots_do_not_exist() -> None:
    queue = Queue(8, 2)
    assert queue.filled().shape == (0, 2)
    assert queue.filled_labels().shape == (0,)
    queue.push(*numbered(0, 3))
    assert queue.filled().shape == (3, 2)
    assert not bool((queue.filled() == 0).all(dim=1).any())


def test_unlabeled_features_have_no_label_even_where_one_was() -> None:
    queue = Queue(2, 2)
    queue.push(*numbered(0, 2))
    queue.push(numbered(2, 1)[0])
    assert queue.filled_labels().tolist() == [-1, 1]


@pytest.mark.parametrize("pushed", [0, 3, 5, 13])
def test_a_restored_queue_goes_on_like_the_first(pushed: int) -> None:
    queue, restored = Queue(5, 2), Queue(5, 2)
    for i in range(pushed):
        queue.push(*numbered(i, 1))
    restored.load_state_dict({name: value.clone() for name, value in queue.state_dict().items()})
    assert len(restored) == min(pushed, 5)
    for first, count in ((100, 2), (102, 4), (106, 1)):
        assert queue.push(*numbered(first, count)) == restored.push(*numbered(first, count))
        assert torch.equal(queue.filled(), restored.filled())
        assert torch.equal(queue.filled_labels(), restored.filled_labels())


def test_nothing_of_the_graph_is_kept() -> None:
    queue = Queue(4, 2)
    z = numbered(0, 2)[0].requires_grad_()
    queue.push(z)
    assert not queue.filled().requires_grad
    with torch.no_grad():
        z.zero_()
    assert bool((queue.filled().norm(dim=1) > 0.99).all())


@given(
    size_u=st.integers(1, 9),
    size_l=st.integers(1, 9),
    counts=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=10),
    seed=st.integers(0, 10**6),
    had=st.booleans(),
)
@thorough
def test_products_stay_the_full_product(
    size_u: int, size_l: int, counts: list[tuple[int, int]], seed: int, had: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    queue_u, queue_l, products = Queue(size_u, 4), Queue(size_l, 4), Products(size_u, size_l)
    for count_u, count_l in counts:
        u, l = (torch.randn(count, 4, generator=generator) for count in (count_u, count_l))  # noqa: E741
        stored = F.normalize(u, dim=1)[-size_u:] @ queue_l.filled().T if had else None
        slots_u, slots_l = queue_u.push(u), queue_l.push(l)
        products.refresh(queue_u, queue_l, slots_u, slots_l, stored)
        found = products.filled(queue_u, queue_l)
        assert found.shape == (len(queue_u), len(queue_l))
        torch.testing.assert_close(found, queue_u.filled() @ queue_l.filled().T)


def test_products_of_queues_that_start_filled_are_computed_at_once() -> None:
    queue_u, queue_l = (Queue(size, 4, torch.Generator().manual_seed(size)) for size in (3, 2))
    products = Products(3, 2)
    products.fill(queue_u, queue_l)
    torch.testing.assert_close(products.filled(queue_u, queue_l), queue_u.features @ queue_l.features.T)
    assert bool((products.block != 0).all())


def test_products_are_state() -> None:
    queue_u, queue_l, products = Queue(3, 4), Queue(2, 4), Products(3, 2)
    generator = torch.Generator().manual_seed(0)
    slots = [queue.push(torch.randn(5, 4, generator=generator)) for queue in (queue_u, queue_l)]
    products.refresh(queue_u, queue_l, *slots)
    restored = Products(3, 2)
    restored.load_state_dict(products.state_dict())
    expected = F.normalize(queue_u.filled(), dim=1) @ queue_l.filled().T
    torch.testing.assert_close(restored.filled(queue_u, queue_l), expected)


def test_a_queue_may_start_with_random_vectors() -> None:
    queue = Queue(50, 300, torch.Generator().manual_seed(1))
    assert len(queue) == 50
    assert not queue.replaced
    lengths = queue.filled().norm(dim=1)
    assert bool(((lengths - 1).abs() < 0.1).all())
    assert lengths.std() > 0
    assert abs(float(queue.filled().mean())) < 0.005
    assert queue.filled_labels().tolist() == [-1] * 50
    before = queue.filled().clone()
    assert queue.push(torch.ones(2, 300), torch.tensor([4, 5])) == [slice(0, 2)]
    assert queue.filled_labels().tolist() == [4, 5] + [-1] * 48
    assert torch.equal(queue.filled()[2:], before[2:])
    queue.push(torch.ones(48, 300))
    assert queue.replaced
