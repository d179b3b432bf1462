"""Hard negatives from scalars against mixed vectors that are really built, and the fast form against the plain one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import literal
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import agree, normal
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from unveil.losses import hard_negatives
from unveil.losses.mixing import _hard_negatives

thorough = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)
dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fast(z: Tensor, queue_u: Tensor, queue_l: Tensor, **options: Any) -> Tensor:
    """The form for training, which is given the cosines; both queues at unit length."""
    z = F.normalize(z, dim=1)
    options = {"k_hard": 400, "rounds": 5, "mixes": (1 / 3, 2 / 3), **options}
    cosines = options.pop("cosines", (z @ queue_u.T, z @ queue_l.T))
    return _hard_negatives(*cosines, (queue_u, queue_l), **options)


def unit(seed: int, rows: int, dim: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return F.normalize(normal(seed, rows, dim, dtype=dtype), dim=1)


def weighted(cosines: Tensor) -> Tensor:
    """A scalar that changes with every one of the cosines, whatever their order in the row."""
    ordered = cosines.sort(dim=1, descending=True).values
    return (ordered * torch.linspace(1, 2, ordered.shape[1], dtype=ordered.dtype)).sum()


@dtypes
@given(
    batch=st.integers(1, 4),
    stored_u=st.integers(1, 12),
    stored_l=st.integers(1, 12),
    dim=st.integers(2, 16),
    k_easy=st.integers(1, 20),
    k_hard=st.integers(1, 60),
    rounds=st.integers(1, 3),
    mixes=st.sampled_from([(1 / 3, 2 / 3), (0.5,), (0.2, 0.5, 0.9)]),
    unit=st.booleans(),
    seed=seeds,
)
@thorough
def test_cosines_are_those_of_the_mixed_vectors(
    dtype: torch.dtype,
    batch: int,
    stored_u: int,
    stored_l: int,
    dim: int,
    k_easy: int,
    k_hard: int,
    rounds: int,
    mixes: tuple[float, ...],
    unit: bool,
    seed: int,
) -> None:
    z, queue_u, queue_l = (normal(seed + i, n, dim, dtype=dtype) for i, n in enumerate((batch, stored_u, stored_l)))
    if unit:
        queue_u, queue_l = F.normalize(queue_u, dim=1), F.normalize(queue_l, dim=1)
    # a labeled index belongs to a position in the unsorted list of easy ones: make both lists as the loss does
    k = min(k_easy, stored_u)
    zu = F.normalize(z, dim=1) @ queue_u.T * queue_u.square().sum(dim=1).rsqrt()
    easy = zu.topk(k, dim=1, largest=False, sorted=False).indices.tolist()
    assert [set(row) for row in easy] == [set(row) for row in literal.easiest(z.double(), queue_u.double(), k)]
    drawn = torch.randint(stored_l, (batch, rounds * k), generator=generator(seed)).tolist()
    options: dict[str, Any] = {"k_hard": k_hard, "mixes": mixes}
    agree(
        lambda z: weighted(
            hard_negatives(z, queue_u, queue_l, k_easy=k_easy, rounds=rounds, generator=generator(seed), **options)
        ),
        lambda z: weighted(
            literal.hard_negatives(z, queue_u.double(), queue_l.double(), easy=easy, drawn=drawn, **options)
        ),
        z,
    )


@dtypes
@given(batch=st.integers(1, 4), stored=st.integers(1, 15), k_easy=st.integers(1, 20), dim=st.integers(2, 8), seed=seeds)
@thorough
def test_with_one_labeled_entry_there_is_nothing_to_draw(
    dtype: torch.dtype, batch: int, stored: int, k_easy: int, dim: int, seed: int
) -> None:
    z, queue_u, queue_l = (normal(seed + i, n, dim, dtype=dtype) for i, n in enumerate((batch, stored, 1)))
    easy = literal.easiest(z.double(), queue_u.double(), k_easy)
    drawn = [[0] * 2 * len(row) for row in easy]
    agree(
        lambda z: weighted(hard_negatives(z, queue_u, queue_l, k_easy=k_easy, k_hard=7, rounds=2)),
        lambda z: weighted(
            literal.hard_negatives(
                z, queue_u.double(), queue_l.double(), easy=easy, drawn=drawn, k_hard=7, mixes=(1 / 3, 2 / 3)
            )
        ),
        z,
    )


def test_only_the_least_similar_entries_are_mixed() -> None:
    z, queue_u, queue_l = normal(0, 3, 8), normal(1, 30, 8), normal(2, 30, 8)
    cosines = F.cosine_similarity(z[:, None], queue_u[None], dim=2)
    expected = cosines.sort(dim=1).values[:, :10]
    found = hard_negatives(z, queue_u, queue_l, k_easy=10, k_hard=10, rounds=1, mixes=(1.0,))  # ζ = u
    torch.testing.assert_close(found.sort(dim=1).values, expected)


def test_the_hardest_mixtures_are_kept() -> None:
    z, queue_u, queue_l = normal(0, 3, 8), normal(1, 30, 8), normal(2, 30, 8)
    everything = hard_negatives(z, queue_u, queue_l, k_easy=10, k_hard=999, generator=generator())
    some = hard_negatives(z, queue_u, queue_l, k_easy=10, k_hard=17, generator=generator())
    assert everything.shape == (3, 2 * 5 * 10)
    torch.testing.assert_close(some.sort(dim=1).values, everything.sort(dim=1).values[:, -17:])


def test_mixing_a_vector_with_itself_gives_its_cosine() -> None:
    z, one = normal(0, 4, 8), normal(1, 1, 8)
    found = hard_negatives(z, one, one, mixes=(0.1, 0.5, 0.8))
    torch.testing.assert_close(found, F.cosine_similarity(z, one)[:, None].expand(4, 15))


def test_every_query_draws_its_own_labeled_entries() -> None:
    z = normal(0, 1, 8).repeat(2, 1)
    found = hard_negatives(z, normal(1, 20, 8), normal(2, 50, 8), k_easy=5, k_hard=50, generator=generator())
    assert not torch.allclose(found[0].sort().values, found[1].sort().values)


def test_the_generator_decides() -> None:
    z, queue_u, queue_l = normal(0, 3, 8), normal(1, 30, 8), normal(2, 30, 8)
    draws = [hard_negatives(z, queue_u, queue_l, k_easy=9, generator=generator(seed)) for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0].sort().values, draws[2].sort().values)


@dtypes
@given(
    batch=st.integers(0, 4),
    stored_u=st.integers(0, 12),
    stored_l=st.integers(0, 12),
    dim=st.integers(2, 16),
    k_easy=st.integers(0, 20),
    k_hard=st.integers(0, 60),
    rounds=st.integers(1, 3),
    mixes=st.sampled_from([(1 / 3, 2 / 3), (0.5,), (0.2, 0.5, 0.9)]),
    with_products=st.booleans(),
    seed=seeds,
)
@thorough
def test_the_fast_form_is_the_plain_one(
    dtype: torch.dtype,
    batch: int,
    stored_u: int,
    stored_l: int,
    dim: int,
    k_easy: int,
    k_hard: int,
    rounds: int,
    mixes: tuple[float, ...],
    with_products: bool,
    seed: int,
) -> None:
    z, queue_u, queue_l = (
        normal(seed, batch, dim, dtype=dtype),
        unit(seed + 1, stored_u, dim),
        unit(seed + 2, stored_l, dim),
    )
    options: dict[str, Any] = {"k_easy": k_easy, "k_hard": k_hard, "rounds": rounds, "mixes": mixes}
    stored = queue_u.to(dtype), queue_l.to(dtype)
    products = stored[0] @ stored[1].T if with_products else None
    assert fast(z, *stored, **options).shape == hard_negatives(z, *stored, **options).shape
    agree(
        lambda z: weighted(fast(z, *stored, generator=generator(seed), products=products, **options)) + 0 * z.sum(),
        lambda z: weighted(hard_negatives(z, queue_u, queue_l, generator=generator(seed), **options)),
        z,
    )


def test_long_queues_are_multiplied_pair_by_pair() -> None:
    z, queue_u, queue_l = normal(0, 2, 16), unit(1, 700, 16), unit(2, 600, 16)
    options: dict[str, Any] = {"k_easy": 3, "k_hard": 20, "rounds": 2}
    assert 700 * 600 > 64 * 2 * 3 * 2  # more than are kept in a block
    one = fast(z, queue_u, queue_l, generator=generator(), **options)
    other = fast(z, queue_u, queue_l, generator=generator(), products=queue_u @ queue_l.T, **options)
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one, hard_negatives(z, queue_u, queue_l, generator=generator(), **options))


def test_cosines_from_the_caller_change_nothing() -> None:
    z, queue_u, queue_l = normal(0, 3, 16), unit(1, 30, 16), unit(2, 20, 16)
    query = F.normalize(z, dim=1)
    cosines = query @ queue_u.T, query @ queue_l.T
    options: dict[str, Any] = {"k_easy": 10, "k_hard": 15}
    one = hard_negatives(z, queue_u, queue_l, generator=generator(), **options)
    other = fast(z, queue_u, queue_l, generator=generator(), cosines=cosines, **options)
    torch.testing.assert_close(one.sort().values, other.sort().values)
    for wrong in ((cosines[0].flip(1), cosines[1]), (cosines[0], cosines[1].flip(1))):
        found = fast(z, queue_u, queue_l, generator=generator(), cosines=wrong, **options)
        assert not torch.allclose(one.sort().values, found.sort().values)


@pytest.mark.parametrize("part", [False, True], ids=["full queue", "part of a larger block"])
def test_products_from_the_caller_change_nothing(part: bool) -> None:
    z, queue_u, queue_l = normal(0, 3, 8), unit(1, 30, 8), unit(2, 20, 8)
    products = queue_u @ queue_l.T
    if part:
        block = torch.full((40, 50), 9.0, dtype=z.dtype)
        block[:30, :20] = products
        products = block[:30, :20]
    options: dict[str, Any] = {"k_easy": 9, "k_hard": 30}
    expected = hard_negatives(z, queue_u, queue_l, generator=generator(), **options).sort().values
    found = fast(z, queue_u, queue_l, generator=generator(), products=products, **options).sort().values
    torch.testing.assert_close(found, expected)
    wrong = fast(z, queue_u, queue_l, generator=generator(), products=products + 1, **options).sort().values
    assert not torch.allclose(wrong, expected)


@pytest.mark.parametrize(
    "change",
    [{"batch": 0}, {"stored_u": 0}, {"stored_l": 0}, {"rounds": 0}, {"mixes": ()}, {"k_easy": 0}, {"k_hard": 0}],
    ids=lambda change: next(iter(change)),
)
def test_nothing_to_mix_gives_no_negatives(change: dict[str, Any]) -> None:
    sizes = {"batch": 3, "stored_u": 6, "stored_l": 6}
    options = {name: value for name, value in change.items() if name not in sizes}
    batch, stored_u, stored_l = (change.get(name, size) for name, size in sizes.items())
    found = hard_negatives(torch.ones(batch, 4), torch.ones(stored_u, 4), torch.ones(stored_l, 4), **options)
    assert found.numel() == 0
    assert len(found) == batch


def test_queues_are_constants_to_the_gradient() -> None:
    z, queue_u, queue_l = (normal(i, n, 8).requires_grad_() for i, n in enumerate((3, 9, 9)))
    found = hard_negatives(z, queue_u, queue_l, k_easy=5, k_hard=5)
    gradients = torch.autograd.grad(found.sum(), (z, queue_u, queue_l), allow_unused=True)
    assert gradients[0] is not None
    assert float(gradients[0].abs().max()) > 1e-3
    assert gradients[1:] == (None, None)


def test_the_length_of_a_query_does_not_matter() -> None:
    z, queue_u, queue_l = normal(0, 3, 8), normal(1, 30, 8), normal(2, 20, 8)
    found = [hard_negatives(scale * z, queue_u, queue_l, k_easy=9, generator=generator()) for scale in (1, 1000)]
    torch.testing.assert_close(found[0].sort().values, found[1].sort().values)


@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_degenerate_input_stays_finite(fill: float) -> None:
    z = torch.full((3, 4), fill, requires_grad=True)
    found = hard_negatives(z, torch.full((6, 4), fill), torch.zeros(6, 4))
    assert bool(found.isfinite().all())
    assert found.abs().max().item() <= 1 + 1e-5
    (gradient,) = torch.autograd.grad(found.sum(), z)
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
@dtypes
def test_opposite_vectors_that_cancel_make_no_cosine_beyond_one(noise: float, dtype: torch.dtype) -> None:
    z, queue_u = normal(0, 4, 16, dtype=dtype), F.normalize(normal(1, 20, 16, dtype=dtype), dim=1)
    queue_l = F.normalize(-queue_u + noise * normal(2, 20, 16, dtype=dtype), dim=1)
    found = hard_negatives(z, queue_u, queue_l, k_easy=20, k_hard=999, rounds=20, mixes=(0.5,), generator=generator())
    assert float(found.abs().max()) <= 1.1
    found = fast(z, queue_u, queue_l, k_easy=20, k_hard=999, rounds=20, mixes=(0.5,), generator=generator())
    assert float(found.abs().max()) <= 1.1


def peak_memory(step: Callable[[], object], trace: Path) -> float:
    """Megabytes that torch holds at most during a step, above what it held before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    recorded.export_chrome_trace(str(trace))
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    totals = [event["args"]["Total Allocated"] for event in events]
    return (max(totals) - totals[0] + events[0]["args"]["Bytes"]) / 1e6


