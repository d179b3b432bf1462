"""Neighbor consensus: clusters of the data's neighbor graph, for vectors that somebody else's encoder has made.

    unveil discover KNOWN NEW        (the default for vectors)

Neighborhood contrastive learning with the edges of the neighbor graph as positives places the unlabeled rows in a few
dimensions, for several sizes of the neighborhood. k-means clusters of all these places are combined into one partition.
Nothing is trained that could undo good clusters: the novel head is a vote of neighbors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from unveil import rng
from unveil.clustering.clusterer import Clusterer, Clustering
from unveil.clustering.embedding import embed, needed_dimensions
from unveil.clustering.graph import NeighborGraph, cut_share, edge_weights, neighbor_graph
from unveil.clustering.known_head import SHRINKAGE, separated_by_planes
from unveil.clustering.partitions import (
    average_labels,
    consensus,
    evenness,
    kmeans_from,
    kmeans_labels,
    most_agreed,
    share_that_agrees,
    ward_labels,
)
from unveil.clustering.vote import NeighborVote
from unveil.data.items import Rows
from unveil.data.task import UNLABELED
from unveil.numerics import Labels, Matrix, directions, whitening, within_class_covariance
from unveil.settings import MethodSettings, expect

MORE, A_FEW = 1.05, 0.002
"""Clusters from embeddings of few dimensions are taken unless they are of unequal size, or cut so many times the edges
that the others cut, and this share of all edges."""
EQUAL_ROWS, EQUAL_DRAWS = 1500, 2
"""Known rows, and draws of them, that show which sizes k-means finds where classes are equally large."""


@dataclass(frozen=True, kw_only=True)
class NeighborConsensusSettings(MethodSettings):
    """Graphs and partitions."""

    neighbors: tuple[int, ...] = (15, 25, 40)
    """Neighbors of a row in each graph that is embedded."""
    dimensions: tuple[int, ...] = (16, 12, 16)
    """Dimensions of the embedding of each graph; with fewer clusters, one of fewer dimensions is tried too."""
    angles: tuple[bool, ...] = (True, False, True)
    """Whether neighbors in each graph are those at the smallest angle, rather than at the smallest distance."""
    starts: int = 3
    """k-means runs on each embedding, besides the one that starts from a Ward tree."""
    on_vectors: int = 4
    """k-means runs on the vectors themselves, which are combined with those on the embeddings; 0: none."""
    rows: int = 20_000
    """Rows that are embedded; the others follow the vote of their neighbors."""
    vote: int = 15
    """Neighbors that vote on the cluster of an item."""

    unequal: float = 0.025
    """Sizes count as unequal where their evenness (entropy as a share of the largest) is by this much below that of
    equally large known classes; then average linkage is used, whose clusters may be of any size."""

    def __post_init__(self) -> None:
        expect(
            len(self.neighbors) == len(self.dimensions) == len(self.angles) > 0
            and min(*self.neighbors, *self.dimensions, 1) >= 1,
            "give as many neighbors as dimensions and as values of angles; neighbors and dimensions are 1 or more",
        )
        for name in ("starts", "rows", "vote"):
            expect(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}: give 1 or more")


class NeighborConsensus(Clusterer):
    """The head is a vote of neighbors whose clusters are the consensus."""

    Settings: ClassVar[type[MethodSettings]] = NeighborConsensusSettings
    description = "consensus of many clusterings of the neighbor graph"
    settings: NeighborConsensusSettings

    @torch.no_grad()
    def fit(self, z: Matrix, labels: Labels, n_novel: int, seed: int) -> Clustering:
        """Cluster a sample of the unlabeled rows; all others follow the vote of their neighbors."""
        config, new = self.settings, np.flatnonzero(labels == UNLABELED)
        known, some = (sample(rows, config.rows, seed) for rows in (np.flatnonzero(labels != UNLABELED), new))
        clusters, certainty = clusters_and_certainty(z[some], z[known], labels[known], n_novel, config, seed)
        head = NeighborVote.of(z[some], clusters, certainty, n_novel, config.vote)
        best = head(torch.from_numpy(z[new])).softmax(dim=1).max(dim=1)
        return Clustering(labels=best.indices.numpy(), certainty=best.values.numpy(), head=head)


def sample(rows: Rows, most: int, seed: int) -> Rows:
    """At most so many of the rows, in order."""
    if len(rows) <= most:
        return rows
    return np.sort(rng.numpy(seed, "embedded rows").permutation(rows)[:most])


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
        labels = (
            kmeans_labels(z, min(clusters, len(z)), seed) if len(z) and clusters else np.zeros(len(z), dtype=np.int64)
        )
        return labels, np.ones(len(z), dtype=np.float32)
    graphs = neighbor_graphs(z, config)
    on_vectors = [kmeans_labels(z, clusters, 100 * seed + start, n_init=2) for start in range(config.on_vectors)]
    tried = [replace(config, dimensions=dimensions) for dimensions in choices_of_dimensions(clusters, config)]
    places = [embeddings(graphs, one, seed) for one in tried]
    partitions = [
        [labels for place in some for labels in kmeans_partitions(place, clusters, config, seed)] for some in places
    ]
    unequal = [
        unequal_sizes(some, z_known, y_known, clusters, one, seed) for some, one in zip(partitions, tried, strict=True)
    ]
    if unequal[0]:
        averages = [average_labels(place, clusters, seed) for place in places[0]]
        labels = most_agreed(averages)
        return labels, share_that_agrees(labels, averages)
    found = [consensus([*some, *on_vectors], clusters, seed) for some in partitions]
    edges = edge_weights(graphs[config.angles[0]].nearest(config.neighbors[0]))
    cut = [cut_share(edges, labels) for labels in found]
    best = 0 if unequal[-1] or cut[-1] > MORE * cut[0] + A_FEW else -1
    labels = found[best]
    if separated_by_planes(z_known, y_known, seed):
        labels = discriminant_kmeans(z, labels, z_known, y_known, clusters)
    return labels, share_that_agrees(labels, partitions[best])


def choices_of_dimensions(clusters: int, config: NeighborConsensusSettings) -> list[tuple[int, ...]]:
    """Dimensions of the embeddings: those of the settings, and one fewer than there are clusters.

    So many are enough for clusters to be equally far from each other, and in more of them parts of one class may come
    apart. In so few, classes may stay entangled, which shows in the edges of the graph that the clusters cut.
    """
    narrow = tuple(min(size, needed_dimensions(clusters)) for size in config.dimensions)
    return list(dict.fromkeys((config.dimensions, narrow)))


def neighbor_graphs(z: Matrix, config: NeighborConsensusSettings) -> dict[bool, NeighborGraph]:
    """The neighbors of each row, by angle and by distance, where they are used."""
    most = max(config.neighbors)
    return {by_angle: neighbor_graph(directions(z) if by_angle else z, most) for by_angle in set(config.angles)}


def embeddings(graphs: dict[bool, NeighborGraph], config: NeighborConsensusSettings, seed: int) -> list[Matrix]:
    """The rows placed in a few dimensions, once for each graph of the settings."""
    parts = zip(config.neighbors, config.dimensions, config.angles, strict=True)
    return [
        embed(
            edge_weights(graphs[by_angle].nearest(k)),
            min(size, len(graphs[by_angle]) - 3),
            rng.number(seed, "embedding", number),
        )
        for number, (k, size, by_angle) in enumerate(parts)
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
    one = replace(config, neighbors=config.neighbors[:1], dimensions=config.dimensions[:1], angles=config.angles[:1])
    found = []
    for number in range(EQUAL_DRAWS):
        draw = rng.numpy(seed, "equal sizes", number)
        chosen = draw.permutation(classes)[:count]
        rows = np.concatenate([draw.permutation(np.flatnonzero(y == label))[:each] for label in chosen])
        if len(rows) <= max(count, 10):
            return 1.0
        (places,) = embeddings(neighbor_graphs(z[rows], one), one, rng.number(seed, "equal sizes", number))
        found += [evenness(labels, count) for labels in kmeans_partitions(places, count, config, seed)]
    return float(np.mean(found))


def discriminant_kmeans(z: Matrix, labels: Labels, z_known: Matrix, y_known: Labels, clusters: int) -> Labels:
    """k-means from the clusters, whitened by the spread within known classes and clusters."""
    every = np.concatenate([z_known, z])
    index = np.unique(np.concatenate([y_known, labels + y_known.max() + 1]), return_inverse=True)[1]
    shaped = ((z - every.mean(axis=0)) @ whitening(within_class_covariance(every, index), SHRINKAGE)).astype(np.float32)
    centers = np.stack(
        [shaped[labels == c].mean(axis=0) if (labels == c).any() else shaped[c] for c in range(clusters)]
    )
    return kmeans_from(shaped, centers)
