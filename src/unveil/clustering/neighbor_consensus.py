"""Neighbor consensus: many clusterings of the same rows vote, for vectors that somebody else's encoder has made.

    unveil discover KNOWN NEW        (the default for vectors)

Which scaling of the columns, which use of the known classes and which way to cluster suits the data, nobody knows
beforehand, and each of them fails somewhere. So clusters are looked for in all of them: in each of six spaces
(`spaces.py`) by k-means on the vectors, and by k-means and average linkage on embeddings of the neighbor graph.

The partitions are weighed by two kinds of evidence: how much each agrees with the others, and how well its kind finds
known classes that are hidden (a rehearsal). The rows that fall together most often are a class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from unveil import rng
from unveil.clustering.clusterer import Clusterer, Clustering, Evidence, Rehearsal
from unveil.clustering.embedding import embed, needed_dimensions
from unveil.clustering.graph import edge_weights, neighbor_graph
from unveil.clustering.partitions import agreement, average_labels, consensus, evenness, kmeans_labels, one_hot, votes
from unveil.clustering.spaces import SCALINGS, Scaling, Space, scaled, shaped
from unveil.clustering.vote import NeighborVote
from unveil.data.items import Rows
from unveil.data.task import UNLABELED
from unveil.metrics import clustering_accuracy, in_matched_class
from unveil.numerics import Labels, Matrix
from unveil.settings import MethodSettings, expect

LEAST_CLASSES, LEAST_EACH, LEAST_ROWS = 3, 4, 30
"""Known classes with so many rows each, and labeled rows in all, without which nothing is rehearsed."""
MOST_HIDDEN = 0.5
"""Largest share of the known classes that a rehearsal hides."""
REHEARSED_ROWS, PER_CLASS = 600, 12
"""Most rows of hidden classes, and of others, in a rehearsal; with many classes so many of each."""
AVERAGE = "average linkage"
"""The kind of partition whose clusters may be of any size. k-means splits large classes and joins small ones."""
SHARPNESS = 0.5
"""Logarithm of the weight for one standard deviation of the evidence: all are heard, the better ones more."""
UNEVEN, UNEVEN_SCALE = 0.012, 0.003
LEAST_UNEVEN, MOST_UNEVEN = -1.0, 6.0
"""Where the sizes that k-means finds are less even than those of hidden known classes by more than the first (entropy
as a share of the largest), average linkage counts more: by a factor e for each step of the second, within these limits.
Chosen by accuracy on the tasks of the pool."""


@dataclass(frozen=True, kw_only=True)
class NeighborConsensusSettings(MethodSettings):
    """Graphs and partitions."""

    scalings: tuple[Scaling, ...] = SCALINGS
    """Ways to scale the columns."""
    neighbors: int = 15
    """Neighbors of a row in the graph whose embedding has one dimension fewer than there are clusters."""
    most_neighbors: int = 40
    """The same for the embedding of many dimensions; with fewer rows, half as many as a cluster has."""
    most_dimensions: int = 16
    rows: int = 2500
    """Rows of either kind, labeled and unlabeled, from which clusters are found; with many clusters more. The others
    follow the vote of their neighbors."""
    rows_per_cluster: int = 30
    vote: int = 15
    """Neighbors that vote on the cluster of an item."""

    def __post_init__(self) -> None:
        for name in ("neighbors", "most_neighbors", "most_dimensions", "rows", "rows_per_cluster", "vote"):
            expect(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}: give 1 or more")
        expect(
            bool(self.scalings) and set(self.scalings) <= set(SCALINGS),
            f"scalings is {list(self.scalings)}: give some of {', '.join(SCALINGS)}",
        )


class NeighborConsensus(Clusterer):
    """The head is a vote of neighbors whose clusters are the consensus."""

    Settings: ClassVar[type[MethodSettings]] = NeighborConsensusSettings
    description = "consensus of many clusterings"
    settings: NeighborConsensusSettings

    def fit(self, z: Matrix, labels: Labels, n_novel: int, seed: int) -> Clustering:
        return self.fit_weighed(z, labels, n_novel, seed, unscaled=z, rehearsals=0)

    def fit_weighed(
        self, z: Matrix, labels: Labels, n_novel: int, seed: int, *, unscaled: Matrix, rehearsals: int
    ) -> Clustering:
        """Cluster a sample of the unlabeled rows; all others follow the vote of their neighbors in z."""
        config = self.settings
        new, known = np.flatnonzero(labels == UNLABELED), np.flatnonzero(labels >= 0)
        most = max(config.rows, config.rows_per_cluster * n_novel)
        some, known = sample(new, most, seed), sample(known, max(config.rows, PER_CLASS * len(np.unique(labels))), seed)
        rows = np.concatenate([known, some])
        found = find_clusters(unscaled[rows], labels[rows], n_novel, config, seed, rehearsals)
        head = NeighborVote.of(z[some], found.labels, found.certainty, n_novel, config.vote).keeping()
        clusters, certainty = np.empty(len(new), dtype=np.int64), np.empty(len(new), dtype=np.float32)
        inside = np.isin(new, some)
        clusters[inside], certainty[inside] = found.labels, found.certainty
        if not inside.all():
            with torch.no_grad():
                best = head(torch.from_numpy(z[new[~inside]])).softmax(dim=1).max(dim=1)
            clusters[~inside], certainty[~inside] = best.indices.numpy(), best.values.numpy()
        return Clustering(labels=clusters, certainty=certainty, head=head, evidence=found.evidence)


@dataclass(frozen=True)
class Found:
    """The consensus on some rows."""

    labels: Labels
    certainty: Matrix
    evidence: Evidence


def sample(rows: Rows, most: int, seed: int) -> Rows:
    """At most so many of the rows, in order."""
    if len(rows) <= most:
        return rows
    return np.sort(rng.numpy(seed, "clustered rows").permutation(rows)[:most])


def find_clusters(
    x: Matrix, labels: Labels, clusters: int, config: NeighborConsensusSettings, seed: int, rehearsals: int
) -> Found:
    """Clusters of the rows with label -1."""
    new = int((labels == UNLABELED).sum())
    if clusters == 1 or new <= clusters:
        alone = np.arange(new) % max(1, clusters)
        return Found(alone, np.ones(new, dtype=np.float32), Evidence(clusters=clusters))
    base = scaled(x, config.scalings)
    members = Members.of(base, labels, clusters, config, seed)
    rehearsed = _all_hidden(base, labels, clusters, config, seed, rehearsals)
    partition, certainty, weights = members.combined(rehearsed, clusters, seed)
    evidence = Evidence(
        clusters=clusters,
        names=members.names,
        weights=tuple(map(float, weights)),
        agreement=float(certainty.mean()),
        rehearsals=_results(rehearsed, seed),
    )
    return Found(partition, certainty, evidence)


def rehearse_known_classes(
    x: Matrix, labels: Labels, clusters: int, config: NeighborConsensusSettings, seed: int, rehearsals: int
) -> Evidence:
    """What rehearsals alone say, where nothing has to be clustered yet."""
    rehearsed = _all_hidden(scaled(x, config.scalings), labels, clusters, config, seed, rehearsals)
    return Evidence(clusters=clusters, rehearsals=_results(rehearsed, seed))


def _all_hidden(
    base: dict[Scaling, Matrix],
    labels: Labels,
    clusters: int,
    config: NeighborConsensusSettings,
    seed: int,
    rehearsals: int,
) -> "list[_Hidden]":
    return [
        _hidden(base, labels, hidden, config, rng.number(seed, "rehearsal", number))
        for number, hidden in enumerate(hidden_classes(labels, clusters, rehearsals, seed))
    ]


def _results(rehearsed: "Sequence[_Hidden]", seed: int) -> tuple[Rehearsal, ...]:
    """Each is weighed without its own accuracies, which nobody would know."""
    return tuple(
        one.result([other for other in rehearsed if other is not one], rng.number(seed, "rehearsal", number))
        for number, one in enumerate(rehearsed)
    )


@dataclass(frozen=True)
class Members:
    """The partitions that vote."""

    names: tuple[str, ...]
    partitions: list[Labels]
    neighbors: list[NDArray[np.int64]]
    """(n, k) of each space"""

    @staticmethod
    def of(
        base: dict[Scaling, Matrix], labels: Labels, clusters: int, config: NeighborConsensusSettings, seed: int
    ) -> "Members":
        """All partitions of the rows with label -1."""
        new = labels == UNLABELED
        names, partitions, neighbors = list[str](), list[Labels](), list[NDArray[np.int64]]()
        for space in shaped(base, labels, seed):
            own, near = _in_one_space(Space(space.name, np.ascontiguousarray(space.z[new])), clusters, config, seed)
            names += [f"{name}: {space.name}" for name in own]
            partitions += own.values()
            neighbors.append(near)
        return Members(tuple(names), partitions, neighbors)

    def combined(self, rehearsed: "Sequence[_Hidden]", clusters: int, seed: int) -> tuple[Labels, Matrix, Matrix]:
        """The consensus, how certain it is of each row, and the weights of the partitions."""
        accuracy = np.array([one.accuracy(self.names) for one in rehearsed]).reshape(-1, len(self.names))
        of_any_size = np.array([name.startswith(AVERAGE) for name in self.names])
        unevenness = 0.0
        if rehearsed:
            usual = np.mean([one.evenness(self.names) for one in rehearsed], axis=0)
            own = np.array([evenness(labels, clusters) for labels in self.partitions])
            unevenness = float(np.median((usual - own)[~of_any_size]))
        weights = evidence_weights(agreement(self.partitions), accuracy, of_any_size, unevenness)
        labels = consensus(self.partitions, weights, clusters, seed)
        said = votes(labels, self.partitions, weights, clusters)
        around = np.mean([one_hot(labels, clusters)[near].mean(axis=1) for near in self.neighbors], axis=0)
        rows = np.arange(len(labels))
        certainty: Matrix = np.minimum(said[rows, labels] * around[rows, labels], 1).astype(np.float32)
        return labels, certainty, weights


def evidence_weights(
    agreement: Matrix, rehearsed: NDArray[np.float64], of_any_size: NDArray[np.bool_], unevenness: float
) -> Matrix:
    """(p,): the weights of the partitions, which sum to 1.

    agreement (p,) with the other partitions; rehearsed (r, p): accuracy of each kind in rehearsals. Their sum counts,
    each in standard deviations over the partitions. of_any_size (p,): partitions whose clusters may be of any size;
    they count the more, the more uneven k-means finds the new rows than hidden known classes.
    """
    score = _standardized(agreement)
    if len(rehearsed):
        score = score + _standardized(rehearsed.mean(axis=0))
    score = SHARPNESS * _standardized(score)
    if len(rehearsed):
        score[of_any_size] += np.clip((unevenness - UNEVEN) / UNEVEN_SCALE, LEAST_UNEVEN, MOST_UNEVEN)
    weights = np.exp(score - score.max())
    return np.asarray(weights / weights.sum(), dtype=np.float32)


def _standardized(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-9), dtype=np.float64)


def _in_one_space(
    space: Space, clusters: int, config: NeighborConsensusSettings, seed: int
) -> tuple[dict[str, Labels], NDArray[np.int64]]:
    """Partitions of the rows of one space by name, and the neighbors of each row."""
    z = space.z
    wide = int(np.clip(len(z) // (2 * clusters), config.neighbors // 2, config.most_neighbors))
    graph = neighbor_graph(z, max(wide, config.neighbors))
    partitions = {"k-means": kmeans_labels(z, clusters, seed)}
    few = int(min(needed_dimensions(clusters), config.most_dimensions, len(z) - 3))
    many = int(min(config.most_dimensions, len(z) - 3))
    if few >= 1:
        places = embed(edge_weights(graph.nearest(config.neighbors)), few, seed)
        partitions[f"{AVERAGE}, few dimensions"] = average_labels(places, clusters, seed)
        places = embed(edge_weights(graph.nearest(wide)), many, seed)
        partitions["neighbor embedding"] = kmeans_labels(places, clusters, seed)
        partitions[f"{AVERAGE}, many dimensions"] = average_labels(places, clusters, seed)
    return partitions, graph.nearest(config.neighbors).neighbors


def hidden_classes(labels: Labels, clusters: int, rehearsals: int, seed: int) -> list[Labels]:
    """The known classes that each rehearsal hides; no two rehearsals hide the same ones."""
    classes, sizes = np.unique(labels[labels >= 0], return_counts=True)
    classes = classes[sizes >= LEAST_EACH]  # every item alone is no test
    if len(classes) < LEAST_CLASSES or (labels >= 0).sum() < LEAST_ROWS:
        return []
    count = max(2, min(clusters, round(MOST_HIDDEN * len(classes))))
    draw, drawn = rng.numpy(seed, "hidden classes"), list[Labels]()
    for _ in range(10 * rehearsals):
        hidden = np.sort(draw.permutation(classes)[:count])
        if len(drawn) < rehearsals and not any(np.array_equal(hidden, other) for other in drawn):
            drawn.append(hidden)
    return drawn


@dataclass(frozen=True)
class _Hidden:
    """Hidden known classes and their partitions."""

    truth: Labels
    members: Members
    clusters: int

    def accuracy(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Of the partitions with these names; the mean of all where one is missing."""
        own = {
            name: clustering_accuracy(self.truth, labels)
            for name, labels in zip(self.members.names, self.members.partitions, strict=True)
        }
        usual = float(np.mean(list(own.values())))
        return np.array([own.get(name, usual) for name in names])

    def evenness(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Of the sizes of clusters, for the partitions with these names; the mean of all where one is missing."""
        own = {
            name: evenness(labels, self.clusters)
            for name, labels in zip(self.members.names, self.members.partitions, strict=True)
        }
        usual = float(np.mean(list(own.values())))
        return np.array([own.get(name, usual) for name in names])

    def result(self, others: "Sequence[_Hidden]", seed: int) -> Rehearsal:
        """The consensus, weighed by the other rehearsals."""
        labels, certainty, _ = self.members.combined(others, self.clusters, seed)
        return Rehearsal(
            hidden=self.clusters,
            accuracy=clustering_accuracy(self.truth, labels),
            certainty=certainty,
            correct=in_matched_class(self.truth, labels),
        )


def _hidden(
    base: dict[Scaling, Matrix], labels: Labels, hidden: Labels, config: NeighborConsensusSettings, seed: int
) -> _Hidden:
    """Cluster the rows of some known classes as if nobody knew them."""
    draw, known = rng.numpy(seed, "rehearsed rows"), labels >= 0
    of_hidden = np.isin(labels, hidden)
    most = max(REHEARSED_ROWS, PER_CLASS * len(hidden))
    first = draw.permutation(np.flatnonzero(known & ~of_hidden))[:most]
    second = draw.permutation(np.flatnonzero(of_hidden))[:most]
    rows = np.concatenate([first, second])
    own = np.where(of_hidden[rows], UNLABELED, labels[rows])
    truth = np.unique(labels[second], return_inverse=True)[1]
    clusters = int(truth.max()) + 1
    members = Members.of({scaling: z[rows] for scaling, z in base.items()}, own, clusters, config, seed)
    return _Hidden(truth, members, clusters)
