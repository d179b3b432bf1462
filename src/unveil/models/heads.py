"""Classifiers on top of the features, and how each kind is described in a file and built again."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil.errors import UnveilError
from unveil.numerics import ANGLES_FROM, Labels, Matrix, directions

VOTERS = 256
"""Items whose distances to all stored points are computed together: what they need stays in a CPU's cache."""
GROUP = 32
"""Stored points of which only the nearest is looked at, unless it is near enough."""


class Prototypes(nn.Module):
    """Cosines to one direction per class, divided by a temperature."""

    def __init__(self, in_features: int, out_features: int, temperature: float = 0.1) -> None:
        super().__init__()
        self.in_features, self.out_features, self.temperature = in_features, out_features, temperature
        self.weight = nn.Parameter(F.normalize(torch.randn(out_features, in_features), dim=1))

    def forward(self, z: Tensor) -> Tensor:
        return F.normalize(z, dim=1) @ F.normalize(self.weight, dim=1).T / self.temperature


class ProjectedPrototypes(nn.Module):
    """Prototypes behind a small network: linear, BatchNorm, ReLU, linear."""

    def __init__(
        self, in_features: int, out_features: int, *, hidden: int, projection: int, temperature: float = 0.1
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.hidden, self.projection, self.temperature = hidden, projection, temperature
        self.project = nn.Sequential(
            nn.Linear(in_features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, projection)
        )
        self.prototypes = Prototypes(projection, out_features, temperature)

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.prototypes(self.project(z))
        return logits


class NeighborVote(nn.Module):
    """The clusters of an item's nearest stored points, the nearer the more; logits are logarithms of the shares.

    With few columns nearness is distance, with more it is the angle. A point whose own cluster is not certain gives a
    part of its vote to all clusters alike.
    """

    points: Tensor
    labels: Tensor
    certainty: Tensor

    def __init__(self, in_features: int, out_features: int, *, rows: int, neighbors: int) -> None:
        super().__init__()
        self.in_features, self.out_features, self.neighbors = in_features, out_features, neighbors
        self.register_buffer("points", torch.zeros(rows, in_features))
        self.register_buffer("labels", torch.zeros(rows, dtype=torch.int64))
        self.register_buffer("certainty", torch.ones(rows))

    @staticmethod
    def of(points: Matrix, labels: Labels, certainty: Matrix, classes: int, neighbors: int) -> "NeighborVote":
        """The vote of these points."""
        head = NeighborVote(points.shape[1], classes, rows=len(points), neighbors=neighbors)
        for buffer, values in ((head.points, directions(points)), (head.labels, labels), (head.certainty, certainty)):
            buffer.copy_(torch.from_numpy(values))
        return head

    def forward(self, z: Tensor) -> Tensor:
        parts = [self._logits(z[start : start + VOTERS]) for start in range(0, len(z), VOTERS)]
        return torch.cat(parts) if parts else z.new_zeros(0, self.out_features)

    def _logits(self, z: Tensor) -> Tensor:
        count = min(self.neighbors + 1, len(self.points))
        z = F.normalize(z, dim=1) if self.in_features >= ANGLES_FROM else z
        distances, nearest = nearest_points(z, self.points, count)  # (B, k + 1)
        farthest = distances[:, -1:].clamp_min(1e-12)
        weights = (1 - (distances / farthest).square()).clamp_min(1e-6)  # falls to 0 where the next point would join
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


Head = nn.Linear | Prototypes | ProjectedPrototypes | NeighborVote
"""Whatever turns features (B, D) into logits (B, C); all have `in_features` and `out_features`."""


def linear_head(dim: int, classes: int, generator: torch.Generator) -> nn.Linear:
    """A head with PyTorch's usual initial spread, drawn from the given generator."""
    head = nn.Linear(dim, classes)
    bound = dim**-0.5
    with torch.no_grad():
        head.weight.uniform_(-bound, bound, generator=generator)
        head.bias.uniform_(-bound, bound, generator=generator)
    return head


@torch.no_grad()
def prototypes_of(head: nn.Module, temperature: float) -> Prototypes:
    """Prototypes in the directions of a linear head."""
    assert isinstance(head, nn.Linear)
    prototypes = Prototypes(head.in_features, head.out_features, temperature).to(head.weight.device)
    prototypes.weight.copy_(F.normalize(head.weight, dim=1))
    return prototypes


def drawn(seed: int, description: Mapping[str, Any]) -> Head:
    """A head of any kind, drawn from a seed and not from the global stream."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build_head(description)


def describe_head(head: nn.Module) -> dict[str, Any]:
    """Kind and sizes of a head, for a JSON file."""
    match head:
        case nn.Linear():
            return {"kind": "linear", "inputs": head.in_features, "classes": head.out_features}
        case Prototypes():
            sizes = {"inputs": head.in_features, "classes": head.out_features}
            return {"kind": "prototypes", **sizes, "temperature": head.temperature}
        case ProjectedPrototypes():
            sizes = {"inputs": head.in_features, "classes": head.out_features}
            inner = {"hidden": head.hidden, "projection": head.projection}
            return {"kind": "projected prototypes", **sizes, **inner, "temperature": head.temperature}
        case NeighborVote():
            sizes = {"inputs": head.in_features, "classes": head.out_features}
            return {"kind": "neighbor vote", **sizes, "rows": len(head.points), "neighbors": head.neighbors}
    raise UnveilError(
        f"a head of type {type(head).__name__} cannot be saved: use one of the kinds in unveil/models/heads.py, or "
        "enter the new one there in `describe_head` and `build_head`"
    )


def build_head(description: Mapping[str, Any]) -> Head:
    """A fresh head from what `describe_head` gave."""
    values = dict(description)
    kind, sizes = values.pop("kind"), (values.pop("inputs"), values.pop("classes"))
    match kind:
        case "linear":
            return nn.Linear(*sizes, **values)
        case "prototypes":
            return Prototypes(*sizes, **values)
        case "projected prototypes":
            return ProjectedPrototypes(*sizes, **values)
        case "neighbor vote":
            return NeighborVote(*sizes, **values)
    raise UnveilError(f"unknown kind of head '{kind}'")


@torch.no_grad()
def start_from_clusters(
    head: nn.Linear, z: Tensor, labels: Tensor, spread: float = 10.0, *, round_clusters: bool = True
) -> None:
    """Set the head so that its argmax is the cluster whose mean of the normalised features `z` is nearest.

    |z − c|² is smallest where z·c − |c|²/2 is largest; the scale makes the logits of a sample differ by about
    `spread`, so that the first predictions are neither uniform nor saturated. Where clusters are not round, distances
    are measured in units of the spread within clusters (linear discriminant analysis).
    """
    unit = F.normalize(z.float(), dim=1)
    member = F.one_hot(labels.long(), head.out_features).to(unit)  # (n, C)
    centers = member.T @ unit / member.sum(dim=0)[:, None].clamp_min(1)
    weights = centers if round_clusters else torch.linalg.solve(_shrunk_covariance(unit - centers[labels]), centers.T).T
    offsets = -(centers * weights).sum(dim=1) / 2
    logits = unit @ weights.T + offsets
    scale = spread / (logits.amax(dim=1) - logits.amin(dim=1)).mean().clamp_min(1e-6)
    head.weight.copy_(weights * scale / z.norm(dim=1).mean().clamp_min(1e-6))  # z itself is not normalised
    head.bias.copy_(offsets * scale)


def _shrunk_covariance(residuals: Tensor, shrinkage: float = 0.1) -> Tensor:
    """(D, D): the covariance of residuals (n, D), moved toward that of a round cloud so that it can be inverted."""
    covariance = residuals.T @ residuals / max(1, len(residuals))
    mean = covariance.diagonal().mean().clamp_min(1e-12)
    return covariance + shrinkage * mean * torch.eye(len(covariance), device=residuals.device)
