"""Partitions of rows: how they are made in one space, how much they agree, and one partition from many."""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import KMeans

from unveil import rng
from unveil.numerics import Labels, Matrix, squared_distances

TREE_ROWS = 1500
"""Rows of a tree: its cost grows with their square."""
EXTRA = 2
"""Dimensions in which a consensus is looked for, as a multiple of the number of clusters."""


def kmeans_labels(x: Matrix, clusters: int, seed: int, n_init: int = 3) -> Labels:
    """Labels of plain k-means."""
    labels: Labels = KMeans(clusters, n_init=n_init, random_state=seed % 2**32).fit_predict(_contiguous(x))
    return labels.astype(np.int64)


def kmeans_from(x: Matrix, centers: Matrix) -> Labels:
    """Labels of k-means that starts from these centers."""
    labels: Labels = KMeans(len(centers), init=_contiguous(centers), n_init=1).fit_predict(_contiguous(x))
    return labels.astype(np.int64)


def ward_labels(x: Matrix, clusters: int, seed: int) -> Labels:
    """k-means that starts from the clusters of a Ward tree of some rows: a good start also for many clusters."""
    some = rng.numpy(seed, "ward").permutation(len(x))[:TREE_ROWS]
    parts = fcluster(linkage(x[some].astype(np.float64), "ward"), clusters, "maxclust") - 1
    if parts.max() + 1 < clusters:
        return kmeans_labels(x, clusters, seed, n_init=5)
    return kmeans_from(x, np.stack([x[some][parts == part].mean(axis=0) for part in range(clusters)]))


def average_labels(x: Matrix, clusters: int, seed: int) -> Labels:
    """Average linkage of some rows, whose clusters may be of any size; the others follow their nearest drawn row."""
    some = rng.numpy(seed, "average linkage").permutation(len(x))[:TREE_ROWS]
    parts = fcluster(linkage(x[some].astype(np.float64), "average"), clusters, "maxclust") - 1
    labels = np.empty(len(x), dtype=np.int64)
    for start in range(0, len(x), TREE_ROWS):
        here = slice(start, start + TREE_ROWS)
        labels[here] = parts[squared_distances(x[here], x[some]).argmin(axis=1)]
    return labels


def adjusted_rand_matrix(partitions: Sequence[Labels]) -> Matrix:
    """(p, p): the adjusted Rand index of each pair of partitions, from one matrix product."""
    sizes = [int(labels.max()) + 1 for labels in partitions]
    starts = np.cumsum([0, *sizes[:-1]])
    members = np.concatenate([one_hot(labels, size) for labels, size in zip(partitions, sizes, strict=True)], axis=1)
    counts = (members.T @ members).astype(np.float64)  # (Σ clusters, Σ clusters): rows that two clusters share
    pairs = counts * (counts - 1) / 2
    together = np.add.reduceat(np.add.reduceat(pairs, starts, axis=0), starts, axis=1)
    own = np.diag(together)
    expected = np.outer(own, own) / max(1.0, len(members) * (len(members) - 1) / 2)
    most = (own[:, None] + own) / 2
    index: Matrix = np.where(most > expected, (together - expected) / np.maximum(most - expected, 1e-12), 1.0)
    return index.astype(np.float32)


def agreement(partitions: Sequence[Labels]) -> Matrix:
    """(p,): the mean adjusted Rand index of each partition with the others."""
    mean: Matrix = (adjusted_rand_matrix(partitions).sum(axis=1) - 1) / max(1, len(partitions) - 1)
    return mean


def consensus(partitions: Sequence[Labels], weights: Matrix, clusters: int, seed: int) -> Labels:
    """The partition of rows that fall together most often.

    Every row is described by its cluster in each partition (one-hot, weighted); on the leading principal components of
    that, the better of k-means and k-means from a Ward tree is taken.
    """
    columns = [
        np.sqrt(weight) * one_hot(labels, int(labels.max()) + 1)
        for labels, weight in zip(partitions, weights, strict=True)
    ]
    x = np.concatenate(columns, axis=1)
    x -= x.mean(axis=0)
    axes = np.linalg.eigh((x.T @ x).astype(np.float64))[1][:, ::-1][:, : EXTRA * clusters]
    x = x @ axes.astype(np.float32)
    trials = [ward_labels(x, clusters, seed), kmeans_labels(x, clusters, seed, n_init=10)]
    return min(trials, key=lambda labels: _inertia(x, labels, clusters))


def votes(labels: Labels, partitions: Sequence[Labels], weights: Matrix, clusters: int) -> Matrix:
    """(n, clusters): how much the partitions say for each cluster of a row.

    A partition says for a row what share of its cluster there is in each cluster of `labels`.
    """
    said, members = np.zeros((len(labels), clusters), dtype=np.float32), one_hot(labels, clusters)
    for partition, weight in zip(partitions, weights / weights.sum(), strict=True):
        shared = one_hot(partition, int(partition.max()) + 1).T @ members  # (clusters of the partition, clusters)
        said += weight * (shared / np.maximum(shared.sum(axis=1, keepdims=True), 1))[partition]
    return said


def evenness(labels: Labels, clusters: int) -> float:
    """How even the sizes of clusters are: their entropy as a share of the largest possible; 1 means equal sizes."""
    shares = np.bincount(labels, minlength=clusters) / len(labels)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum() / np.log(max(2, clusters)))


def one_hot(labels: Labels, clusters: int) -> Matrix:
    """(n, clusters)"""
    members = np.zeros((len(labels), clusters), dtype=np.float32)
    members[np.arange(len(labels)), labels] = 1
    return members


def _inertia(x: Matrix, labels: Labels, clusters: int) -> float:
    centers = np.stack([x[labels == c].mean(axis=0) if (labels == c).any() else x[0] for c in range(clusters)])
    return float(squared_distances(x, centers)[np.arange(len(x)), labels].sum())


def _contiguous(x: Matrix) -> Matrix:
    return np.ascontiguousarray(x, dtype=np.float32)
