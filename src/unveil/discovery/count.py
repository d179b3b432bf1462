"""How many novel classes are there? Known classes say what a class is; nothing here sees a label of a novel one.

- *merge height*: Ward's tree of the unlabelled items is cut at the height at which trees of known classes fall into
  their true number of classes. This is the estimate.
- *labelled accuracy*: k-means on labelled and unlabelled items together, for many numbers of clusters; where the
  labelled items come out best (the search used for generalised category discovery).
- *probe classes*: some known classes are hidden among the unlabelled items and k-means keeps the others in place; where
  the hidden classes come out best and where clusters are most compact (deep transfer clustering).

The last two are shown beside it: they want unlabelled items that contain known classes, and count too few without.

Where unlabelled items may be of known classes, those that lie among one are set aside before the tree is made.
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
"""Items of a tree: its cost grows with their square."""
TREES, DRAWS = 24, 5
"""Trees of known classes, and of unlabelled items."""
ALIKE = np.log(1.5)
"""Numbers of classes that are about the same differ by less than this in their logarithm."""
TINY = 0.05
"""A cluster smaller than this share of the largest is no class, where unlabelled items contain known classes."""
UNEVEN = 5
"""Clusters are called unbalanced from this ratio of sizes on."""


@dataclass(frozen=True)
class Curve:
    """A criterion over the number of novel classes, and the number it prefers."""

    name: str
    numbers: tuple[int, ...]
    values: tuple[float, ...]
    best: int
    level: float | None = None
    """The value that known classes have at their true number, where the criterion compares with that."""


@dataclass(frozen=True)
class Estimate:
    """The number of novel classes, an interval, and what it comes from."""

    number: int
    low: int
    high: int
    curves: tuple[Curve, ...]
    sizes: tuple[int, ...]
    """Sizes of the k-means clusters at that number, largest first; of a draw where known classes are inside."""

    def sentence(self) -> str:
        """In words."""
        between = f"between {self.low} and {self.high}" if self.low != self.high else "and no draw says otherwise"
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
        """What `to_json` made."""
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
    mixed = known_in_unlabelled  # known classes are among those that are counted
    candidates, size = unlabelled, 1.0
    if mixed and (recognised := recognise(labelled, y, unlabelled, seed)) is not None:
        candidates, mixed = unlabelled[recognised.unlabelled[~recognised.known]], False
        size = len(recognised.known) / len(unlabelled) + float(recognised.known.sum()) / len(y)  # share in a draw
    limit = max(1, min((most or 500) + (known if mixed else 0), len(candidates) - 1))
    if known >= 2 and len(labelled) > known:
        curve, low, high = by_merge_height(labelled, y, candidates, limit, seed, rows, size)
    else:
        curve, low, high = _without_labels(candidates, limit, seed)
    if mixed:  # too few items to tell them apart: all classes were counted
        low, high = max(1, low - known), max(1, high - known)
        left = [(n - known, value) for n, value in zip(curve.numbers, curve.values, strict=True) if n > known]
        numbers, values = zip(*left, strict=True) if left else ((), ())
        curve = replace(curve, best=max(1, curve.best - known), numbers=numbers, values=values)
    curves = [curve]
    if compare and known >= 2:
        reach = min(max(1, len(unlabelled) - known), limit, max(10, 3 * curve.best))
        curves.append(by_labels(labelled, y, unlabelled, reach, seed))
        if known >= 4:
            curves.append(by_probes(labelled, y, unlabelled, reach, seed))
    if mixed:  # nothing says which of the clusters are novel
        return Estimate(curve.best, low, high, tuple(curves), ())
    sizes = np.sort(np.bincount(kmeans(candidates, curve.best, seed, n_init=3).labels))[::-1]
    number = curve.best
    if len(candidates) < len(unlabelled):  # a few items of known classes are left, and may be clusters of their own
        sizes = sizes[sizes > TINY * sizes[0]]
        number = len(sizes)
    return Estimate(number, min(low, number), max(high, number), tuple(curves), tuple(int(size) for size in sizes))


def by_merge_height(
    labelled: Matrix, y: Labels, unlabelled: Matrix, most: int, seed: int, rows: int = ROWS, size: float = 1.0
) -> tuple[Curve, int, int]:
    """Ward's tree, cut where trees of known classes fall into their classes; and an interval for the number.

    A class has about as many items in every tree: a novel one is taken to have `size` times the labelled items of a
    known one.
    """
    classes = np.unique(y)
    share = min(1.0, rows / max(size * len(labelled), len(unlabelled)))
    of_known = min(1.0, size * share)
    higher = 0.5 * np.log(size * share / of_known)  # heights grow with the root of the number of items
    counts, levels = [], []
    for number in range(TREES):
        draw = rng.numpy(seed, "merge height of known classes", number)
        count = round(np.exp(draw.uniform(np.log(2), np.log(len(classes)))))
        chosen = np.flatnonzero(np.isin(y, draw.permutation(classes)[:count]))
        chosen = draw.permutation(chosen)[: max(count + 2, round(of_known * len(chosen)))]
        if len(chosen) > count:
            counts.append(count)
            levels.append(float(_cuts(labelled[chosen], count)[count - 1] + higher))
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
        like = np.abs(np.log(np.array(counts) / min(nearest(level), len(classes)))) < ALIKE
        if like.sum() >= 3:
            level, spread = float(np.median(np.array(levels)[like])), float(np.std(np.array(levels)[like]))
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
    """Most compact clusters by silhouette: all that can be done with fewer than two known classes."""
    rows = rng.numpy(seed, "silhouette").permutation(len(x))[:ROWS]
    points = x[rows]
    numbers = [number for number in _grid(min(most, 60, len(points) - 1)) if number >= 2]
    if not numbers or len(np.unique(points, axis=0)) <= 2:
        only = len(np.unique(points, axis=0))
        return Curve("silhouette", (only,), (0.0,), max(1, min(only, most))), 1, max(1, only)
    values = [_silhouette(points, kmeans(points, number, seed, n_init=3).labels) for number in numbers]
    best = numbers[int(np.argmax(values))]
    good = [number for number, value in zip(numbers, values, strict=True) if value > max(values) - 0.02]
    return Curve("silhouette", tuple(numbers), tuple(values), best), min(good), max(good)


def by_labels(labelled: Matrix, y: Labels, unlabelled: Matrix, most: int, seed: int) -> Curve:
    """Accuracy on the labelled items of k-means on all items, over the number of clusters."""
    rows_l, rows_u = _sample(rng.numpy(seed, "labelled accuracy"), len(labelled), len(unlabelled))
    known, both, truth = len(np.unique(y)), np.concatenate([labelled[rows_l], unlabelled[rows_u]]), y[rows_l]

    def accuracy(novel: int) -> float:
        clusters = kmeans(both, known + novel, seed, n_init=2).labels[: len(rows_l)]
        return clustering_accuracy(truth, clusters)

    return _search("labelled accuracy", accuracy, most)


def by_probes(labelled: Matrix, y: Labels, unlabelled: Matrix, most: int, seed: int) -> Curve:
    """Hide a third of the known classes; how many clusters suit them and are compact?"""
    draw = rng.numpy(seed, "probe classes")
    rows_l, rows_u = _sample(draw, len(labelled), len(unlabelled))
    x_l, y_l, x_u = labelled[rows_l], y[rows_l], unlabelled[rows_u]
    classes = draw.permutation(np.unique(y_l))
    hidden, kept = classes[: len(classes) // 3], np.sort(classes[len(classes) // 3 :])
    probe = np.isin(y_l, hidden)
    points, count = np.concatenate([x_l[probe], x_u]), int(probe.sum())

    def scores(novel: int) -> tuple[float, float, int]:
        anchors = x_l[~probe], np.searchsorted(kept, y_l[~probe])
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
    """The best of a grid, then of the numbers around it."""
    known = {number: criterion(number) for number in _grid(most)}

    def best() -> int:
        return max(known, key=lambda number: (known[number], -number))

    step = max(1, most // 16)
    while step >= 1:
        for number in (best() - step, best() + step):
            if 1 <= number <= most and number not in known:
                known[number] = criterion(number)
        step //= 2
    numbers = tuple(sorted(known))
    return Curve(name, numbers, tuple(known[number] for number in numbers), best())


def _silhouette(x: Matrix, labels: Labels) -> float:
    some = slice(None, None, max(1, len(x) // ROWS))
    kinds = len(np.unique(labels[some]))
    return float(silhouette_score(x[some], labels[some])) if 1 < kinds < len(labels[some]) else 0.0


def _last_best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda place: (values[place], place))


def _grid(most: int) -> tuple[int, ...]:
    """Numbers from 1 up, all the small ones and then farther apart."""
    return tuple(sorted({*range(1, min(most, 8) + 1), *(round(value) for value in np.geomspace(1, most, 14))}))


def _sample(draw: np.random.Generator, labelled: int, unlabelled: int) -> tuple[Labels, Labels]:
    """Rows of both, in their proportion, 4,000 together."""
    share = min(1.0, 4000 / (labelled + unlabelled))
    first = np.sort(draw.permutation(labelled)[: max(2, round(share * labelled))])
    return first, np.sort(draw.permutation(unlabelled)[: max(4, round(share * unlabelled))])


def check_count(n_novel: int, unlabelled: int) -> None:
    """A number of classes that was given."""
    if n_novel < 1:
        raise UnveilError(f"n_novel is {n_novel}: give 1 or more, or 'auto'")
    if n_novel > unlabelled:
        raise UnveilError(f"{n_novel} novel classes in {unlabelled} unlabelled items: give fewer classes or more items")
