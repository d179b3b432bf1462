"""Array functions that several packages share. scipy is imported late."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = TypeVar("Floats", bound=np.floating[Any])
Matrix = NDArray[np.float32]
Labels = NDArray[np.int64]
TINY = 1e-12  # lengths below this count as zero


def unit_rows(x: NDArray[Floats]) -> NDArray[Floats]:
    """The rows of x (n, d), each divided by its length; rows of zeros stay zeros."""
    rows: NDArray[Floats] = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), TINY)
    return rows


def loses_in_float32(x: NDArray[np.floating[Any]]) -> bool:
    """Whether float32 would round away more than a hundredth of the spread of some column of x (n, d)."""
    if x.dtype != np.float64 or x.ndim != 2 or not x.size:
        return False
    some = np.asarray(x[:: max(1, len(x) // 20_000)])
    spread = some.std(axis=0)
    return bool(((np.abs(some).max(axis=0) * 2.0**-24 > 0.01 * spread) & (spread > 0)).any())


ANGLES_FROM = 16  # columns from which on rows are compared by their angles: with fewer, too much would be lost


def directions(x: NDArray[Floats]) -> NDArray[Floats]:
    """The rows at unit length, so that distances are those of angles; rows with few columns as they are."""
    return unit_rows(x) if x.shape[-1] >= ANGLES_FROM else x


FEW_COLUMNS = 32  # up to so many columns, one column at a time is quicker than a sparse product


def match_clusters(counts: NDArray[np.int64]) -> Labels:
    """The class of each cluster under the best one-to-one assignment (Hungarian); -1 where clusters outnumber classes.

    `counts` (clusters, classes): how many items of each class are in each cluster.
    """
    from scipy.optimize import linear_sum_assignment

    clusters, classes = linear_sum_assignment(counts, maximize=True)
    class_of = np.full(len(counts), -1, dtype=np.int64)
    class_of[clusters] = classes
    return class_of


def sums_by_label(x: NDArray[np.floating[Any]], labels: Labels, count: int) -> NDArray[np.float64]:
    """(count, d): the sum of the rows of each label."""
    if x.shape[1] <= FEW_COLUMNS:
        return np.stack([np.bincount(labels, column, count) for column in x.T], axis=1)
    from scipy.sparse import csr_matrix

    members = csr_matrix((np.ones(len(x)), (labels, np.arange(len(x)))), shape=(count, len(x)))
    sums: NDArray[np.float64] = members @ x
    return sums


def mean_direction(x: NDArray[Floats]) -> NDArray[Floats]:
    """(d,): the mean direction of all rows, at unit length; zeros where there are none."""
    if len(x) == 0:
        return np.zeros(x.shape[1], dtype=x.dtype)
    return unit_rows(unit_rows(x).mean(axis=0))


def mean_directions(x: Matrix, labels: Labels, count: int) -> Matrix:
    """(count, d): the mean direction of the rows of each label, at unit length; zeros where a label has no rows."""
    return unit_rows(sums_by_label(unit_rows(x), labels, count).astype(np.float32))


def typicality(x: Matrix, labels: Labels) -> Matrix:
    """(n,): the cosine of each row to the mean direction of the rows with its label."""
    means = mean_directions(x, labels, int(labels.max(initial=-1)) + 1)
    cosines: Matrix = np.einsum("nd,nd->n", unit_rows(x), means[labels]).astype(np.float32)
    return cosines


def principal_directions(covariance: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """(d, count): the directions of largest variance, largest first; fewer where d < count.

    The sign of a direction is arbitrary: here the component of largest size is positive, so that pictures of the same
    data have the same orientation.
    """
    _, vectors = np.linalg.eigh(covariance)
    directions: NDArray[np.float64] = vectors[:, ::-1][:, :count]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.where(directions[largest, np.arange(directions.shape[1])] < 0, -1.0, 1.0)
    return directions * signs


def squared_distances(x: NDArray[np.floating[Any]], centers: Matrix) -> Matrix:
    """(n, k): the squared distance of each row to each center."""
    rows = np.asarray(x, dtype=np.float32)
    distances = np.square(rows).sum(axis=1)[:, None] + np.square(centers).sum(axis=1) - 2 * rows @ centers.T
    positive: Matrix = np.maximum(distances, 0)  # rounding can make it negative
    return positive


def spread_rows(count: int, most: int) -> Labels:
    """At most `most` row numbers below `count`, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64)) if count else np.empty(0, np.int64)


def softmax(scores: NDArray[np.floating[Any]]) -> Matrix:
    """(n, k): each row of scores as probabilities."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Matrix = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return probabilities


def within_class_covariance(z: Matrix, y: Labels) -> Matrix:
    """(d, d): the covariance of rows around the mean of their class."""
    _, index = np.unique(y, return_inverse=True)
    count = int(index.max()) + 1
    means = sums_by_label(z, index, count) / np.bincount(index)[:, None]
    residuals = (z - means[index]).astype(np.float32)
    covariance = residuals.T @ residuals / max(1, len(z) - count)
    return np.asarray(covariance, dtype=np.float32)


def whitening(covariance: Matrix, shrinkage: float) -> Matrix:
    """(d, d): columns are directions, scaled so that the shrunk covariance becomes the identity."""
    size = len(covariance)
    shrunk = covariance.astype(np.float64) + shrinkage * np.trace(covariance) / size * np.eye(size)
    values, vectors = np.linalg.eigh(shrunk)
    directions: Matrix = (vectors / np.sqrt(np.maximum(values, 1e-12))).astype(np.float32)
    return directions


def adjusted_rand(first: Labels, second: Labels) -> float:
    """Adjusted Rand index of two partitions, whose clusters are counted from 0; quick where it is asked for often."""
    clusters = int(second.max()) + 1
    table = np.bincount(first * clusters + second, minlength=(int(first.max()) + 1) * clusters).reshape(-1, clusters)
    together, of_first, of_second = (_pairs(sizes) for sizes in (table, table.sum(axis=1), table.sum(axis=0)))
    expected = of_first * of_second / max(1.0, len(first) * (len(first) - 1) / 2)
    most = (of_first + of_second) / 2
    return 1.0 if most == expected else float((together - expected) / (most - expected))


def _pairs(sizes: NDArray[np.int64]) -> float:
    """Pairs of rows that are in one group, for groups of these sizes."""
    counts = sizes.astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)
