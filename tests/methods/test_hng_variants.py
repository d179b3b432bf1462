"""The variants of hard negatives against mixed vectors that are really built."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from unveil.methods.hng_variants import variant
from unveil.methods.ncl import HNGSettings


def unit(seed: int, count: int, dim: int = 6) -> Tensor:
    return F.normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)), dim=1)


Z, U, L = unit(0, 4), unit(1, 30), unit(2, 20)


def run(name: str, **options: Any) -> tuple[Tensor, Tensor | None]:
    config = HNGSettings(variant=name, **{"k_easy": 8, "k_hard": 500, "rounds": 2, **options})  # type: ignore[arg-type]
    return variant(Z, Z @ U.T, U, L, config, 5, torch.Generator().manual_seed(3))


def mixtures(query: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Every cosine that a query could have to a mixture."""
    found = [mu * a + (1 - mu) * b for a in first for b in second for mu in (1 / 3, 2 / 3)]
    return F.cosine_similarity(query[None], torch.stack(found))


def easiest(row: int, k: int = 8) -> Tensor:
    return U[(Z[row] @ U.T).sort().indices[:k]]


def nearest(row: int, k: int = 8) -> Tensor:
    return L[(Z[row] @ L.T).sort(descending=True).indices[:k]]


def test_v1_removes_the_easiest() -> None:
    cosines, hard = run("v1")
    assert hard is None
    for row in range(len(Z)):
        left = cosines[row][cosines[row] > -1].sort().values
        torch.testing.assert_close(left, (Z[row] @ U.T).sort().values[8:])


def test_v2_puts_generated_ones_in_their_place() -> None:
    cosines, hard = run("v2")
    assert hard is not None
    assert hard.shape == (4, 2 * 2 * 8)
    assert int(torch.isinf(cosines).sum()) == 4 * 8


def test_v3_takes_labeled_ones_as_they_are() -> None:
    cosines, hard = run("v3")
    assert hard is not None
    assert hard.shape == (4, 8)
    assert torch.equal(cosines, Z @ U.T)
    for row in range(len(Z)):
        assert all(float((value - Z[row] @ L.T).abs().min()) < 1e-6 for value in hard[row])


@pytest.mark.parametrize("name", ["v4", "v5", "v6"])
def test_v4_to_v6_mix_what_the_paper_says(name: str) -> None:
    cosines, hard = run(name)
    assert hard is not None
    assert hard.shape == (4, 2 * 2 * 8)
    assert torch.equal(cosines, Z @ U.T)
    for row in range(len(Z)):
        first, second = {"v4": (L, L), "v5": (easiest(row), easiest(row)), "v6": (easiest(row), nearest(row))}[name]
        possible = mixtures(Z[row], first, second)
        assert all(float((value - possible).abs().min()) < 1e-5 for value in hard[row])


@pytest.mark.parametrize("name", ["v2", "v4", "v5", "v6"])
def test_only_the_hardest_are_kept(name: str) -> None:
    _, everything = run(name)
    _, some = run(name, k_hard=5)
    assert everything is not None
    assert some is not None
    torch.testing.assert_close(some.sort().values, everything.sort().values[:, -5:])


@pytest.mark.parametrize("name", ["v1", "v2", "v3", "v4", "v5", "v6"])
def test_an_empty_memory_changes_nothing(name: str) -> None:
    config = HNGSettings(variant=name)  # type: ignore[arg-type]
    cosines, hard = variant(Z, Z @ U.T, U, L[:0], config, 5, torch.Generator())
    assert hard is None
    assert torch.equal(cosines, Z @ U.T)
