"""Items that arrive after a fit: placed in classes and clusters, or set aside until they are enough for a class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN

from unveil.discovery.predictor import NEIGHBOR, Predictor
from unveil.numerics import Matrix

LEAST = 2 * NEIGHBOR  # fewer items are no class, however small the known ones are


@dataclass(frozen=True, kw_only=True)
class Update:
    """What became of items that arrived later."""

    labels: NDArray[Any]
    """(n,): a known class, a novel cluster, or "neither" (-1 beside numeric labels) where an item was set aside."""
    kinds: NDArray[Any]
    """(n,): known, novel or neither."""
    probability: NDArray[np.float32]
    """(n,): of the label; of an item that was set aside, that of the nearest class."""
    set_aside: int
    """Items that were set aside so far, in this call and in those before it."""
    largest_group: int
    """Those of them that lie together."""
    needed: int
    """Items that lie together would make a new class from this number on: that of the smallest class of the fit."""

    @property
    def enough(self) -> bool:
        """Whether it is time to fit again."""
        return self.largest_group >= self.needed

    def sentence(self) -> str:
        """In words."""
        counts = {kind: int((self.kinds == kind).sum()) for kind in ("known", "novel", "neither")}
        known, novel, neither = counts.values()
        placed = f"{known} items of known classes, {novel} of novel ones, {neither} set aside"
        if self.set_aside == 0:
            return f"{placed}."
        group = f"the largest group of those set aside has {self.largest_group} items"
        advice = "fit again with all items" if self.enough else f"{self.needed} would make a new class"
        return f"{placed}; {group}: {advice}."


def largest_group(points: Matrix, predictor: Predictor, coverage: float) -> int:
    """The most points of which each is as near to others of them as items of the fit are to each other."""
    if len(points) < NEIGHBOR or predictor.distances is None:
        return 0
    near = float(np.quantile(predictor.distances, coverage))
    groups = DBSCAN(eps=max(near, 1e-12), min_samples=NEIGHBOR).fit_predict(points)
    return int(np.bincount(groups[groups >= 0]).max(initial=0)) if (groups >= 0).any() else 0
