"""One partition from many: partitions vote by how much they agree with the others."""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import KMeans

from unveil import rng
from unveil.metrics import in_matched_class
from unveil.numerics import Labels, Matrix, adjusted_rand, squared_distances

WARD_ROWS = 2500
"""Rows of a tree: its cost grows with their square."""


def kmeans_labels(x: Matrix, clusters: int, seed: int, n_init: int = 3) -> Labels:
    """Labels of plain k-means."""
    labels: Labels = KMeans(clusters, n_init=n_init, random_state=seed % 2**32).fit_predict(_contiguous(x))
    return labels.astype(np.int64)


def ward_labels(x: Matrix, clusters: int, seed: int) -> Labels:
    """k-means that starts from the clusters of a Ward tree of some rows: a good start also for many clusters."""
    some = rng.numpy(seed, "ward").permutation(len(x))[:WARD_ROWS]
    tree = linkage(x[some].astype(np.float64), "ward")
    parts = fcluster(tree, clusters, "maxclust") - 1
    if parts.max() + 1 < clusters:
        return kmeans_labels(x, clusters, seed, n_init=5)
    centers = np.stack([x[some][parts == part].mean(axis=0) for part in range(clusters)])
    return kmeans_from(x, centers)


def average_labels(x: Matrix, clusters: int, seed: int) -> Labels:
    """Average linkage of some rows, whose clusters may be of any size; the others follow their nearest drawn row."""
    some = rng.numpy(seed, "average linkage").permutation(len(x))[:WARD_ROWS]
    parts = fcluster(linkage(x[some].astype(np.float64), "average"), clusters, "maxclust") - 1
    labels = np.empty(len(x), dtype=np.int64)
    for start in range(0, len(x), WARD_ROWS):
        here = slice(start, start + WARD_ROWS)
        labels[here] = parts[squared_distances(x[here], x[some]).argmin(axis=1)]
    return labels


def kmeans_from(x: Matrix, centers: Matrix) -> Labels:
    """Labels of k-means that starts from these centers."""
    labels: Labels = KMeans(len(centers), init=_contiguous(centers), n_init=1).fit_predict(_contiguous(x))
    return labels.astype(np.int64)


def agreement(partitions: Sequence[Labels]) -> Matrix:
    """(p,): the mean adjusted Rand index of each partition with the others."""
    count = len(partitions)
    pairs = np.eye(count)
    for i in range(count):
        for j in range(i):
            pairs[i, j] = pairs[j, i] = adjusted_rand(partitions[i], partitions[j])
    mean: Matrix = ((pairs.sum(axis=1) - 1) / max(1, count - 1)).astype(np.float32)
    return mean


def most_agreed(partitions: Sequence[Labels]) -> Labels:
    """The partition that agrees most with the others."""
    return partitions[int(agreement(partitions).argmax())]


def share_that_agrees(labels: Labels, partitions: Sequence[Labels]) -> Matrix:
    """(n,): the share of the partitions that put a row into its cluster, after matching their clusters to these."""
    agree = [in_matched_class(labels, partition) for partition in partitions]
    share: Matrix = np.mean(agree, axis=0).astype(np.float32)
    return share


def evenness(labels: Labels, clusters: int) -> float:
    """How even the sizes of clusters are: their entropy as a share of the largest possible; 1 means equal sizes."""
    shares = np.bincount(labels, minlength=clusters) / len(labels)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum() / np.log(clusters))


def consensus(partitions: Sequence[Labels], clusters: int, seed: int) -> Labels:
    """The partition of rows that fall together most often, weighted by the squared agreement of each partition.

    Every row is described by its cluster in each partition (one-hot); the better of Ward and k-means on that is taken.
    """
    weights = np.square(np.clip(agreement(partitions), 1e-3, None))
    weights = weights / weights.sum()
    one_hot = [
        np.sqrt(weight) * np.eye(clusters, dtype=np.float32)[part]
        for part, weight in zip(partitions, weights, strict=True)
    ]
    x = np.concatenate(one_hot, axis=1)
    trials = [ward_labels(x, clusters, seed), kmeans_labels(x, clusters, seed, n_init=10)]
    return min(trials, key=lambda labels: _inertia(x, labels, clusters))


def _inertia(x: Matrix, labels: Labels, clusters: int) -> float:
    centers = np.stack([x[labels == c].mean(axis=0) if (labels == c).any() else x[0] for c in range(clusters)])
    return float(squared_distances(x, centers)[np.arange(len(x)), labels].sum())


def _contiguous(x: Matrix) -> Matrix:
    return np.ascontiguousarray(x, dtype=np.float32)
