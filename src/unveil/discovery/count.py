"""Estimate the number of novel classes from known classes; labels of novel classes are never used.

- *merge height*: Ward's tree of the unlabelled items is cut at the height at which trees of known classes fall into
  their true number of classes. This is the estimate.
- *labelled accuracy*: k-means on labelled and unlabelled items together, for many numbers of clusters; the best number
  is the one with the highest accuracy on labelled items (the search used for generalised category discovery).
- *probe classes*: some known classes are hidden among the unlabelled items, and k-means keeps the other labelled items
  in their classes; the best number has the highest accuracy on the hidden classes and the most compact clusters (deep
  transfer clustering).

The last two are only shown beside the estimate: they are made for unlabelled items that contain known classes, and
underestimate the number otherwise.

Where unlabelled items may be of known classes, those that are recognised as known are left out of the tree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from sklearn.metrics import silhouette_score

from unveil import rng
from unveil.discovery.clusters import kmeans, semi_kmeans
from unveil.discovery.known_neighbors import recognise
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.numerics import Labels, Matrix

ROWS = 1500
"""Items in a tree: its cost grows with their square."""
TREES, DRAWS = 24, 5
"""Number of trees of known classes, and of trees of unlabelled items."""
ALIKE = np.log(1.5)
"""Two numbers of classes count as similar if their logarithms differ by less than this."""
TINY = 0.05
"""Where unlabelled items may be of known classes, clusters smaller than this share of the largest are not counted."""
UNEVEN = 5
"""Clusters are called unbalanced above this ratio of the largest to the smallest size."""


@dataclass(frozen=True)
class Curve:
    """A criterion over the number of novel classes, and the number it prefers."""

    name: str
    numbers: tuple[int, ...]
    values: tuple[float, ...]
    best: int
    level: float | None = None
    """The value of known classes at their true number; None where the criterion does not use it."""


@dataclass(frozen=True)
class Estimate:
    """The estimated number of novel classes, an interval, and the criteria behind it."""

    number: int
    low: int
    high: int
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

    def to_json(self) -> dict[str, Any]:
        """For a JSON file."""
        return {**self.__dict__, "curves": [curve.__dict__ for curve in self.curves]}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "Estimate":
        """The estimate that `to_json` wrote."""
        curves = tuple(
            Curve(**{**curve, "numbers": tuple(curve["numbers"]), "values": tuple(curve["values"])})
            for curve in stored["curves"]
        )
        return Estimate(**{**stored, "curves": curves, "sizes": tuple(stored["sizes"])})


def unbalanced(sizes: Sequence[int]) -> bool:
    """Whether cluster sizes differ so much that methods which expect equal ones may go wrong."""
    return len(sizes) > 1 and max(sizes) > UNEVEN * max(1, min(sizes))


def estimate_classes(
    labelled: Matrix,
    y: Labels,
    unlabelled: Matrix,
    *,
    seed: int = 0,
    most: int | None = None,
    rows: int = ROWS,
    compare: bool = False,
    known_in_unlabelled: bool = False,
) -> Estimate:
    """Estimate the number of novel classes; `y` counts the known ones from 0. `compare` adds the slower criteria.

    `known_in_unlabelled`: unlabelled items may be of known classes.
    """
    if len(unlabelled) < 2:
        count = len(unlabelled)
        return Estimate(count, count, count, (), (count,) * count)
    known = len(np.unique(y))
    mixed = known_in_unlabelled  # the counted classes include the known ones
    candidates, size = unlabelled, 1.0
    if mixed and (recognised := recognise(labelled, y, unlabelled, seed)) is not None:
        candidates, mixed = unlabelled[recognised.unlabelled[~recognised.known]], False
        size = len(recognised.known) / len(unlabelled) + float(recognised.known.sum()) / len(y)  # share in a draw
    limit = max(1, min((most or 500) + (known if mixed else 0), len(candidates) - 1))
    if known >= 2 and len(labelled) > known:
        curve, low, high = by_merge_height(labelled, y, candidates, limit, seed, rows, size)
    else:
        curve, low, high = _without_labels(candidates, limit, seed)
    if mixed:  # too few items to recognise known classes: the known ones were counted too
        low, high = max(1, low - known), max(1, high - known)
        left = [(n - known, value) for n, value in zip(curve.numbers, curve.values, strict=True) if n > known]
        numbers, values = zip(*left, strict=True) if left else ((), ())
        curve = replace(curve, best=max(1, curve.best - known), numbers=numbers, values=values)
    curves = [curve]
    if compare and known >= 2:
        largest = min(max(1, len(unlabelled) - known), limit, max(10, 3 * curve.best))
        curves.append(by_labels(labelled, y, unlabelled, largest, seed))
        if known >= 4:
            curves.append(by_probes(labelled, y, unlabelled, largest, seed))
    if mixed:  # it is not known which of the clusters are novel
        return Estimate(curve.best, low, high, tuple(curves), ())
    sizes = np.sort(np.bincount(kmeans(candidates, curve.best, seed, n_init=3).labels))[::-1]
    number = curve.best
    if len(candidates) < len(unlabelled):  # remaining items of known classes may form small clusters
        sizes = sizes[sizes > TINY * sizes[0]]
        number = len(sizes)
    return Estimate(number, min(low, number), max(high, number), tuple(curves), tuple(int(size) for size in sizes))


def by_merge_height(
    labelled: Matrix, y: Labels, unlabelled: Matrix, most: int, seed: int, rows: int = ROWS, size: float = 1.0
) -> tuple[Curve, int, int]:
    """Cut Ward's tree at the height at which trees of known classes have their true number; returns (curve, low, high).

    Trees are sampled so that a class has about as many items in each: a novel class is assumed to have `size` times as
    many items as a known class has labelled ones.
    """
    classes = np.unique(y)
    share = min(1.0, rows / max(size * len(labelled), len(unlabelled)))
    of_known = min(1.0, size * share)
    offset = 0.5 * np.log(size * share / of_known)  # heights grow with the root of the number of items
    counts, levels = [], []
    for number in range(TREES):
        draw = rng.numpy(seed, "merge height of known classes", number)
        count = round(np.exp(draw.uniform(np.log(2), np.log(len(classes)))))
        chosen = np.flatnonzero(np.isin(y, draw.permutation(classes)[:count]))
        chosen = draw.permutation(chosen)[: max(count + 2, round(of_known * len(chosen)))]
        if len(chosen) > count:
            counts.append(count)
            levels.append(float(_cuts(labelled[chosen], count)[count - 1] + offset))
    cuts = []
    for number in range(DRAWS):
        draw = rng.numpy(seed, "merge height of unlabelled items", number)
        chosen = draw.permutation(len(unlabelled))[: max(4, round(share * len(unlabelled)))]
        cuts.append(_cuts(unlabelled[chosen], min(most, len(chosen) - 1)))
    mean = np.mean([cut[: min(map(len, cuts))] for cut in cuts], axis=0)

    def nearest(height: float) -> int:
        return int(np.argmin(np.abs(mean - height))) + 1

    level, spread = float(np.median(levels)), float(np.std(levels))
    for _ in range(3):  # heights fall with the number of classes: compare with trees of about as many
        similar = np.abs(np.log(np.array(counts) / min(nearest(level), len(classes)))) < ALIKE
        if similar.sum() >= 3:
            level, spread = float(np.median(np.array(levels)[similar])), float(np.std(np.array(levels)[similar]))
    shown = min(len(mean), max(10, 3 * nearest(level)))
    curve = Curve(
        "merge height (log)", tuple(range(1, shown + 1)), tuple(map(float, mean[:shown])), nearest(level), level
    )
    return curve, nearest(level + 1.64 * spread), nearest(level - 1.64 * spread)


def _cuts(x: Matrix, most: int) -> NDArray[np.float64]:
    """At index k − 1: the logarithm of the height at which Ward's tree of `x` has k clusters (middle of its range)."""
    merges = np.log(np.maximum(linkage(x.astype(np.float64), "ward")[::-1, 2], 1e-12))  # from the root down
    above = np.concatenate([[merges[0] + 0.05], merges[:-1]])  # one cluster: anywhere above the root
    middle: NDArray[np.float64] = (above + merges) / 2
    return middle[: max(1, most)]


