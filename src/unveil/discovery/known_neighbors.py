"""Recognise unlabelled items of known classes by the labels around them."""

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
"""Items of each kind that are looked at, and how many at most where there are many classes: the cost grows with their
square."""
RECOGNISED = 0.6
"""An unlabelled item is taken to be of a known class that has this share around it, relative to the share that the
class of a labelled item has around that."""

SUSPICIOUS = 0.05, 1.2
"""So many unlabelled items may lie deep in a known class before a warning: a share, and a multiple of the share of
labelled items that lie as deep in another class than theirs."""


@dataclass(frozen=True)
class Among:
    """Shares of known classes among the neighbors of the nearest neighbors of items."""

    labelled: Labels
    """Rows that were drawn."""
    unlabelled: Labels
    own: NDArray[np.float64]
    """Of each labelled item: the share of its class."""
    other: NDArray[np.float64]
    """And the largest share of another known class."""
    share: NDArray[np.float64]
    """Of each unlabelled item: the largest share of a known class."""
    label: Labels
    """And that class."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Of each unlabelled item: whether it seems to be of a known class."""
        known: NDArray[np.bool_] = self.share >= RECOGNISED * self.own.mean()
        return known


def among_known(labelled: Matrix, y: Labels, unlabelled: Matrix, seed: int) -> Among:
    """Shares of known classes around items.

    Unlabelled items are looked at together with as many labelled ones, in several parts where these are few: so an
    unlabelled item of a known class finds enough neighbors there, however many others there are.
    """
    draw = rng.numpy(seed, "among known classes")
    drawn = min(max(DRAWN, 4 * NEIGHBORS * len(np.unique(y))), MOST_DRAWN)
    total = min(drawn, len(unlabelled))
    each = min(total, len(labelled))
    old = np.sort(draw.permutation(len(labelled))[:each])
    new = draw.permutation(len(unlabelled))[:total]
    parts = [np.sort(part) for part in np.array_split(new, -(-total // each))]
    shares = [_around(labelled[old], y[old], unlabelled[part]) for part in parts]
    own, other, share, label = (np.concatenate(values) for values in zip(*shares, strict=True))
    return Among(np.tile(old, len(parts)), np.concatenate(parts), own, other, share, label)


def _around(old: Matrix, y: Labels, new: Matrix) -> tuple[NDArray[Any], ...]:
    x, classes = np.concatenate([old, new]), np.concatenate([y, np.full(len(new), -1)])
    nearest = NearestNeighbors(n_neighbors=min(NEIGHBORS, len(x) - 1), algorithm="brute").fit(x)
    neighbors = nearest.kneighbors(return_distance=False)  # (n, neighbors), without the item itself
    own, other, best = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x), dtype=np.int64)
    for label in np.unique(y):
        mine = classes == label
        share = mine[neighbors].mean(axis=1)[neighbors].mean(axis=1)  # of the neighbors' neighbors: less noise
        own[mine] = share[mine]
        best[share > other] = label
        other = np.maximum(other, np.where(mine, 0, share))
    return own[: len(old)], other[: len(old)], other[len(old) :], best[len(old) :]


def recognise(labelled: Matrix, y: Labels, unlabelled: Matrix, seed: int) -> Among | None:
    """Look for items of known classes.

    None where classes have too few labelled items on average, or fewer than two items are left for novel classes.
    """
    classes = len(np.unique(y))
    if min(len(labelled), len(unlabelled)) < 3 * NEIGHBORS * max(1, classes):
        return None
    around = among_known(labelled, y, unlabelled, seed)
    enough = len(np.unique(around.labelled)) >= 3 * NEIGHBORS * classes
    return around if enough and (~around.known).sum() >= 2 else None


def warn_of_known_classes(task: Task, points: Matrix, seed: int) -> list[str]:
    """A warning where more unlabelled items have one known class around them than classes have in common.

    What is usual between classes is measured on the known ones.
    """
    labelled, unlabelled = task.labelled, task.unlabelled
    if min(len(labelled), len(unlabelled)) < 50 or len(task.known) < 2:
        return []
    around = among_known(points[labelled], task.labels[labelled], points[unlabelled], seed)
    deep = around.own.mean()  # the share of their own class that labelled items usually have around them
    share, usual = float((around.share >= deep).mean()), float((around.other >= deep).mean())
    if share <= SUSPICIOUS[0] + SUSPICIOUS[1] * usual:
        return []
    return [
        f"{100 * share:.0f} % of the unlabelled items lie deep among items of a known class: the unlabelled data seems "
        "to contain known classes; use known_in_unlabelled=True (--known-in-unlabelled) if it may"
    ]
