"""The search behind the vote of neighbors: as all distances, sorted."""

import pytest
import torch

from unveil.clustering.vote import GROUP, VOTERS, NeighborVote, nearest_points


@pytest.mark.parametrize("points", [3, GROUP, 16 * GROUP - 1, 16 * GROUP, 40 * GROUP + 7])
def test_the_nearest_points_are_those_of_all_distances_sorted(points: int) -> None:
    draw = torch.Generator().manual_seed(points)
    stored, z = torch.randn(points, 5, generator=draw), torch.randn(50, 5, generator=draw)
    count = min(16, points)
    distances, rows = nearest_points(z, stored, count)
    expected = torch.cdist(z.double(), stored.double()).sort(dim=1)
    assert torch.equal(rows, expected.indices[:, :count])
    torch.testing.assert_close(distances, expected.values[:, :count].float(), atol=1e-4, rtol=1e-4)


def test_nearest_points_that_are_all_in_one_group_are_found() -> None:
    stored = torch.arange(64.0 * GROUP)[:, None]
    _, rows = nearest_points(torch.tensor([[40.2 * GROUP]]), stored, 8)
    assert sorted(rows[0].tolist()) == [1283, 1284, 1285, 1286, 1287, 1288, 1289, 1290]


def test_a_vote_does_not_depend_on_how_many_vote_together() -> None:
    draw = torch.Generator().manual_seed(0)
    points, labels = torch.randn(600, 4, generator=draw).numpy(), torch.arange(600) % 3
    head = NeighborVote.of(points, labels.numpy(), torch.ones(600).numpy(), 3, 15)
    z = torch.randn(VOTERS + 5, 4, generator=draw)
    together, one_by_one = head(z), torch.cat([head(row[None]) for row in z])
    torch.testing.assert_close(together, one_by_one, atol=1e-3, rtol=1e-3)
