"""The known head without training: class means after whitening, or a vote of neighbors, whichever recognizes more.

For encoders that do not train, where a head is all that there is to learn. What separates known classes, planes or
neighborhoods, also says how novel ones may be found.
"""

import numpy as np
import torch
from torch import nn

from unveil import rng
from unveil.clustering.graph import neighbor_graph
from unveil.clustering.vote import NeighborVote
from unveil.numerics import Labels, Matrix, directions, sums_by_label, whitening, within_class_covariance

VOTE = 15
"""Neighbors that vote."""
LEAST_ROWS, ROWS = 40, 4000
"""Fewest and most rows on which planes and neighbors are compared; with fewer, planes are not trusted."""
STORED_ROWS = 20_000
"""Most rows that vote."""
SHRINKAGE = 1.0


def known_head(z: Matrix, y: Labels, classes: int, seed: int) -> nn.Linear | NeighborVote:
    """A head that recognizes the classes of the rows of z; y counts them from 0."""
    if separated_by_planes(z, y, seed):
        return mean_head(z, y, classes)
    rows = rng.numpy(seed, "known rows that vote").permutation(len(y))[:STORED_ROWS]
    return NeighborVote.of(z[rows], y[rows], np.ones(len(rows), dtype=np.float32), classes, VOTE)


def mean_head(z: Matrix, y: Labels, classes: int) -> nn.Linear:
    """Linear discriminant analysis: the nearest class mean, after whitening by the spread within classes.

    |(x − m) A|² is smallest where x·(A Aᵀ m) − |m A|² / 2 is largest.
    """
    axes = whitening(within_class_covariance(z, y), SHRINKAGE)
    sizes = np.bincount(y, minlength=classes)
    means = sums_by_label(z, y, classes) / np.maximum(sizes, 1)[:, None]
    placed = (means @ axes).astype(np.float32)
    head = nn.Linear(z.shape[1], classes)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(placed @ axes.T))
        bias = np.where(sizes > 0, -np.square(placed).sum(axis=1) / 2, -1e4)
        head.bias.copy_(torch.from_numpy(bias.astype(np.float32)))
    return head


@torch.no_grad()
def separated_by_planes(z: Matrix, y: Labels, seed: int) -> bool:
    """Whether known items are recognized better by the nearest class mean, after whitening, than by their neighbors."""
    if len(y) < LEAST_ROWS or len(np.unique(y)) < 2:
        return False
    draw = rng.numpy(seed, "planes or neighbors")
    rows = draw.permutation(len(y))[:ROWS]
    z, y = z[rows], np.unique(y[rows], return_inverse=True)[1]
    fold, correct, classes = draw.integers(2, size=len(y)), 0, int(y.max()) + 1
    for part in (0, 1):
        fitted, tested = fold != part, fold == part
        nearest = mean_head(z[fitted], y[fitted], classes)(torch.from_numpy(z[tested])).argmax(dim=1).numpy()
        correct += int((nearest == y[tested]).sum())
    neighbors = neighbor_graph(directions(z), VOTE).neighbors
    votes = np.zeros((len(y), classes))
    np.add.at(votes, (np.repeat(np.arange(len(y)), neighbors.shape[1]), y[neighbors].ravel()), 1)
    return correct / len(y) > float((votes.argmax(axis=1) == y).mean())
