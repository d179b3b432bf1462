"""Estimate the number of novel classes from known classes; labels of novel classes are never used.

Two criteria say about how many classes there are, and how far they may be off: the share of pairs of rows that are as
near to each other as rows of one class (`pairs`), and how strongly clusters are connected (`connections`). Both learn
from known classes. The agreement of clusterings decides where these are too few, and where it is clear (`agreement`).
The criteria that decide are the ones that are shown. Where unlabeled items may be of known classes, those that are
recognized as known are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.clustering.kmeans import kmeans
from unveil.counting.agreement import ROWS, Curve, Evidence, weigh
from unveil.counting.connections import weigh_connections
from unveil.counting.known_neighbors import recognize
from unveil.counting.pairs import LEAST_CLASSES, weigh_pairs
from unveil.errors import UnveilError
from unveil.numerics import Labels, Matrix

MOST, MOST_UNLABELED = 300, 60
"""Largest number of classes that is considered, with known classes and without."""
LEAST_SIZE = 3
"""Average number of items of a class at the largest number that is considered."""
TINY = 0.05
"""Where unlabeled items may be of known classes, clusters smaller than this share of the largest are not counted."""
INTERVAL = 1.64
"""Standard deviations to each side of the mean that hold 90 % of a normal distribution."""
FEW_KNOWN = (np.log(5), 1.0)
"""Mean and standard deviation of the logarithm of the number where known classes are too few to say anything."""
UNEVEN = 5
"""Clusters are called unbalanced above this ratio of the largest to the smallest size."""


@dataclass(frozen=True)
class Estimate:
    """The estimated number of novel classes, an interval, and the criteria behind it."""

    number: int
    low: int
    """Lower end of the 90 % interval."""
    high: int
    """Upper end of the 90 % interval."""
    curves: tuple[Curve, ...]
    sizes: tuple[int, ...]
    """Sizes of the k-means clusters at that number, largest first; of a sample where known classes may be included."""

    def sentence(self) -> str:
        """The estimate in one sentence."""
        between = (
            f"between {self.low} and {self.high}" if self.low != self.high else "and the interval holds no other number"
        )
        text = f"about {self.number} novel class{'es' if self.number != 1 else ''}, {between}"
        if unbalanced(self.sizes):
            ratio = self.sizes[0] / max(1, self.sizes[-1])
            text += f"; they look unbalanced: the largest cluster has {ratio:.0f} times the items of the smallest"
        return text

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm of the number."""
        return float(np.log(max(1, self.high) / max(1, self.low)) / (2 * INTERVAL))

    def to_json(self) -> dict[str, Any]:
        """For a JSON file."""
        return {**self.__dict__, "curves": [curve.__dict__ for curve in self.curves]}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "Estimate":
        """The estimate that `to_json` wrote."""
        curves = tuple(
            Curve(curve["name"], tuple(curve["numbers"]), tuple(curve["values"]), curve["best"])
            for curve in stored["curves"]
        )
        return Estimate(**{**stored, "curves": curves, "sizes": tuple(stored["sizes"])})


def unbalanced(sizes: Sequence[int]) -> bool:
    """Whether cluster sizes differ so much that methods which expect equal ones may go wrong."""
    return len(sizes) > 1 and max(sizes) > UNEVEN * max(1, min(sizes))


def estimate_classes(
    labeled: Matrix,
    y: Labels,
    unlabeled: Matrix,
    *,
    seed: int = 0,
    most: int | None = None,
    rows: int = ROWS,
    known_in_unlabeled: bool = False,
) -> Estimate:
    """Estimate the number of novel classes; `y` counts the known ones from 0.

    `known_in_unlabeled`: unlabeled items may be of known classes.
    """
    if len(unlabeled) < 2:
        count = len(unlabeled)
        return Estimate(count, count, count, (), (count,) * count)
    known = len(np.unique(y))
    mixed = known_in_unlabeled  # the counted classes include the known ones
    candidates = unlabeled
    if mixed and (recognized := recognize(labeled, y, unlabeled, seed)) is not None:
        candidates, mixed = unlabeled[recognized.unlabeled[~recognized.known]], False
    usual_most = max(1, (MOST if known >= 2 else MOST_UNLABELED) if most is None else most)
    limit = max(1, min(usual_most + (known if mixed else 0), len(candidates) // LEAST_SIZE, _distinct(candidates)))
    curves, numbers, before = list[Curve](), np.arange(1, limit + 1), None
    learned = known >= LEAST_CLASSES and len(labeled) >= 2 * known
    if learned:
        by_pairs = weigh_pairs(labeled, y, candidates, limit, seed)
        by_connections = weigh_connections(labeled, y, candidates, float(np.exp(by_pairs.mean)), seed)
        curves = [by_pairs.curve()]
        before = _log_normal(numbers, by_pairs.mean, by_pairs.spread)
        if by_connections is not None:
            before = before + _log_normal(numbers, by_connections.mean, by_connections.spread)
            curves.append(by_connections.curve(limit))
    elif known:
        before = _log_normal(numbers, *FEW_KNOWN)
    evidence = weigh(candidates, limit, seed, rows, before, learned)
    number = evidence.quantile(0.5) if before is None else evidence.likeliest
    # Clear clusters may be groups of classes: what known classes say is not the surer for them.
    expected = Evidence.of(before, evidence.agreement) if learned and before is not None else evidence
    low, high = min(number, expected.quantile(0.05)), max(number, expected.quantile(0.95))
    curves = [*evidence.curves(), *curves]
    if mixed:  # too few items to recognize known classes: the known ones were counted too
        number, low, high = (max(1, value - known) for value in (number, low, high))
        curves = [_without_first(curve, known) for curve in curves]
    if mixed:  # it is not known which of the clusters are novel
        return Estimate(number, low, high, tuple(curves), ())
    sizes = np.sort(np.bincount(kmeans(candidates, number, seed, n_init=3).labels))[::-1]
    if len(candidates) < len(unlabeled):  # remaining items of known classes may form small clusters
        sizes = sizes[sizes > TINY * sizes[0]]
        number = len(sizes)
    return Estimate(number, min(low, number), max(high, number), tuple(curves), tuple(int(size) for size in sizes))


def _log_normal(numbers: Labels, mean: float, spread: float) -> NDArray[np.float64]:
    """(len(numbers),): log-density, up to a constant, of a normal distribution of the logarithm of the number."""
    density: NDArray[np.float64] = -np.square((np.log(numbers) - mean) / spread) / 2
    return density


def _distinct(x: Matrix) -> int:
    """Number of different rows, of the first ones: there cannot be more classes."""
    return len(np.unique(x[:ROWS], axis=0)) if len(x) <= ROWS or (x[:ROWS] == x[0]).all() else len(x)


def _without_first(curve: Curve, known: int) -> Curve:
    """The curve over the number of novel classes, from one over the number of all."""
    left = [(n - known, value) for n, value in zip(curve.numbers, curve.values, strict=True) if n > known]
    numbers, values = zip(*left, strict=True) if left else ((), ())
    return replace(curve, best=max(1, curve.best - known), numbers=numbers, values=values)


def check_count(n_novel: int, unlabeled: int) -> None:
    """Raise an error where a given number of novel classes is impossible."""
    if n_novel < 1:
        raise UnveilError(f"n_novel is {n_novel}: give 1 or more, or 'auto'")
    if n_novel > unlabeled:
        raise UnveilError(f"{n_novel} novel classes in {unlabeled} unlabeled items: give fewer classes or more items")
