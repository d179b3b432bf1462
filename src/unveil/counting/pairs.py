"""The number of classes by the share of pairs of rows that are of one class.

Of two random rows of K equally large classes, one pair in K is of one class. Rows of one class are near to each other,
so that the distances of random pairs are a mixture of two distributions:

    F_unlabeled(d) = G(d) / K + (1 − 1/K) H(d)

with G the distribution of distances within a class and H between classes. Known classes show both, and how much they
vary from class to class; the number of rows of a class does not matter. F of the unlabeled rows then tells which K are
likely. Where classes are of unequal size, K is the number of equally large ones with as many pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil import rng
from unveil.counting.agreement import Curve
from unveil.numerics import Labels, Matrix, squared_distances, whitening, within_class_covariance

QUANTILES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7)
"""Distances at which the distributions are compared, as quantiles of the distances within known classes."""
LEAST_CLASSES = 3
"""Known classes without which it is not known how much classes vary."""
PER_CLASS, CLASSES, ROWS = 60, 200, 1500
"""Most rows of a known class, most known classes, and most unlabeled rows of a draw."""
DRAWS = 6
WHITENED_FROM, SHRINKAGE = 16, 1.0
"""With this many known classes, one half of them whitens the vectors and the other half is measured."""
NOISE = 0.03
"""Standard deviation that is added to that of each log-odds."""
USUAL = 1.35
"""Before anything is seen, the logarithm of the number is normal around that of the number of known classes with this
standard deviation."""
LEAST_SPREAD = 0.15
"""Least standard deviation of the logarithm of the number; it is larger where known classes are few."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Shares of pairs below each distance (q,): of known classes by pair of classes, and of the unlabeled rows."""

    known: Floats
    """(q, c, c)"""
    unlabeled: Floats
    """(q,)"""
    sampling: Floats
    """(q, q): covariance of `unlabeled`, because it is measured on a sample of rows."""

    def log_likelihood(self, numbers: Labels) -> Floats:
        """(len(numbers),): of the unlabeled pairs, for each number of classes."""
        classes = self.known.shape[1]
        within = np.einsum("qcc->qc", self.known)
        between = (self.known.sum(axis=2) - within) / (classes - 1)  # (q, c): of a class with all others
        # By how much each class moves the mixture: every class is in one pair with itself and in two with others.
        share = 1 / numbers[:, None]
        influence = share[:, :, None] * within + 2 * (1 - share[:, :, None]) * between  # (n, q, c)
        mean = share * within.mean(axis=1) + (1 - share) * between.mean(axis=1)  # (n, q)
        slope = 1 / np.clip(mean * (1 - mean), 1e-4, None)  # of the log-odds
        covariance = _covariance(slope[:, :, None] * influence) * (1 / numbers + 1 / classes)[:, None, None]
        covariance += slope[:, :, None] * self.sampling * slope[:, None] + NOISE**2 * np.eye(len(within))
        rest = (_log_odds(self.unlabeled) - _log_odds(mean))[:, :, None]  # (n, q, 1)
        distance = (rest * np.linalg.solve(covariance, rest)).sum(axis=(1, 2))
        likelihood: Floats = -(distance + np.linalg.slogdet(covariance)[1]) / 2
        return likelihood


