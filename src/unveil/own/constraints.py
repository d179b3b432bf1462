"""What a review asks of the next fit: which items have which class, and what its clusters are called.

Clusters that somebody decided about (named, merged, split, filled by hand, or kept apart by a "no") are given to the
fit as labels, so that merges, splits and "different" hold. Before that, the less typical items of the other clusters
vote again with their neighbors: a changed class attracts others. Items that were rejected from a class never go back
to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.clustering.graph import neighbor_graph
from unveil.numerics import Labels, Matrix, match_clusters, typicality, unit_rows, whitening, within_class_covariance
from unveil.review.corrections import REJECTED, State
from unveil.review.decisions import folded_labels

NEIGHBORS = 15  # neighbors of an item that vote on its class
PLACED = 3.0  # votes of an item that a person placed or labeled, where others have one
STAY = 0.3  # votes of an item for its own class, as a share of all
ROUNDS = 5
SHRINKAGE = 1.0
ROWS = 50_000  # with more items than this nobody votes again: it would take too long


@dataclass(frozen=True)
class Corrections:
    """Corrections of a review, to be used in a new run."""

    labels: Mapping[str, str]  # labels of new items by their id
    rejected: Mapping[str, str]  # ids of items that were rejected from a class, and that class
    confidence: Mapping[str, float]  # how sure those labels are, by id: naming a class does not make its items right
    unnamed: tuple[str, ...]  # classes of `labels` that have no name yet: they are novel classes still
    clusters: Mapping[str, str]
    """The clusters of all other new items by id: clusters that are discovered again keep these names."""
    taken: tuple[str, ...]  # names that no other cluster may get
    source: str  # path of the reviewed run, and a hash of its review


def decided(state: State) -> set[int]:
    """Clusters that people said something about: what they are called, what belongs to them, or what they are not."""
    changed = {
        cluster
        for change in state.done
        if change.kind not in ("accept", "reject")
        for cluster in (*change.meanings, *np.unique(change.after).tolist())
    }
    denied = {cluster for _, clusters in state.denied for cluster in clusters}
    reviewed = {cluster for cluster, meaning in state.meanings.items() if meaning.reviewed}
    return {c for c in changed | denied | reviewed if c in state.meanings and state.is_novel(c)}


def steered_labels(state: State) -> Labels:
    """(n,): the class of every item after the review, where items that nobody placed have voted again.

    Clusters keep their numbers, and those that have a name keep their items. A cluster that is a known class counts to
    that class. Nobody is left rejected.
    """
    run, labels = state.run, folded_labels(state)
    named = [cluster for cluster, meaning in state.meanings.items() if meaning.named]
    fixed = (~run.new | state.by_hand | np.isin(labels, named)) & (labels != REJECTED)
    if not run.has_features or len(labels) > ROWS or len(labels) <= NEIGHBORS or fixed.all():
        return labels
    rejected = np.flatnonzero(labels == REJECTED)
    vectors = np.asarray(run.features, dtype=np.float32)
    placed = labels != REJECTED
    fixed[placed] |= _typical(vectors[placed], labels[placed])
    index = np.unique(labels[placed], return_inverse=True)[1]
    shaped = vectors @ whitening(within_class_covariance(vectors[placed], index), SHRINKAGE)
    neighbors = neighbor_graph(unit_rows(shaped.astype(np.float32)), NEIGHBORS).neighbors
    weights = np.where(fixed, PLACED, 1.0).astype(np.float32)
    classes = np.unique(labels[placed & run.new])  # a known class without new items gets none
    for _ in range(ROUNDS):
        votes = _votes(labels, neighbors, weights, classes)
        for row in rejected.tolist():
            votes[row, classes == state.rejected_from[row]] = -1
        found = np.where(fixed, labels, classes[votes.argmax(axis=1)])
        if np.array_equal(found, labels):
            break
        labels = found
    return labels


def _typical(vectors: Matrix, labels: Labels) -> NDArray[np.bool_]:
    """(n,): whether an item is among the more typical half of its class, so that no class loses all of its items."""
    cosines, typical = typicality(vectors, labels), np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        typical[members[np.argsort(-cosines[members], kind="stable")[: -(-len(members) // 2)]]] = True
    return typical


def _votes(labels: Labels, neighbors: NDArray[np.int64], weights: Matrix, classes: Labels) -> Matrix:
    """(n, classes): the share of each class in the votes of an item's neighbors and of the item itself."""
    counts = np.isin(labels, classes)
    place = np.searchsorted(classes, np.where(counts, labels, classes[0]))
    votes = np.zeros((len(labels), len(classes)), dtype=np.float32)
    for column in neighbors.T:
        voters = np.flatnonzero(counts[column])
        np.add.at(votes, (voters, place[column[voters]]), weights[column[voters]])
    votes /= np.maximum(votes.sum(axis=1, keepdims=True), 1e-9)
    votes[np.flatnonzero(counts), place[counts]] += STAY
    return votes


def kept_names(
    names: Sequence[str], first: int, labels: Labels, before: Sequence[str | None], taken: Sequence[str] = ()
) -> list[str]:
    """Names of classes, where clusters (from number `first`) keep the name that most of their items had before.

    `before`: the former cluster of each item, or None. Other clusters get numbers that no class has had (`taken`).
    """
    former = sorted({name for name in before if name is not None})
    kept: Mapping[int, str] = {}
    rows = [row for row, name in enumerate(before) if name is not None and labels[row] >= first]
    if rows:
        counts = np.zeros((len(names) - first, len(former)), dtype=np.int64)
        places = np.array([former.index(str(before[row])) for row in rows])
        np.add.at(counts, (labels[rows] - first, places), 1)
        kept = {cluster: former[name] for cluster, name in enumerate(match_clusters(counts)) if name >= 0}
    used, number, found = {*names[:first], *kept.values(), *taken}, 0, list(names[:first])
    for cluster in range(len(names) - first):
        while f"novel-{number}" in used:
            number += 1
        name = kept.get(cluster, f"novel-{number}")
        used.add(name)
        found.append(name)
    return found
