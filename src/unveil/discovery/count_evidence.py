"""What speaks for each number of classes among unlabelled vectors.

- *spread*: known classes show how far items of one class lie from its mean. Ward clusters of the unlabelled items
  should be as wide as Ward clusters of as many known classes with as many items each. How much known classes differ
  from each other tells how much a difference counts.
- *agreement*: clusterings of several neighbor embeddings agree most at a number of clusters that the data has; what
  counts is by how much they agree more than with somewhat fewer and somewhat more clusters. It needs no labels.
- *size*: novel classes are expected to have about as many items as known ones, give or take a factor of three.

All three together give a probability of each number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from unveil import rng
from unveil.data.neighbor_graph import edge_weights, neighbor_graph
from unveil.methods.neighbor_embedding import embed
from unveil.numerics import Labels, Matrix, squared_distances, sums_by_label

ROWS = 1000
"""Items of a tree or an embedding: the cost of a tree grows with their square."""
GRAPHS = ((15, 16), (25, 12), (40, 16))
"""(neighbors, dimensions) of the embeddings whose clusterings are compared."""
ITERATIONS, LEAST_ROWS = 60, 20
"""Iterations of an embedding; with fewer items there is none."""
DRAWS = 2
"""Draws of items for each number of classes that is tried."""
WIDTH = 0.04
"""Differences in spread are smoothed over the logarithm of the number with this standard deviation."""
LEAST_ERROR = 0.02
"""Smallest standard error of the logarithm of the spread."""
FEW_CLASSES_DIFFER = 0.2
"""With two known classes: by which share the spreads of classes differ."""
NEIGHBORHOOD = 0.35
"""Agreement is compared with that of numbers smaller and larger by this difference of the logarithm."""
SHARPNESS = 24.0
"""Logarithm of the odds for a difference of 1 in agreement."""
SIZE_SPREAD = 1.0
"""Standard deviation of the logarithm of the size of novel classes relative to known ones."""
UNLIKELY = 12.0
"""Agreement is not looked at where the other evidence is by this much (log) below the best."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A criterion over the number of novel classes, and the number it prefers."""

    name: str
    numbers: tuple[int, ...]
    values: tuple[float, ...]
    best: int


@dataclass(frozen=True)
class Evidence:
    """The probability of each number of classes."""

    numbers: Labels
    log_probability: Floats
    agreement: Floats
    """Agreement of the clusterings at each number; NaN where it was not looked at."""

    def quantile(self, share: float) -> int:
        """The number below or at which this share of the probability lies."""
        below = np.cumsum(np.exp(self.log_probability))
        return int(self.numbers[min(len(below) - 1, int(np.searchsorted(below, share)))])

    def curves(self) -> tuple[Curve, ...]:
        """What there is to show, for numbers up to three times the best."""
        best = self.quantile(0.5)
        shown = self.numbers <= max(10, 3 * best)
        numbers = tuple(int(number) for number in self.numbers[shown])
        probability = np.exp(self.log_probability[shown])
        curves = [Curve("probability", numbers, tuple(map(float, probability)), best)]
        looked_at = shown & ~np.isnan(self.agreement)
        if looked_at.any():
            values, numbers = self.agreement[looked_at], tuple(int(number) for number in self.numbers[looked_at])
            curves.append(Curve("agreement", numbers, tuple(map(float, values)), numbers[int(values.argmax())]))
        return tuple(curves)


