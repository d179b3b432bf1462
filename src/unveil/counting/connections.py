"""The number of classes by how strongly clusters are connected in the neighbor graph.

The rows are cut into more clusters than there can be classes, and the two clusters with the strongest connection are
joined until one is left. The connection of two clusters is the share of the edges of the smaller one that lead to the
other. Parts of one class are connected more strongly than two classes are; how strongly, the known classes show: they
are joined in the same way, and the threshold is taken at which their number comes out right.

How many rows are drawn and how finely they are cut depends on a first guess of the number, and the count follows that
guess in part. Known classes show how much: they are counted with guesses that are too small and too large as well. That
part is taken out, and what is left of the error says how far the number of novel classes may be off.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from unveil import rng
from unveil.clustering.embedding import embed, needed_dimensions
from unveil.clustering.graph import edge_weights, neighbor_graph
from unveil.counting.agreement import Curve, settled
from unveil.numerics import Labels, Matrix

ROWS, LEAST_PER_CLASS = 1200, 12
"""Most rows of a draw, and least rows of a class."""
NEIGHBORS, LEAST_NEIGHBORS, ITERATIONS = 15, 4, 60
"""Of the graph, which has fewer neighbors where classes have few rows, and of its embedding."""
DIMENSIONS = 16
"""Most dimensions of the embedding, which otherwise has as many as the classes need."""
SHARES, GUESSES = (0.5, 0.75, 1.0), (0.4, 1.0, 2.5)
"""Known classes are counted for each share of them, and for guesses that are so many times their number."""
UNLABELED_DRAWS = 3
CLUSTERS = 3
"""Clusters before the first join, as a multiple of the number of classes."""
THRESHOLDS = np.linspace(np.log(0.002), 0, 200)
"""Logarithms of the connection below which clusters are taken to be two classes."""
SMALLEST, LEAST_ERROR = 1e-3, 0.02
"""Added to each connection before its logarithm, and least squared error of the thresholds that are averaged."""
MOST_FOLLOWED = 0.8
"""Largest part of a wrong guess that is taken to be in the count."""
ERROR, LEAST_SPREAD, FEW_CLASSES = 1.5, 0.15, 20
"""How much larger the error is on novel classes than on known ones, and the least standard deviation of the logarithm
of the number; its square is doubled with 20 known classes, and five times as large with five."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ConnectionEvidence:
    """Mean and standard deviation of the logarithm of the number of classes."""

    mean: float
    spread: float

    def curve(self, most: int) -> Curve:
        """The probability of 1 to `most` classes, for numbers up to three times the best."""
        best = int(np.clip(round(float(np.exp(self.mean))), 1, most))
        numbers = np.arange(1, min(most, max(10, 3 * best)) + 1)
        density = np.exp(-np.square((np.log(numbers) - self.mean) / self.spread) / 2) / numbers
        values = density / max(float(density.sum()), 1e-300)
        return Curve("connections", tuple(numbers.tolist()), tuple(values.tolist()), best)


