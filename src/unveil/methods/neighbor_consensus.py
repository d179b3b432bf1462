"""Neighbor consensus: clusters of the data's neighbor graph, for vectors that somebody else's encoder has made.

    unveil discover KNOWN NEW        (the default for vectors)

Neighborhood contrastive learning with the edges of the neighbor graph as positives places the unlabelled rows in a few
dimensions, for several sizes of the neighborhood. k-means clusters of all these places are combined into one partition.
Nothing is trained that could undo good clusters: the novel head is a vote of neighbors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from unveil import rng
from unveil.data.neighbor_graph import edge_weights, neighbor_graph
from unveil.methods.consensus import (
    average_labels,
    consensus,
    evenness,
    kmeans_from,
    kmeans_labels,
    most_agreed,
    share_that_agrees,
    ward_labels,
)
from unveil.methods.method import Context, Method
from unveil.methods.neighbor_embedding import embed
from unveil.models.heads import NeighborVote
from unveil.models.model import Model
from unveil.numerics import Labels, Matrix, sums_by_label, whitening, within_class_covariance
from unveil.settings import MethodSettings, expect

LEAST_LINEAR_ROWS, LINEAR_ROWS = 40, 4000
"""Fewest and most known rows on which it is tested whether classes are separated by planes or by neighbors."""
SHRINKAGE = 1.0
EQUAL_ROWS, EQUAL_DRAWS = 1500, 2
"""Known rows, and draws of them, that show which sizes k-means finds where classes are equally large."""


@dataclass(frozen=True, kw_only=True)
class NeighborConsensusSettings(MethodSettings):
    """Graphs and partitions."""

    neighbors: tuple[int, ...] = (15, 25, 40)
    """Neighbors of a row in each graph that is embedded."""
    dimensions: tuple[int, ...] = (16, 12, 16)
    """Dimensions of the embedding of each graph."""
    starts: int = 3
    """k-means runs on each embedding, besides the one that starts from a Ward tree."""
    rows: int = 20_000
    """Rows that are embedded; the others follow the vote of their neighbors."""
    vote: int = 15
    """Neighbors that vote on the cluster of an item."""

    unequal: float = 0.02
    """Sizes count as unequal where their evenness (entropy as a share of the largest) is by this much below that of
    equally large known classes; then average linkage is used, whose clusters may be of any size."""

    def __post_init__(self) -> None:
        expect(
            len(self.neighbors) == len(self.dimensions) > 0 and min(*self.neighbors, *self.dimensions, 1) >= 1,
            "give as many neighbors as dimensions, each 1 or more",
        )
        for name in ("starts", "rows", "vote"):
            expect(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}: give 1 or more")


class NeighborConsensus(Method):
    """The novel head is a vote of neighbors whose clusters are the consensus."""

    Settings: ClassVar[type[MethodSettings]] = NeighborConsensusSettings
    description = "consensus of many clusterings of the neighbor graph"
    trains = False
    starts_from_clusters = False

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        self.context, self.config = context, context.settings_as(NeighborConsensusSettings)

    @torch.no_grad()
    def after_epoch(self) -> None:
        """Find the clusters, and let them vote."""
        context, config, clusters = self.context, self.config, self.model.novel_head.out_features
        unlabelled = context.unlabelled
        if len(unlabelled) > config.rows:
            unlabelled = np.sort(rng.numpy(context.seed, "embedded rows").permutation(unlabelled)[: config.rows])
        labelled = context.labelled
        if len(labelled) > config.rows:
            labelled = np.sort(rng.numpy(context.seed, "labelled rows").permutation(labelled)[: config.rows])
        z, z_known = (context.features(rows).cpu().numpy() for rows in (unlabelled, labelled))
        labels, certainty = clusters_and_certainty(z, z_known, context.labels[labelled], clusters, config, context.seed)
        head = NeighborVote.of(z, labels, certainty, clusters, config.vote)
        self.model.novel_head = head.to(self.model.device)


def find_clusters(
    z: Matrix, z_known: Matrix, y_known: Labels, clusters: int, config: NeighborConsensusSettings, seed: int
) -> Labels:
    """(n,): the cluster of each row of z."""
    return clusters_and_certainty(z, z_known, y_known, clusters, config, seed)[0]


def clusters_and_certainty(
    z: Matrix, z_known: Matrix, y_known: Labels, clusters: int, config: NeighborConsensusSettings, seed: int
) -> tuple[Labels, Matrix]:
    """The cluster of each row of z, and the share of the partitions that agree with it: (n,) each."""
    if clusters < 2 or len(z) <= max(clusters, 10):
        return kmeans_labels(z, min(clusters, len(z)), seed), np.ones(len(z), dtype=np.float32)
    places = embeddings(z, config, seed)
    partitions = [labels for place in places for labels in kmeans_partitions(place, clusters, config, seed)]
    if unequal_sizes(partitions, z_known, y_known, clusters, config, seed):
        partitions = [average_labels(place, clusters, seed) for place in places]
        labels = most_agreed(partitions)
    else:
        labels = consensus(partitions, clusters, seed)
        if separated_by_planes(z_known, y_known, seed):
            labels = discriminant_kmeans(z, labels, z_known, y_known, clusters)
    return labels, share_that_agrees(labels, partitions)


def embeddings(z: Matrix, config: NeighborConsensusSettings, seed: int) -> list[Matrix]:
    """The rows of z placed in a few dimensions, once for each number of neighbors."""
    graph = neighbor_graph(z, max(config.neighbors))
    return [
        embed(edge_weights(graph.nearest(k)), min(dimensions, len(z) - 3), rng.number(seed, "embedding", number))
        for number, (k, dimensions) in enumerate(zip(config.neighbors, config.dimensions, strict=True))
    ]


def kmeans_partitions(places: Matrix, clusters: int, config: NeighborConsensusSettings, seed: int) -> list[Labels]:
    """k-means from a Ward tree, and k-means from random starts."""
    runs = [kmeans_labels(places, clusters, 100 * seed + start) for start in range(config.starts)]
    return [ward_labels(places, clusters, seed), *runs]


def unequal_sizes(
    partitions: Sequence[Labels],
    z_known: Matrix,
    y_known: Labels,
    clusters: int,
    config: NeighborConsensusSettings,
    seed: int,
) -> bool:
    """Whether sizes differ more than those that k-means finds for known classes of one size.

    k-means splits large classes and joins small ones, so that sizes that differ even then differ a lot.
    """
    found = float(np.mean([evenness(labels, clusters) for labels in partitions]))
    if found >= 1 - config.unequal:
        return False
    size = len(partitions[0]) // clusters
    return found < known_evenness(z_known, y_known, clusters, size, config, seed) - config.unequal


def known_evenness(
    z: Matrix, y: Labels, clusters: int, size: int, config: NeighborConsensusSettings, seed: int
) -> float:
    """Evenness of the sizes that k-means finds for as many known classes that are all of this size."""
    classes, counts = np.unique(y, return_counts=True)
    count = min(clusters, len(classes))
    if count < 2:
        return 1.0
    each = max(10, int(min(np.median(counts), size, EQUAL_ROWS // count)))
    middle = len(config.neighbors) // 2
    one = replace(config, neighbors=config.neighbors[middle:][:1], dimensions=config.dimensions[middle:][:1])
    found = []
    for number in range(EQUAL_DRAWS):
        draw = rng.numpy(seed, "equal sizes", number)
        chosen = draw.permutation(classes)[:count]
        rows = np.concatenate([draw.permutation(np.flatnonzero(y == label))[:each] for label in chosen])
        if len(rows) <= max(count, 10):
            return 1.0
        (places,) = embeddings(z[rows], one, rng.number(seed, "equal sizes", number))
        found += [evenness(labels, count) for labels in kmeans_partitions(places, count, config, seed)]
    return float(np.mean(found))


def separated_by_planes(z: Matrix, y: Labels, seed: int) -> bool:
    """Whether known items are recognised better by the nearest class mean, after whitening, than by their neighbors."""
    if len(y) < LEAST_LINEAR_ROWS or len(np.unique(y)) < 2:
        return False
    draw = rng.numpy(seed, "planes or neighbors")
    rows = draw.permutation(len(y))[:LINEAR_ROWS]
    z, y = z[rows], np.unique(y[rows], return_inverse=True)[1]
    fold, correct = draw.integers(2, size=len(y)), 0
    for part in (0, 1):
        fitted, tested = fold != part, fold == part
        present, index = np.unique(y[fitted], return_inverse=True)
        shaped = z @ whitening(within_class_covariance(z[fitted], index), SHRINKAGE)
        means = sums_by_label(shaped[fitted], index, len(present)) / np.bincount(index)[:, None]
        nearest = (np.square(means).sum(axis=1) - 2 * shaped[tested] @ means.T).argmin(axis=1)
        correct += int((present[nearest] == y[tested]).sum())
    neighbors = neighbor_graph(z, 15).neighbors
    votes = np.zeros((len(y), int(y.max()) + 1))
    np.add.at(votes, (np.repeat(np.arange(len(y)), neighbors.shape[1]), y[neighbors].ravel()), 1)
    return correct / len(y) > float((votes.argmax(axis=1) == y).mean())


def discriminant_kmeans(z: Matrix, labels: Labels, z_known: Matrix, y_known: Labels, clusters: int) -> Labels:
    """k-means from the clusters, whitened by the spread within known classes and clusters."""
    every = np.concatenate([z_known, z])
    index = np.unique(np.concatenate([y_known, labels + y_known.max() + 1]), return_inverse=True)[1]
    shaped = ((z - every.mean(axis=0)) @ whitening(within_class_covariance(every, index), SHRINKAGE)).astype(np.float32)
    centers = np.stack(
        [shaped[labels == c].mean(axis=0) if (labels == c).any() else shaped[c] for c in range(clusters)]
    )
    return kmeans_from(shaped, centers)
