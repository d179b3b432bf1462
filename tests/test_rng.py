"""Random draws are functions of (seed, purpose, epoch, step) and of nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unveil import rng

moments = st.tuples(st.integers(-5, 2**40), st.text(max_size=8), st.integers(0, 10**6), st.integers(0, 10**6))


@given(a=moments, b=moments)
def test_different_moments_have_different_numbers(a: tuple[int, str, int, int], b: tuple[int, str, int, int]) -> None:
    assert 0 <= rng.number(*a) < 2**63
    assert (rng.number(*a) == rng.number(*b)) == (a == b)


@pytest.mark.parametrize(
    "other", [(1, "order", 2, 3), (0, "view", 2, 3), (0, "order", 1, 3), (0, "order", 2, 0), (0, "order", 3, 2)]
)
def test_each_argument_counts(other: tuple[int, str, int, int]) -> None:
    assert rng.number(0, "order", 2, 3) != rng.number(*other)


@pytest.mark.parametrize(
    ("moment", "value"), [((0, "order"), 6051863942060965014), ((5, "view0", 12, 345), 4655347893331670689)]
)
def test_numbers_are_the_same_on_every_machine(moment: tuple[int, str], value: int) -> None:
    assert rng.number(*moment) == value


def test_streams_repeat_and_do_not_touch_the_global_ones() -> None:
    torch.manual_seed(7)
    np.random.seed(7)
    expected = torch.rand(3), np.random.rand(3)
    torch.manual_seed(7)
    np.random.seed(7)
    draws = [torch.rand(4, generator=rng.generator(1, "a", 2, 3)).tolist() for _ in range(2)]
    arrays = [rng.numpy(1, "a", 2, 3).random(4).tolist() for _ in range(2)]
    assert draws[0] == draws[1]
    assert arrays[0] == arrays[1]
    assert draws[0] != torch.rand(4, generator=rng.generator(1, "a", 2, 4)).tolist()
    torch.manual_seed(7)
    rng.generator(1, "a")
    assert torch.equal(torch.rand(3), expected[0])
    assert np.array_equal(np.random.rand(3), expected[1])
