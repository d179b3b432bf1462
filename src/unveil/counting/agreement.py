"""The number of classes at which clusterings agree.

What counts is by how much clusterings of several neighbor embeddings agree more than with somewhat fewer and somewhat
more clusters. It needs no labels, and decides where there are no or hardly any known classes to learn from. Where
known classes have told about how many classes there are, it counts at numbers where clusterings are nearly the same.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from unveil import rng
from unveil.clustering.embedding import embed
from unveil.clustering.graph import edge_weights, neighbor_graph
from unveil.numerics import Labels, Matrix, adjusted_rand, squared_distances, sums_by_label

ROWS = 1000
"""Items of an embedding."""
GRAPHS = ((15, 16), (25, 12), (40, 16))
"""(neighbors, dimensions) of the embeddings whose clusterings are compared."""
ITERATIONS, LEAST_ROWS = 60, 20
"""Iterations of an embedding; with fewer items there is none."""
DRAWS = 2
"""Draws of items."""
NEIGHBORHOOD = 0.35
"""Agreement is compared with that of numbers smaller and larger by this difference of the logarithm."""
SHARPNESS, ALONE = 6.0, 12.0
"""Logarithm of the odds for a difference of 1 in agreement: beside what is expected, and without any expectation."""
CLEAR, CLEAR_ROWS = 0.95, 24
"""Least agreement, and least rows of a cluster on average, that count beside what known classes say."""
UNLIKELY = 8.0
"""Agreement is not looked at where the probability is by this much (log) below the best."""

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

    @staticmethod
    def of(score: Floats, agreement: Floats) -> "Evidence":
        """From log-densities (n,) of the logarithm of 1 to n classes, up to a constant."""
        numbers = np.arange(1, len(score) + 1)
        probability = score - score.max() - np.log(numbers)
        return Evidence(numbers, probability - np.log(np.exp(probability).sum()), agreement)

    @property
    def likeliest(self) -> int:
        """The number whose logarithm has the highest density."""
        return int(self.numbers[(self.log_probability + np.log(self.numbers)).argmax()])

    def quantile(self, share: float) -> int:
        """The number below or at which this share of the probability lies."""
        below = np.cumsum(np.exp(self.log_probability))
        return int(self.numbers[min(len(below) - 1, int(np.searchsorted(below, share)))])

    def curves(self) -> tuple[Curve, ...]:
        """What there is to show, for numbers up to three times the best."""
        best = self.likeliest
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
    x: Matrix, most: int, seed: int, rows: int = ROWS, before: Floats | None = None, learned: bool = False
) -> Evidence:
    """The probability of 1 to `most` classes.

    `before` (most,): the log-density of the logarithm of the number before agreement is seen, by default that of all
    orders of magnitude being as likely; `learned`: known classes have told it.
    """
    numbers, usable = np.arange(1, most + 1), min(rows, len(x))
    score: Floats = np.zeros(most) if before is None else before
    likely = numbers[score > score.max() - UNLIKELY]
    agreement = np.full(len(numbers), np.nan)
    if usable >= LEAST_ROWS and likely.max() > 1:
        tried = _grid(int(likely.min()), min(int(likely.max()), usable // 4))
        draws = [rng.numpy(seed, "clusterings that agree", number) for number in range(DRAWS)]
        samples = [x[draw.permutation(len(x))[:usable]] for draw in draws]
        values = np.mean([agreement_curve(part, tried, seed + place) for place, part in enumerate(samples)], axis=0)
        rise = prominence(tried, values, numbers)
        if learned:
            clear = np.interp(np.log(numbers), np.log(tried), values) >= CLEAR
            rise = np.where(clear & (numbers * CLEAR_ROWS <= usable), rise, 0.0)
        score = score + (ALONE if before is None else SHARPNESS) * rise
        inside = tried <= most
        agreement[tried[inside] - 1] = values[inside]
    return Evidence.of(score, agreement)


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
            settled(places, fcluster(tree, number, "maxclust") - 1)
            for places, tree in zip(embeddings, trees, strict=True)
        ]
        pairs = [(first, second) for place, first in enumerate(parts) for second in parts[:place]]
        values.append(float(np.mean([adjusted_rand(first, second) for first, second in pairs])))
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


def settled(x: Matrix, labels: Labels, steps: int = 4) -> Labels:
    """A few steps of k-means from these clusters."""
    count = int(labels.max()) + 1
    for _ in range(steps):
        sizes = np.maximum(np.bincount(labels, minlength=count), 1)
        centers = (sums_by_label(x, labels, count) / sizes[:, None]).astype(np.float32)
        labels = squared_distances(x, centers).argmin(axis=1)
    return labels


def _grid(least: int, most: int) -> Labels:
    """Numbers of clusters from 2 on: all small ones, then farther and farther apart; some beyond both ends."""
    low, high = max(2, int(least / 1.5)), max(3, round(most * 1.5))
    larger = np.round(np.geomspace(13, max(13, high), 24)).astype(np.int64)
    every = np.unique(np.concatenate([np.arange(2, 13), larger]))
    return every[(every >= low) & (every <= high)]
