"""Tell unlabeled rows of known classes from rows of novel classes, where both may be among them.

The neighbors of a row show it: in the graph of labeled and unlabeled rows, a row of a known class has labeled
neighbors, and a row of a novel class has few. How many is learned from the labeled rows themselves. If it was chance
which rows of known classes were labeled, then a labeled row, whose own label is not counted, has as many labeled
neighbors as an unlabeled row of a known class. With f the densities of such a score and π the share of known rows:

    f_unlabeled = π f_labeled + (1 − π) f_novel,      p(known | score) = π f_labeled(score) / f_unlabeled(score)

Nothing is trained. Where the cut lies follows from the scores; how π is read off them (`CERTAIN`) was chosen on the
tasks that the method was developed on.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from unveil import rng
from unveil.clustering.graph import edge_weights, neighbor_graph
from unveil.counting.agreement import ROWS
from unveil.counting.estimate import Estimate, estimate_classes
from unveil.data.items import Items
from unveil.data.task import UNLABELED, Task
from unveil.discovery.fit import clean_vectors
from unveil.numerics import (
    Labels,
    Matrix,
    directions,
    squared_distances,
    sums_by_label,
    whitening,
    within_class_covariance,
)

Shape = Callable[[Matrix, Labels], Matrix]
"""Vectors, shaped by those of them that have a label."""
NEIGHBORS = (10, 20, 40)
"""Neighbors of a row in each graph."""
LABELED, PART, PER_LABELED = 4000, 8000, 4
"""Most labeled rows in a graph; most unlabeled ones, and most of them for each labeled one. Further unlabeled rows
are in further graphs."""
LEAST_EACH = 4
"""Labeled rows of a class, on average, without which its neighbors say nothing."""
CERTAIN = 0.7
"""π is the ratio of unlabeled to labeled rows above this quantile of the labeled rows' scores."""
FLOOR = 0.02
"""Added to shares of 0 and 1, whose log-odds would be infinite."""
FOLDS, SHRINKAGE = 5, 1.0


def recognized_rows(
    task: Task, points: Matrix, seed: int, unshaped: Task | None = None, shape: Callable[[Task], Task] | None = None
) -> Labels | None:
    """`recognize_known` of a task; where known classes shaped its points, `unshaped` has them as they were before."""
    if unshaped is None or shape is None:
        return recognize_known(points, task.labels, seed)

    def shaped(x: Matrix, labels: Labels) -> Matrix:
        return directions(clean_vectors(shape(replace(unshaped, items=Items.of(x), labels=labels, ids=None))))

    return recognize_known(clean_vectors(unshaped), task.labels, seed, shaped)


def estimate_novel(task: Task, points: Matrix, recognized: Labels | None, *, rows: int = ROWS) -> Estimate:
    """The number of novel classes among the rows that are not recognized as known.

    Rows that are recognized count as rows of their class. Draws are fixed: the same data get the same number.
    """
    labels, mixed = task.labels if recognized is None else recognized, recognized is None and task.known_in_unlabeled
    known = labels != UNLABELED
    return estimate_classes(
        points[known],
        labels[known],
        points[~known],
        rows=rows,
        known_in_unlabeled=mixed,
    )


