"""Recognize unlabeled items of known classes by the labels of their neighbors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from unveil import rng
from unveil.data.task import Task
from unveil.numerics import Labels, Matrix

NEIGHBORS = 10
DRAWN, MOST_DRAWN = 4000, 12_000
"""Items of each kind that are sampled, and the most that are sampled where there are many classes: the cost grows with
their square."""
RECOGNIZED = 0.6
"""An unlabeled item counts as known if the share of a known class among its neighbors reaches this fraction of the
mean share that labeled items have of their own class."""

SUSPICIOUS = 0.05, 1.2
"""(a, b): a warning is given if the share of unlabeled items deep in a known class exceeds a + b · usual, where usual
is the share of labeled items that are as deep in a class other than their own."""


@dataclass(frozen=True)
class Neighborhoods:
    """Shares of known classes among the neighbors of the neighbors of sampled items."""

    labeled: Labels
    """(l,): sampled labeled rows, repeated where several parts use them."""
    unlabeled: Labels
    """(u,): sampled unlabeled rows."""
    own: NDArray[np.float64]
    """(l,): share of the labeled item's own class."""
    other: NDArray[np.float64]
    """(l,): largest share of another known class."""
    share: NDArray[np.float64]
    """(u,): largest share of a known class."""
    label: Labels
    """(u,): the class with that share."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """(u,): whether the unlabeled item is recognized as known."""
        known: NDArray[np.bool_] = self.share >= RECOGNIZED * self.own.mean()
        return known


def among_known(labeled: Matrix, y: Labels, unlabeled: Matrix, seed: int) -> Neighborhoods:
    """Shares of known classes among the neighbors of samples of labeled and unlabeled items.

    Each part has about as many labeled as unlabeled items; where labeled ones are few there are several parts. So an
    unlabeled item of a known class has enough labeled neighbors, however many unlabeled items there are.
    """
    draw = rng.numpy(seed, "among known classes")
    drawn = min(max(DRAWN, 4 * NEIGHBORS * len(np.unique(y))), MOST_DRAWN)
    total = min(drawn, len(unlabeled))
    each = min(total, len(labeled))
    old = np.sort(draw.permutation(len(labeled))[:each])
    new = draw.permutation(len(unlabeled))[:total]
    parts = [np.sort(part) for part in np.array_split(new, -(-total // each))]
    shares = [_around(labeled[old], y[old], unlabeled[part]) for part in parts]
    own, other, share, label = (np.concatenate(values) for values in zip(*shares, strict=True))
    return Neighborhoods(np.tile(old, len(parts)), np.concatenate(parts), own, other, share, label)


def _around(old: Matrix, y: Labels, new: Matrix) -> tuple[NDArray[Any], ...]:
    x, classes = np.concatenate([old, new]), np.concatenate([y, np.full(len(new), -1)])
    nearest = NearestNeighbors(n_neighbors=min(NEIGHBORS, len(x) - 1), algorithm="brute").fit(x)
    neighbors = nearest.kneighbors(return_distance=False)  # (n, neighbors), without the item itself
    own, other, best = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x), dtype=np.int64)
    for label in np.unique(y):
        members = classes == label
        share = members[neighbors].mean(axis=1)[neighbors].mean(axis=1)  # over neighbors of neighbors
        own[members] = share[members]
        best[share > other] = label
        other = np.maximum(other, np.where(members, 0, share))
    return own[: len(old)], other[: len(old)], other[len(old) :], best[len(old) :]


def recognize(labeled: Matrix, y: Labels, unlabeled: Matrix, seed: int) -> Neighborhoods | None:
    """Find unlabeled items of known classes.

    None where classes have too few labeled items on average, or fewer than two items are left for novel classes.
    """
    classes = len(np.unique(y))
    if min(len(labeled), len(unlabeled)) < 3 * NEIGHBORS * max(1, classes):
        return None
    around = among_known(labeled, y, unlabeled, seed)
    enough = len(np.unique(around.labeled)) >= 3 * NEIGHBORS * classes
    return around if enough and (~around.known).sum() >= 2 else None


def warn_of_known_classes(task: Task, points: Matrix, seed: int) -> list[str]:
    """A warning where more unlabeled items are surrounded by a known class than the overlap of classes explains.

    The usual overlap is measured between known classes.
    """
    labeled, unlabeled = task.labeled, task.unlabeled
    if min(len(labeled), len(unlabeled)) < 50 or len(task.known) < 2:
        return []
    around = among_known(points[labeled], task.labels[labeled], points[unlabeled], seed)
    deep = around.own.mean()  # the usual share of the own class among neighbors
    share, usual = float((around.share >= deep).mean()), float((around.other >= deep).mean())
    if share <= SUSPICIOUS[0] + SUSPICIOUS[1] * usual:
        return []
    return [
        f"{100 * share:.0f} % of the unlabeled items are surrounded by items of a known class: the unlabeled data "
        "seems to contain known classes; use known_in_unlabeled=True (--known-in-unlabeled) if it may"
    ]
