"""Classifiers on top of the features, and how each kind is described in a file and built again."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil.clustering.vote import NeighborVote
from unveil.errors import UnveilError


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
        first, last = nn.Linear(in_features, hidden), nn.Linear(hidden, projection)
        self.project = nn.Sequential(first, nn.BatchNorm1d(hidden), nn.ReLU(), last)
        self.prototypes = Prototypes(projection, out_features, temperature)

    def forward(self, z: Tensor) -> Tensor:
        logits: Tensor = self.prototypes(self.project(z))
        return logits


Head = nn.Linear | Prototypes | ProjectedPrototypes | NeighborVote
"""Whatever turns features (B, D) into logits (B, C); all have `in_features` and `out_features`."""
KINDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "linear": (nn.Linear, ()),
    "prototypes": (Prototypes, ("temperature",)),
    "projected prototypes": (ProjectedPrototypes, ("hidden", "projection", "temperature")),
    "neighbor vote": (NeighborVote, ("rows", "neighbors")),
}
"""The kinds of heads in saved models, and what each is made from beside its sizes."""


class Heads(nn.Module):
    """Heads without an encoder, for vectors that no network has to turn into features."""

    def __init__(self, known_head: Head, novel_head: Head) -> None:
        super().__init__()
        self.known_head: Head = known_head
        self.novel_head: Head = novel_head

    def encode(self, x: Tensor) -> Tensor:
        """The vectors themselves."""
        return x

    def joint(self, z: Tensor) -> None:
        """The two heads are not on one scale."""
        return

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(chain(self.known_head.parameters(), self.known_head.buffers())).device


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
    for kind, (head_class, names) in KINDS.items():
        if isinstance(head, head_class):
            sizes = {"inputs": head.in_features, "classes": head.out_features}
            values = {name: len(head.points) if name == "rows" else getattr(head, name) for name in names}
            return {"kind": kind, **sizes, **values}
    raise UnveilError(
        f"a head of type {type(head).__name__} cannot be saved: use one of the kinds in unveil/models/heads.py, or "
        "enter the new one there in `KINDS`"
    )


def build_head(description: Mapping[str, Any]) -> Head:
    """A fresh head from what `describe_head` gave."""
    values = dict(description)
    kind, sizes = values.pop("kind"), (values.pop("inputs"), values.pop("classes"))
    if kind not in KINDS:
        raise UnveilError(f"unknown kind of head '{kind}'")
    return KINDS[kind][0](*sizes, **values)  # type: ignore[no-any-return]


@torch.no_grad()
def start_from_clusters(
    head: nn.Linear, z: Tensor, labels: Tensor, spread: float = 10.0, *, round_clusters: bool = True
) -> None:
    """Set the head so that its argmax is the cluster whose mean of the normalized features `z` is nearest.

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
    head.weight.copy_(weights * scale / z.norm(dim=1).mean().clamp_min(1e-6))  # z itself is not normalized
    head.bias.copy_(offsets * scale)


def _shrunk_covariance(residuals: Tensor, shrinkage: float = 0.1) -> Tensor:
    """(D, D): the covariance of residuals (n, D), moved toward that of a round cloud so that it can be inverted."""
    covariance = residuals.T @ residuals / max(1, len(residuals))
    mean = covariance.diagonal().mean().clamp_min(1e-12)
    return covariance + shrinkage * mean * torch.eye(len(covariance), device=residuals.device)