def weigh_connections(
    labeled: Matrix, y: Labels, unlabeled: Matrix, about: float, seed: int
) -> ConnectionEvidence | None:
    """How many classes the unlabeled rows have, for at least 3 known classes; None where rows are too few.

    `about`: a first guess, so that known and unlabeled rows are as dense.
    """
    classes, sizes = np.unique(y, return_counts=True)
    per_class = int(min(np.median(sizes), len(unlabeled) / about, ROWS / max(4, min(about, len(classes)))))
    if per_class < LEAST_PER_CLASS:
        return None
    neighbors = int(np.clip(per_class // 3, LEAST_NEIGHBORS, NEIGHBORS))
    most = min(len(classes), ROWS // per_class)
    errors, counts = [], []
    for number, (share, guess) in enumerate(product(SHARES, GUESSES)):
        draw = rng.numpy(seed, "connections", number)
        chosen = draw.permutation(classes)[: max(2, int(np.ceil(share * most)))]
        each = max(2, round(guess * per_class))  # as many rows as classes of the usual size would have
        rows = np.concatenate([draw.permutation(np.flatnonzero(y == label))[:each] for label in chosen])
        connections = joins(labeled[draw.permutation(rows)[:ROWS]], guess * len(chosen), neighbors, number)
        errors.append(np.log(_numbers(connections) / len(chosen)))
    for number in range(UNLABELED_DRAWS):
        draw = rng.numpy(seed, "unlabelled connections", number)
        rows = draw.permutation(len(unlabeled))[: int(np.clip(about * per_class, 20, ROWS))]
        connections = joins(unlabeled[rows], about, neighbors, number)
        counts.append(np.log(_numbers(connections)))
    return _combined(np.array(errors), np.array(counts), about, len(classes))


def joins(z: Matrix, about: float, neighbors: int, seed: int) -> Floats:
    """(clusters − 1,): the logarithm of the connection of the two clusters whose join leaves 1, 2, … clusters, for
    about so many classes."""
    weights = edge_weights(neighbor_graph(z, neighbors))
    places = embed(weights, min(needed_dimensions(about), DIMENSIONS, len(z) - 3), seed, ITERATIONS)
    clusters = max(4, min(round(CLUSTERS * about) + 3, len(z) // 4))
    tree = fcluster(linkage(places.astype(np.float64), "ward"), clusters, "maxclust") - 1
    labels = np.unique(settled(places, tree), return_inverse=True)[1]
    member = sp.csr_matrix((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    between = (member.T @ weights @ member).toarray()  # (c, c): weight of the edges between clusters
    connections = []
    while len(between) > 1:
        volume = between.sum(axis=1)
        share = between / np.maximum(np.minimum.outer(volume, volume), 1e-12)
        np.fill_diagonal(share, -1)
        first, second = np.unravel_index(share.argmax(), share.shape)
        connections.append(share[first, second])
        between[first] += between[second]
        between[:, first] += between[:, second]
        left = np.arange(len(between)) != second
        between = between[np.ix_(left, left)]
    logarithms: Floats = np.log(np.array(connections[::-1]) + SMALLEST)
    return logarithms


def _numbers(connections: Floats) -> Floats:
    """(t,): the number of classes at each threshold: one more than there are joins of a weaker connection."""
    numbers: Floats = 1.0 + (connections[:, None] < THRESHOLDS).sum(axis=0)
    return numbers


def _combined(errors: Floats, counts: Floats, about: float, classes: int) -> ConnectionEvidence:
    """The average over thresholds, by how well each counts the known classes.

    errors (draws, t) of the logarithm of the number of known classes; counts (draws, t): that of the unlabeled rows,
    with `about` as guess. On known classes log(count / number) = followed · log(guess / number) + error. The mean error
    is not taken out: a threshold at which everything is one cluster would then count as many as are known.
    """
    wrong = np.log([guess for _, guess in product(SHARES, GUESSES)])
    beside = wrong - wrong.mean()
    followed = np.clip(beside @ errors / np.square(beside).sum(), 0, MOST_FOLLOWED)  # (t,)
    squared = np.square(errors - followed * wrong[:, None]).mean(axis=0)
    numbers = (counts.mean(axis=0) - followed * np.log(about)) / (1 - followed)
    variance = (squared + counts.var(axis=0) / len(counts)) / np.square(1 - followed)
    weights = np.exp(-(variance - variance.min()) / max(float(variance.min()), LEAST_ERROR))
    weights /= weights.sum()
    mean = float(weights @ numbers)
    over_thresholds = float(variance.min() + weights @ np.square(numbers - mean))
    least = LEAST_SPREAD**2 * (1 + FEW_CLASSES / classes)
    return ConnectionEvidence(mean, float(np.sqrt(ERROR**2 * over_thresholds + least)))