def _without_labels(x: Matrix, most: int, seed: int) -> tuple[Curve, int, int]:
    """The number with the highest silhouette, where there are fewer than two known classes to compare with."""
    rows = rng.numpy(seed, "silhouette").permutation(len(x))[:ROWS]
    points = x[rows]
    numbers = [number for number in _grid(min(most, 60, len(points) - 1)) if number >= 2]
    if not numbers or len(np.unique(points, axis=0)) <= 2:
        distinct = len(np.unique(points, axis=0))
        return Curve("silhouette", (distinct,), (0.0,), max(1, min(distinct, most))), 1, max(1, distinct)
    values = [_silhouette(points, kmeans(points, number, seed, n_init=3).labels) for number in numbers]
    best = numbers[int(np.argmax(values))]
    good = [number for number, value in zip(numbers, values, strict=True) if value > max(values) - 0.02]
    return Curve("silhouette", tuple(numbers), tuple(values), best), min(good), max(good)


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
    sample = slice(None, None, max(1, len(x) // ROWS))
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


def check_count(n_novel: int, unlabelled: int) -> None:
    """Raise an error where a given number of novel classes is impossible."""
    if n_novel < 1:
        raise UnveilError(f"n_novel is {n_novel}: give 1 or more, or 'auto'")
    if n_novel > unlabelled:
        raise UnveilError(f"{n_novel} novel classes in {unlabelled} unlabelled items: give fewer classes or more items")
