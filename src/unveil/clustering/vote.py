"""A head that labels an item by the clusters of its nearest neighbors."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil.numerics import ANGLES_FROM, Labels, Matrix, directions

VOTERS = 256
"""Items whose distances to all stored points are computed together: what they need stays in a CPU's cache."""
GROUP = 32
"""Stored points of which only the nearest is looked at, unless it is near enough."""

SAME = 1e-2
"""A point that is nearer than this share of the distance to the farthest neighbor is the same item."""


class NeighborVote(nn.Module):
    """The clusters of an item's nearest stored points, the nearer the more; logits are logarithms of the shares.

    With few columns nearness is distance, with more it is the angle. A point whose own cluster is not certain gives a
    part of its vote to all clusters alike.
    """

    points: Tensor
    labels: Tensor
    certainty: Tensor
    keeps: Tensor
    """Whether an item that is one of the points has its cluster, whatever its neighbors say."""

    def __init__(self, in_features: int, out_features: int, *, rows: int, neighbors: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.neighbors = in_features, out_features, neighbors
        self.register_buffer("points", torch.zeros(rows, in_features))
        self.register_buffer("labels", torch.zeros(rows, dtype=torch.int64))
        self.register_buffer("certainty", torch.ones(rows))
        self.register_buffer("keeps", torch.tensor(False))

    @staticmethod
    def of(points: Matrix, labels: Labels, certainty: Matrix, classes: int, neighbors: int) -> "NeighborVote":
        """The vote of these points."""
        return NeighborVote._stored(directions(points), labels, certainty, classes, neighbors)

    def keeping(self) -> "NeighborVote":
        """The same vote, in which the points themselves keep their clusters."""
        self.keeps.fill_(True)
        return self

    @staticmethod
    def _stored(points: Matrix, labels: Labels, certainty: Matrix, classes: int, neighbors: int) -> "NeighborVote":
        head = NeighborVote(points.shape[1], classes, rows=len(points), neighbors=neighbors)
        for buffer, values in ((head.points, points), (head.labels, labels), (head.certainty, certainty)):
            buffer.copy_(torch.from_numpy(values))
        return head

    def with_known(self, z: Matrix, labels: Labels, n_known: int) -> "NeighborVote":
        """The vote of these points and of rows of known classes, whose labels come before the clusters."""
        points = np.concatenate([directions(z), self.points.numpy()])
        classes = np.concatenate([labels, n_known + self.labels.numpy()])
        certainty = np.concatenate([np.ones(len(z), dtype=np.float32), self.certainty.numpy()])
        return NeighborVote._stored(points, classes, certainty, n_known + self.out_features, self.neighbors)

    def forward(self, z: Tensor) -> Tensor:
        parts = [self._logits(z[start : start + VOTERS]) for start in range(0, len(z), VOTERS)]
        return torch.cat(parts) if parts else z.new_zeros(0, self.out_features)

    def _logits(self, z: Tensor) -> Tensor:
        count = min(self.neighbors + 1, len(self.points))
        z = F.normalize(z, dim=1) if self.in_features >= ANGLES_FROM else z
        distances, nearest = nearest_points(z, self.points, count)  # (B, k + 1)
        farthest = distances[:, -1:].clamp_min(1e-12)
        weights = (1 - (distances / farthest).square()).clamp_min(1e-6)  # falls to 0 where the next point would join
        same = (distances <= SAME * farthest) & self.keeps
        weights = torch.where(same.any(dim=1, keepdim=True), same.float(), weights)
        weights = weights / weights.sum(dim=1, keepdim=True)
        weights = weights * self.certainty[nearest]
        shares = z.new_zeros(len(z), self.out_features).scatter_add_(1, self.labels[nearest], weights)
        return (shares + (1 - weights.sum(dim=1, keepdim=True)) / self.out_features + 1e-3).log()


def nearest_points(z: Tensor, points: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Distances (B, count) of the nearest points (n, D) to each row of z (B, D), nearest first, and their rows.

    It is exact: the nearest points are in the groups whose own nearest points are nearest, and only those groups are
    sorted. Sorting all n distances would take as long as computing them.
    """
    apart = torch.addmm(points.square().sum(dim=1)[None], z, points.T, alpha=-2)  # squared, without the square of z
    grouped = len(points) - len(points) % GROUP
    if grouped // GROUP < count:
        values, rows = apart.topk(count, dim=1, largest=False)
    else:
        groups = apart[:, :grouped].view(len(z), -1, GROUP).amin(dim=2).topk(count, dim=1, largest=False).indices
        inside = torch.arange(GROUP, device=z.device)
        others = torch.arange(grouped, len(points), device=z.device).expand(len(z), -1)
        candidates = torch.cat([(groups[:, :, None] * GROUP + inside).flatten(1), others], dim=1)
        values, order = apart.gather(1, candidates).topk(count, dim=1, largest=False)
        rows = candidates.gather(1, order)
    return (values + z.square().sum(dim=1, keepdim=True)).clamp_min(0).sqrt(), rows