def test_memory_at_the_size_of_imagenet_batches(tmp_path: Path) -> None:
    z = normal(0, 512, 512, dtype=torch.float32).requires_grad_()
    queue_u, queue_l = normal(1, 2000, 512, dtype=torch.float32), normal(2, 2000, 512, dtype=torch.float32)

    def scalars() -> None:
        hard_negatives(z, queue_u, queue_l, generator=generator()).sum().backward()  # type: ignore[no-untyped-call]

    def vectors() -> Tensor:  # what it takes to build the mixtures, for 16 of the 512 queries
        u, l = torch.randint(2000, (2, 16, 2000), generator=generator())  # noqa: E741
        mixed = torch.cat([mu * queue_u[u] + (1 - mu) * queue_l[l] for mu in (1 / 3, 2 / 3)], dim=1)
        return (F.normalize(mixed, dim=2) @ z.detach()[:16, :, None]).topk(400, dim=1).values

    assert peak_memory(vectors, tmp_path / "vectors.json") > 200
    assert peak_memory(scalars, tmp_path / "scalars.json") < 200


@pytest.mark.parametrize(("stored", "k"), [(30, 7), (30, 30), (5, 12)])
def test_distinct_partners_are_permutations(stored: int, k: int) -> None:
    """A mixture with μ near 0 is the labeled entry itself: which entries a round has drawn can be read off."""
    z, queue_l = normal(0, 1, 40), torch.eye(40, dtype=torch.float64)[:stored]
    queue_u = torch.eye(40, dtype=torch.float64)[-1:].repeat(k, 1)
    found = fast(
        z, queue_u, queue_l, k_easy=k, k_hard=k, rounds=1, mixes=(1e-9,), distinct=True, generator=generator(3)
    )
    cosines = (F.normalize(z, dim=1) @ queue_l.T)[0]
    counts = (found[0, :, None] - cosines).abs().lt(1e-6).sum(dim=0)  # how often each entry was drawn
    assert int(counts.sum()) == k
    assert int(counts.max()) == -(-k // stored)
    assert int(counts.min()) == k // stored


def test_squares_bring_the_mixtures_alone_to_unit_length() -> None:
    z, queue_u, queue_l = normal(1, 3, 8), normal(2, 9, 8), normal(3, 9, 8)
    options: dict[str, Any] = {"k_easy": 9, "k_hard": 90, "rounds": 2, "distinct": True}
    squares = queue_u.square().sum(dim=1), queue_l.square().sum(dim=1)
    found = fast(z, queue_u, queue_l, generator=generator(), squares=squares, **options)
    order = (F.normalize(z, dim=1) @ queue_u.T).argsort(dim=1)  # by the products, not by the cosines
    drawn = torch.rand(3, 2, 9, generator=generator()).argsort(dim=2).flatten(1)
    expected = literal.hard_negatives(
        z, queue_u, queue_l, easy=order.tolist(), drawn=drawn.tolist(), k_hard=90, mixes=(1 / 3, 2 / 3)
    )
    torch.testing.assert_close(found.sort(dim=1, descending=True).values, expected)
