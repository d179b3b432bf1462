"""`Clusterer`: the interface of algorithms that cluster vectors and train nothing.

A clusterer sees vectors and labels, never a loader, a network or an epoch. What it returns can label new items.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unveil.clustering.vote import NeighborVote
from unveil.numerics import Labels, Matrix, sums_by_label
from unveil.settings import MethodSettings


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Known classes that were hidden and found again."""

    hidden: int
    """How many classes were hidden."""
    accuracy: float
    certainty: Matrix
    """(m,): of each row of the hidden classes."""
    correct: NDArray[np.bool_]
    """(m,): whether the row is in the right cluster."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What speaks for a clustering."""

    clusters: int
    names: tuple[str, ...] = ()
    """Of the partitions that voted."""
    weights: tuple[float, ...] = ()
    agreement: float = 1.0
    """Mean certainty of all rows."""
    rehearsals: tuple[Rehearsal, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Clustering:
    """The clusters of the unlabeled rows."""

    labels: Labels
    """(n_u,): the cluster of each unlabeled row, from 0."""
    certainty: Matrix
    """(n_u,): how sure the clusterer is of it, 0 to 1, before calibration."""
    head: NeighborVote | nn.Linear
    """Turns vectors (B, d) into logits (B, clusters)."""
    evidence: Evidence | None = None
    """Where the clusterer has rehearsed: what speaks for these clusters."""


def with_known(head: NeighborVote | nn.Linear, z: Matrix, labels: Labels, n_known: int) -> NeighborVote | nn.Linear:
    """A head over known classes and then clusters, for unlabeled rows that may be of either.

    `z` and `labels` are the rows of known classes: those that came with a label, and those recognized as known.
    """
    if isinstance(head, NeighborVote):
        return head.with_known(z, labels, n_known)
    sizes = np.bincount(labels, minlength=n_known)
    means = sums_by_label(z, labels, n_known) / np.maximum(sizes, 1)[:, None]
    return nearest_center(np.concatenate([means.astype(np.float32), head.weight.detach().numpy() / 2]))


def nearest_center(centers: Matrix) -> nn.Linear:
    """A head that predicts the nearest center: |z − c|² is smallest where 2 z·c − |c|² is largest."""
    head = nn.Linear(centers.shape[1], len(centers))
    with torch.no_grad():
        head.weight.copy_(2 * torch.from_numpy(centers))
        head.bias.copy_(-torch.from_numpy(centers).square().sum(dim=1))
    return head


class Clusterer:
    """Clusters the unlabeled rows of a matrix. A subclass has settings and `fit`."""

    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    """Its settings dataclass: the table `[method]` of a recipe."""
    title: ClassVar[str] = ""
    """Its row in a table of scores, where its name would not say enough."""
    description: ClassVar[str] = ""
    """In a few words, for people."""

    def __init__(self, settings: MethodSettings) -> None:
        self.settings = settings

    def fit(self, z: Matrix, labels: Labels, n_novel: int, seed: int) -> Clustering:
        """Cluster the rows of z (n, d) with label -1; the other rows are of known classes, counted from 0."""
        raise NotImplementedError

    def fit_weighed(
        self, z: Matrix, labels: Labels, n_novel: int, seed: int, *, unscaled: Matrix, rehearsals: int
    ) -> Clustering:
        """The same for a clusterer that scales the vectors in several ways and hides known classes to weigh them.

        `unscaled` (n, D): the vectors before they were scaled. `rehearsals`: how often known classes may be hidden.
        """
        return self.fit(z, labels, n_novel, seed)