@dataclass(frozen=True)
class PairEvidence:
    """The probability of each number of classes."""

    numbers: Labels
    probability: Floats
    classes: int
    """Known classes that it was learned from."""

    @property
    def mean(self) -> float:
        """Of the logarithm of the number."""
        return float(self.probability @ np.log(self.numbers))

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm of the number."""
        variance = float(self.probability @ np.square(np.log(self.numbers) - self.mean))
        return float(np.sqrt(variance + LEAST_SPREAD**2 * (1 + 4 / self.classes)))

    def curve(self) -> Curve:
        """What there is to show, for numbers up to three times the best."""
        best = int(self.numbers[self.probability.argmax()])
        shown = self.numbers <= max(10, 3 * best)
        numbers, values = self.numbers[shown].tolist(), self.probability[shown].tolist()
        return Curve("pairs of one class", tuple(numbers), tuple(values), best)


def weigh_pairs(labeled: Matrix, y: Labels, unlabeled: Matrix, most: int, seed: int) -> PairEvidence:
    """How likely 1 to `most` classes are, for at least 3 known classes."""
    numbers, classes = np.arange(1, most + 1), len(np.unique(y))
    scores = [pairs.log_likelihood(numbers) for pairs in _draws(labeled, y, unlabeled, seed)]
    logs = np.log(numbers)
    score = np.mean(scores, axis=0) - np.square((logs - np.log(classes)) / USUAL) / 2 - logs  # per step of the log
    probability = np.exp(score - score.max())
    return PairEvidence(numbers, probability / probability.sum(), classes)


def _draws(labeled: Matrix, y: Labels, unlabeled: Matrix, seed: int) -> list[Pairs]:
    classes, draws = np.unique(y), []
    for number in range(DRAWS):
        draw = rng.numpy(seed, "pairs", number)
        if len(classes) < WHITENED_FROM:
            draws.append(_pairs(labeled, y, unlabeled, draw))
            continue
        order = draw.permutation(classes)
        for whitens in (order[::2], order[1::2]):
            some = np.isin(y, whitens)
            axes = whitening(within_class_covariance(labeled[some], np.searchsorted(classes, y[some])), SHRINKAGE)
            draws.append(_pairs(labeled[~some] @ axes, y[~some], unlabeled @ axes, draw))
    return draws


def _pairs(labeled: Matrix, y: Labels, unlabeled: Matrix, draw: np.random.Generator) -> Pairs:
    classes = draw.permutation(np.unique(y))[:CLASSES]
    rows = [draw.permutation(np.flatnonzero(y == label))[:PER_CLASS] for label in classes]
    sizes = np.array([len(some) for some in rows])
    member = np.repeat(np.eye(len(rows), dtype=np.float32), sizes, axis=0)  # (n, c)
    known = labeled[np.concatenate(rows)]
    apart = squared_distances(known, known)
    np.fill_diagonal(apart, np.inf)
    within = apart[(member @ member.T > 0) & np.isfinite(apart)]
    limits = np.quantile(within, QUANTILES)
    counts = np.outer(sizes, sizes) - np.diag(sizes)
    shares = np.stack([member.T @ (apart < limit).astype(np.float32) @ member for limit in limits])
    some = unlabeled[draw.permutation(len(unlabeled))[:ROWS]]
    apart = squared_distances(some, some)
    np.fill_diagonal(apart, np.inf)
    near = np.stack([(apart < limit).sum(axis=1) for limit in limits]) / (len(some) - 1)  # (q, rows)
    sampling = 4 * np.cov(near) / len(some)  # every row is in pairs with all others
    return Pairs(shares / np.maximum(counts, 1), near.mean(axis=1), sampling)


def _covariance(values: Floats) -> Floats:
    """(n, q, q): the covariances of rows of (n, q, c), shrunk towards one correlation for all the more, the fewer
    columns."""
    rows, columns = values.shape[1:]
    centered = values - values.mean(axis=2, keepdims=True)
    sample = centered @ centered.transpose(0, 2, 1) / (columns - 1)
    deviation = np.sqrt(np.maximum(np.einsum("nqq->nq", sample), 1e-12))
    scale = deviation[:, :, None] * deviation[:, None]
    correlation = np.clip(((sample / scale).sum(axis=(1, 2)) - rows) / (rows * (rows - 1)), 0.5, 0.95)[:, None, None]
    even = scale * (correlation + (1 - correlation) * np.eye(rows))
    shrinkage = rows / (rows + columns - 1)
    inflation = (columns + 1) / (columns - 1)  # few classes say little about how much classes vary
    covariance: Floats = inflation * (shrinkage * even + (1 - shrinkage) * sample)
    return covariance


def _log_odds(share: Floats) -> Floats:
    odds: Floats = np.log((share + 1e-4) / (1 - share + 1e-4))
    return odds