def weigh(
    labelled: Matrix,
    y: Labels,
    unlabelled: Matrix,
    most: int,
    seed: int,
    rows: int = ROWS,
    expected: float | None = None,
) -> Evidence:
    """The probability of 1 to `most` classes among unlabelled items; `expected`: their number if sizes were equal."""
    numbers = np.arange(1, most + 1)
    score: Floats = -np.log(numbers)  # before anything is seen, every order of magnitude is as likely
    if len(np.unique(y)) >= 2:
        score = score + spread_evidence(labelled, y, unlabelled, numbers, seed, rows)
        if expected is not None:
            score = score - np.square(np.log(numbers / max(1.0, expected)) / SIZE_SPREAD) / 2
    agreement = np.full(len(numbers), np.nan)
    likely = numbers[score > score.max() - UNLIKELY]
    usable = min(rows, len(unlabelled))
    if usable >= LEAST_ROWS and likely.max() > 1:
        tried = _grid(int(likely.min()), min(int(likely.max()), usable // 4))
        draws = [rng.numpy(seed, "clusterings that agree", number) for number in range(DRAWS)]
        samples = [unlabelled[draw.permutation(len(unlabelled))[:usable]] for draw in draws]
        values = np.mean([agreement_curve(x, tried, seed + place) for place, x in enumerate(samples)], axis=0)
        score = score + SHARPNESS * prominence(tried, values, numbers)
        inside = tried <= most
        agreement[tried[inside] - 1] = values[inside]
    score = score - score.max()
    return Evidence(numbers, score - np.log(np.exp(score).sum()), agreement)


def spread_evidence(
    labelled: Matrix, y: Labels, unlabelled: Matrix, numbers: Labels, seed: int, rows: int = ROWS
) -> Floats:
    """Log-likelihood of each number by the spread of clusters compared with that of known classes."""
    classes, sizes = np.unique(y, return_counts=True)
    members = [np.flatnonzero(y == label) for label in classes]
    usual = int(np.quantile(sizes, 0.4))
    tried = np.concatenate([[1], _grid(1, int(numbers[-1]))])
    tried = tried[tried <= numbers[-1]]
    places, differences = [], []
    for round_ in range(DRAWS):
        draw = rng.numpy(seed, "spread of classes", round_)
        order, curves = draw.permutation(len(unlabelled)), dict[int, Floats]()
        shuffled = [draw.permutation(members[label]) for label in draw.permutation(len(classes))]
        for number in tried:
            n = min(rows, len(unlabelled), max(40, int(number) * usual))  # so many that known classes have as many
            if n not in curves:
                curves[n] = spread_curve(unlabelled[order[:n]])
            count = min(len(classes), int(number))
            some = [rows_of[: max(2, int(n / number + draw.random()))] for rows_of in shuffled[:count]]
            known = spread_curve(labelled[np.concatenate(some)])
            if number <= len(curves[n]) and count <= len(known):
                places.append(np.log(number))
                differences.append(float(curves[n][number - 1] - known[count - 1]))
    if not places:
        return np.zeros(len(numbers))
    difference = _smoothed(np.array(places), np.array(differences), np.log(numbers))
    compared = np.minimum(numbers, len(classes))
    error = np.sqrt(spread_of_classes(labelled, y) ** 2 * (1 / compared + 1 / numbers) + LEAST_ERROR**2)
    likelihood: Floats = -np.square(difference / error) / 2 - np.log(error)
    return likelihood


def spread_curve(x: Matrix) -> Floats:
    """At index k − 1: log of the mean squared distance of items to their cluster's mean, for k clusters of a tree."""
    if len(x) < 2:
        return np.full(1, -27.0)
    growth = np.square(linkage(x.astype(np.float64), "ward")[:, 2]) / (2 * len(x))  # of each merge
    curve: Floats = np.log(np.cumsum(growth)[::-1] + 1e-12)
    return curve


def spread_of_classes(x: Matrix, y: Labels) -> float:
    """By which share the mean squared distances of items to their class mean differ from class to class."""
    index, sizes = np.unique(y, return_inverse=True)[1], np.unique(y, return_counts=True)[1]
    if len(sizes) < 3:
        return FEW_CLASSES_DIFFER
    means = sums_by_label(x, index, len(sizes)) / sizes[:, None]
    spreads = np.bincount(index, np.square(x - means[index]).sum(axis=1)) / sizes
    return float(min(2.0, spreads.std(ddof=1) / max(float(spreads.mean()), 1e-12)))


def agreement_curve(x: Matrix, numbers: Labels, seed: int) -> Floats:
    """Mean adjusted Rand index between clusterings of several neighbor embeddings, for each number of clusters."""
    graph = neighbor_graph(x, max(k for k, _ in GRAPHS))
    embeddings = [
        embed(edge_weights(graph.nearest(k)), min(dimensions, len(x) - 3), seed + place, ITERATIONS)
        for place, (k, dimensions) in enumerate(GRAPHS)
    ]
    trees = [linkage(places.astype(np.float64), "ward") for places in embeddings]
    values = []
    for number in numbers:
        parts = [
            _settled(places, fcluster(tree, number, "maxclust") - 1)
            for places, tree in zip(embeddings, trees, strict=True)
        ]
        pairs = [(first, second) for place, first in enumerate(parts) for second in parts[:place]]
        values.append(float(np.mean([adjusted_rand_score(first, second) for first, second in pairs])))
    return np.array(values)


def prominence(tried: Labels, agreement: Floats, numbers: Labels) -> Floats:
    """By how much clusterings agree more than with fewer and with more clusters; one cluster always agrees."""
    first = [] if tried[0] == 1 else [0.0]
    at = np.concatenate([first, np.log(tried)])
    values = np.concatenate([np.ones(len(first)) if tried[0] == 2 else agreement[: len(first)], agreement])
    place = np.log(numbers)
    around = np.interp(place - NEIGHBORHOOD, at, values) + np.interp(place + NEIGHBORHOOD, at, values)
    rise: Floats = np.interp(place, at, values) - around / 2
    return np.where((numbers == 1) | (numbers > tried[-1]), 0.0, rise)


def _settled(x: Matrix, labels: Labels, steps: int = 4) -> Labels:
    """A few steps of k-means from these clusters."""
    count = int(labels.max()) + 1
    for _ in range(steps):
        sizes = np.maximum(np.bincount(labels, minlength=count), 1)
        centers = (sums_by_label(x, labels, count) / sizes[:, None]).astype(np.float32)
        labels = squared_distances(x, centers).argmin(axis=1)
    return labels


def _smoothed(places: Floats, values: Floats, at: Floats) -> Floats:
    """Local linear regression."""
    smooth = []
    for center in at:
        weight = np.exp(-np.square((places - center) / WIDTH) / 2) + 1e-9
        apart = places - center
        matrix = np.array([[weight.sum(), weight @ apart], [weight @ apart, weight @ np.square(apart) + 1e-2]])
        smooth.append(np.linalg.solve(matrix, [weight @ values, (weight * apart) @ values])[0])
    return np.array(smooth)


def _grid(least: int, most: int) -> Labels:
    """Numbers of clusters from 2 on: all small ones, then farther and farther apart; some beyond both ends."""
    low, high = max(2, int(least / 1.5)), max(3, round(most * 1.5))
    larger = np.round(np.geomspace(13, max(13, high), 24)).astype(np.int64)
    every = np.unique(np.concatenate([np.arange(2, 13), larger]))
    return every[(every >= low) & (every <= high)]