def recognize_known(x: Matrix, labels: Labels, seed: int, shape: Shape | None = None) -> Labels | None:
    """(n,): the labels, with the classes of unlabeled rows that are recognized as known; -1 elsewhere.

    `shape`: what known classes do to the vectors before neighbors are looked for. None: too few labeled rows.
    """
    labeled, unlabeled = np.flatnonzero(labels != UNLABELED), np.flatnonzero(labels == UNLABELED)
    classes = len(np.unique(labels[labeled]))
    if classes == 0 or len(labeled) < LEAST_EACH * classes:
        return None
    draw = rng.numpy(seed, "recognise known classes")
    some = draw.permutation(labeled)[:LABELED]
    parts = -(-len(unlabeled) // min(PART, PER_LABELED * len(some)))
    filled = labels.copy()
    means = _accuracy_of_means(x[some], labels[some], draw)
    for part in np.array_split(draw.permutation(unlabeled), parts) if parts else []:
        rows, own = np.concatenate([some, part]), len(some)
        hidden = np.concatenate([labels[some], np.full(len(part), UNLABELED)])
        shares, scores = _among_neighbors(x[rows], hidden, draw, shape)
        nearest = shares.argmax(axis=1)
        classified = nearest[own:]
        if means > float((nearest[:own] == labels[some]).mean()):
            classified = nearest_means(x[some], labels[some], x[part])
        known = probability_known(scores[:own], scores[own:]) > 0.5
        filled[part[known]] = classified[known]
    return filled


def _among_neighbors(
    x: Matrix, labels: Labels, draw: np.random.Generator, shape: Shape | None
) -> tuple[Matrix, NDArray[np.float64]]:
    """Shares (n, classes) of known classes among the neighbors of each row, and its score (n,).

    Labeled rows that shape the vectors are nearer to each other than to unlabeled ones. So the vectors are shaped
    twice, by either half of the labeled rows, and the other half is compared with the unlabeled rows.
    """
    if shape is None:
        return neighbor_shares(x, labels)
    half = draw.integers(2, size=len(labels))
    shaped = [shape(x, np.where(half == one, labels, UNLABELED)) for one in (0, 1)]
    if np.array_equal(shaped[0], shaped[1]):  # labels change nothing
        return neighbor_shares(shaped[0], labels)
    halves = [neighbor_shares(vectors, labels) for vectors in shaped]
    first = np.where(labels == UNLABELED, 0.5, half == 1)  # the weight of the graph shaped by half 0
    shares = first[:, None] * halves[0][0] + (1 - first)[:, None] * halves[1][0]
    return shares.astype(np.float32), first * halves[0][1] + (1 - first) * halves[1][1]


def neighbor_shares(x: Matrix, labels: Labels) -> tuple[Matrix, NDArray[np.float64]]:
    """Shares (n, classes) of known classes among neighbors and their neighbors, and a score (n,) that is high for rows
    with many labeled ones. The label of a row does not count for itself."""
    graph, known = neighbor_graph(x, max(NEIGHBORS)), np.flatnonzero(labels != UNLABELED)
    member = np.zeros((len(x), int(labels.max()) + 1), dtype=np.float32)
    member[known, labels[known]] = 1
    shares, scores = np.zeros_like(member), np.zeros(len(x))
    for k in NEIGHBORS:
        weights = edge_weights(graph.nearest(k))
        steps = (sp.diags(1 / np.asarray(weights.sum(axis=1)).ravel()) @ weights).tocsr()
        near = steps @ member
        far = steps @ near
        back = np.asarray(steps.multiply(steps.T).sum(axis=1)).ravel()  # the way back to the row itself
        far[known, labels[known]] -= back[known]
        far = np.clip(far / np.maximum(1 - back, 1e-6)[:, None], 0, 1)
        for share in (near, far):
            shares += share / (2 * len(NEIGHBORS))
            scores += _log_odds(share.sum(axis=1)) + _log_odds(share.max(axis=1))
    return shares, scores


def _log_odds(share: NDArray[np.floating]) -> NDArray[np.float64]:
    odds: NDArray[np.float64] = np.log((share + FLOOR) / (1 + FLOOR - np.minimum(share, 1)))
    return odds


def probability_known(labeled: NDArray[np.float64], unlabeled: NDArray[np.float64]) -> NDArray[np.float64]:
    """(u,): the probability that unlabeled rows are of known classes, from the scores of labeled and unlabeled ones.

    The ratio of the two densities grows with the score, so that it is fitted by an increasing function.
    """
    certain = np.quantile(labeled, CERTAIN)
    share = float(min(1.0, (unlabeled >= certain).mean() / (labeled >= certain).mean()))
    scores = np.concatenate([labeled, unlabeled])
    is_labeled = np.arange(len(scores)) < len(labeled)
    weights = np.where(is_labeled, 1 / len(labeled), 1 / len(unlabeled))  # as if there were as many of each
    fitted = IsotonicRegression(y_min=0, y_max=1 - 1e-6, out_of_bounds="clip").fit(scores, is_labeled, weights)
    p = fitted.predict(unlabeled)
    known: NDArray[np.float64] = np.minimum(1, share * p / (1 - p))
    return known


def nearest_means(labeled: Matrix, y: Labels, x: Matrix) -> Labels:
    """(n,): the class whose mean is nearest, after whitening by the spread within classes."""
    present, index = np.unique(y, return_inverse=True)
    axes = whitening(within_class_covariance(labeled, index), SHRINKAGE)
    means = sums_by_label(labeled @ axes, index, len(present)) / np.bincount(index)[:, None]
    nearest: Labels = present[squared_distances(x @ axes, means.astype(np.float32)).argmin(axis=1)]
    return nearest


def _accuracy_of_means(x: Matrix, y: Labels, draw: np.random.Generator) -> float:
    """The share of labeled rows that the means of the other rows classify correctly."""
    fold = draw.integers(FOLDS, size=len(y))
    correct = 0
    for part in range(FOLDS):
        tested = fold == part
        if tested.any() and not tested.all():
            correct += int((nearest_means(x[~tested], y[~tested], x[tested]) == y[tested]).sum())
    return correct / len(y)
