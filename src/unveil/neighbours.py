"""Which known class does an item lie among?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from unveil import rng
from unveil.cluster import Labels, Matrix

NEIGHBOURS = 10
DRAWN = 4000
"""Items of each kind that are looked at: the cost grows with their square."""
RECOGNISED = 0.6
"""An unlabelled item is taken to be of a known class that has this share around it, relative to the share that the
class of a labelled item has around that."""


@dataclass(frozen=True)
class Among:
    """Shares of known classes among the neighbours of the nearest neighbours of items."""

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
        found: NDArray[np.bool_] = self.share >= RECOGNISED * self.own.mean()
        return found


def among_known(labelled: Matrix, y: Labels, unlabelled: Matrix, seed: int) -> Among:
    """Shares of known classes around as many labelled as unlabelled items.

    Both kinds are drawn in equal number, so that an unlabelled item of a known class finds enough neighbours there.
    """
    draw = rng.numpy(seed, "among known classes")
    each = min(DRAWN, len(labelled), len(unlabelled))
    old, new = (np.sort(draw.permutation(len(part))[:each]) for part in (labelled, unlabelled))
    x = np.concatenate([labelled[old], unlabelled[new]])
    classes = np.concatenate([y[old], np.full(each, -1)])
    nearest = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(x) - 1), algorithm="brute").fit(x)
    near = nearest.kneighbors(return_distance=False)  # (2 each, neighbours), without the item itself
    own, other, best = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x), dtype=np.int64)
    for label in np.unique(y):
        mine = classes == label
        share = mine[near].mean(axis=1)[near].mean(axis=1)  # of the neighbours' neighbours: less noise
        own[mine] = share[mine]
        best[share > other] = label
        other = np.maximum(other, np.where(mine, 0, share))
    return Among(old, new, own[:each], other[:each], other[each:], best[each:])


def recognise(labelled: Matrix, y: Labels, unlabelled: Matrix, seed: int) -> Among | None:
    """Look for items of known classes; None where classes have too few items, or no item is left for novel ones."""
    if min(len(labelled), len(unlabelled)) < 2:
        return None
    near = among_known(labelled, y, unlabelled, seed)
    enough = len(near.labelled) >= 3 * NEIGHBOURS * len(np.unique(y))
    return near if enough and not near.known.all() else None
