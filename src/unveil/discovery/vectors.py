"""Choose the training rows of a fit on vectors, and how vectors are scaled."""

from collections.abc import Sequence

import numpy as np

from unveil import rng
from unveil.clustering.kmeans import kmeans
from unveil.encoders.scaling import Reduction, fit_reduction
from unveil.metrics import clustering_accuracy
from unveil.numerics import Labels, Matrix

MOST_ROWS = 60_000
"""Most rows that are trained on; the others are only labeled."""
PER_CLASS = 50
"""Least items of each known class among the training rows, where it has that many."""
COMPONENTS = 256
UNIT_LENGTH_FROM = 16
"""Vectors with fewer features are not scaled to unit length: too much would be lost."""
SCALING_ROWS, SCALING_DRAWS = 3000, 5
"""Known items in a sample by which the scaling is chosen, and number of samples: a single k-means may be far off."""


def training_rows(labels: Labels, seed: int) -> Labels:
    """At most 60,000 rows, half of them labeled where there are that many; no class is left out."""
    if len(labels) <= MOST_ROWS:
        return np.arange(len(labels))
    draw = rng.numpy(seed, "training rows")
    order = draw.permutation(len(labels))
    labeled, unlabeled = order[labels[order] != -1], order[labels[order] == -1]
    count = min(len(labeled), max(MOST_ROWS // 2, MOST_ROWS - len(unlabeled)))
    first = labeled[stratified(labels[labeled], count)]
    return np.sort(np.concatenate([first, unlabeled[: MOST_ROWS - count]]))


def stratified(labels: Labels, count: int) -> Labels:
    """The first so many rows, with the first items of every class before all others."""
    rank = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        rank[members] = np.minimum(np.arange(len(members)), PER_CLASS)
    return np.argsort(rank, kind="stable")[:count]


def choose_reduction(x: Matrix, y: Labels, seed: int) -> tuple[Reduction, str]:
    """Unit length or standardized columns, whichever lets k-means find the known classes better; with the reason."""
    standard = fit_reduction(x, standardize=True, components=COMPONENTS)
    if x.shape[1] < UNIT_LENGTH_FROM:
        return standard, "every column is standardized"
    unit = fit_reduction(x, unit=True, components=COMPONENTS)
    known, labeled = len(np.unique(y[y >= 0])), np.flatnonzero(y >= 0)
    if known < 2 or min(len(labeled), SCALING_ROWS) < 5 * known:
        return unit, "every vector is brought to unit length"
    scores = [_accuracies(x, y, (unit, standard), known, seed, number) for number in range(SCALING_DRAWS)]
    first, second = np.mean(scores, axis=0)
    reason = (
        f"k-means finds known classes with {100 * first:.0f} % accuracy at unit length and with "
        f"{100 * second:.0f} % on standardized columns"
    )
    if second > first + 0.02:
        return standard, f"every column is standardized ({reason})"
    return unit, f"every vector is brought to unit length ({reason})"


def _accuracies(
    x: Matrix, y: Labels, reductions: Sequence[Reduction], known: int, seed: int, number: int
) -> list[float]:
    """Accuracy of k-means on a sample of known items, for each reduction."""
    draw = rng.numpy(seed, "scaling", number)
    rows = np.sort(draw.permutation(np.flatnonzero(y >= 0))[:SCALING_ROWS])
    return [
        clustering_accuracy(y[rows], kmeans(reduce(x[rows]), known, seed + number, n_init=3).labels)
        for reduce in reductions
    ]
