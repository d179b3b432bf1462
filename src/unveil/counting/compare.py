"""Two other criteria for the number of novel classes, shown beside the estimate by `unveil classes`.

- *labelled accuracy*: k-means on labelled and unlabelled items together, for many numbers of clusters; the best number
  is the one with the highest accuracy on labelled items (the search used for generalised category discovery).
- *probe classes*: some known classes are hidden among the unlabelled items, and k-means keeps the other labelled items
  in their classes; the best number has the highest accuracy on the hidden classes and the most compact clusters (deep
  transfer clustering).

Both are made for unlabelled items that contain known classes, and underestimate the number otherwise.
"""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.metrics import silhouette_score

from unveil import rng
from unveil.clustering.kmeans import kmeans, semi_kmeans
from unveil.counting.agreement import Curve
from unveil.metrics import clustering_accuracy
from unveil.numerics import Labels, Matrix

SILHOUETTE_ROWS = 1500
TINY = 0.05
"""Clusters smaller than this share of the largest are not counted."""


def by_labels(labelled: Matrix, y: Labels, unlabelled: Matrix, most: int, seed: int) -> Curve:
    """Accuracy of k-means on the labelled items, as a function of the number of novel classes."""
    rows_l, rows_u = _sample(rng.numpy(seed, "labelled accuracy"), len(labelled), len(unlabelled))
    known, both, truth = len(np.unique(y)), np.concatenate([labelled[rows_l], unlabelled[rows_u]]), y[rows_l]

    def accuracy(novel: int) -> float:
        clusters = kmeans(both, known + novel, seed, n_init=2).labels[: len(rows_l)]
        return clustering_accuracy(truth, clusters)

    return _search("labelled accuracy", accuracy, most)


def by_probes(labelled: Matrix, y: Labels, unlabelled: Matrix, most: int, seed: int) -> Curve:
    """Hide a third of the known classes, and find the number of clusters that fits them and is compact."""
    draw = rng.numpy(seed, "probe classes")
    rows_l, rows_u = _sample(draw, len(labelled), len(unlabelled))
    x_l, y_l, x_u = labelled[rows_l], y[rows_l], unlabelled[rows_u]
    classes = draw.permutation(np.unique(y_l))
    hidden, visible = classes[: len(classes) // 3], np.sort(classes[len(classes) // 3 :])
    probe = np.isin(y_l, hidden)
    points, count = np.concatenate([x_l[probe], x_u]), int(probe.sum())

    def scores(novel: int) -> tuple[float, float, int]:
        anchors = x_l[~probe], np.searchsorted(visible, y_l[~probe])
        clusters = semi_kmeans(points, *anchors, len(classes) + novel, seed, n_init=2).labels
        sizes = np.bincount(clusters[count:])
        real = int((sizes > TINY * sizes.max()).sum())
        return clustering_accuracy(y_l[probe], clusters[:count]), _silhouette(points, clusters), real

    numbers = _grid(most)
    values = [scores(number) for number in numbers]
    compact_at, accurate_at = (_last_best([value[part] for value in values]) for part in (1, 0))
    middle = -(-(numbers[compact_at] + numbers[accurate_at]) // 2)
    at = int(np.argmin([abs(number - middle) for number in numbers]))
    best = max(1, min(middle, values[at][2]))
    return Curve("probe classes", numbers, tuple(accuracy + compact for accuracy, compact, _ in values), best)


def _search(name: str, criterion: Callable[[int], float], most: int) -> Curve:
    """Maximise a criterion: over a grid, then around the best number."""
    values = {number: criterion(number) for number in _grid(most)}

    def best() -> int:
        return max(values, key=lambda number: (values[number], -number))

    step = max(1, most // 16)
    while step >= 1:
        for number in (best() - step, best() + step):
            if 1 <= number <= most and number not in values:
                values[number] = criterion(number)
        step //= 2
    numbers = tuple(sorted(values))
    return Curve(name, numbers, tuple(values[number] for number in numbers), best())


def _silhouette(x: Matrix, labels: Labels) -> float:
    sample = slice(None, None, max(1, len(x) // SILHOUETTE_ROWS))
    clusters = len(np.unique(labels[sample]))
    return float(silhouette_score(x[sample], labels[sample])) if 1 < clusters < len(labels[sample]) else 0.0


def _last_best(values: Sequence[float]) -> int:
    """Index of the largest value; of equal ones the last."""
    return max(range(len(values)), key=lambda index: (values[index], index))


def _grid(most: int) -> tuple[int, ...]:
    """Numbers from 1 to `most`: all small ones, then farther and farther apart."""
    return tuple(sorted({*range(1, min(most, 8) + 1), *(round(value) for value in np.geomspace(1, most, 14))}))


def _sample(draw: np.random.Generator, labelled: int, unlabelled: int) -> tuple[Labels, Labels]:
    """About 4,000 rows of both together, in proportion to their numbers."""
    share = min(1.0, 4000 / (labelled + unlabelled))
    first = np.sort(draw.permutation(labelled)[: max(2, round(share * labelled))])
    return first, np.sort(draw.permutation(unlabelled)[: max(4, round(share * unlabelled))])
