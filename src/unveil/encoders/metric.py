"""The metric in which neighbors are looked for: a scaling of the columns, and whitening by the known classes.

Known classes show how items of one class differ from each other. Whitening by that spread (within-class covariance,
shrunk) makes directions in which classes vary anyway count less. Which scaling and how much shrinkage suit the data is
rehearsed: known classes are hidden, the metric is fitted to the others, and the one is taken in which the neighbors of
hidden items are most often of their own class. No novel label is seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unveil import rng
from unveil.clustering.graph import neighbor_graph
from unveil.data.items import Items
from unveil.data.task import Task
from unveil.encoders.scaling import Reduction, fit_reduction
from unveil.numerics import Labels, Matrix, directions, whitening, within_class_covariance

Scaling = Literal["unit", "none", "standard"]
SCALINGS: tuple[Scaling, ...] = ("unit", "none", "standard")
SHRINKAGES = (None, 3.0, 1.0, 0.3, 0.1)
COMPONENTS = 256
ROUNDS, HIDDEN_ROWS, FITTED_ROWS = 4, 1200, 8000
TOLERANCE = 0.02
"""Metrics whose logit of the precision is this near to the best, or within one standard error of the difference, are as
good: the simplest of them is taken."""


@dataclass(frozen=True)
class Metric:
    """How vectors are scaled and shaped."""

    scaling: Scaling = "unit"
    shrinkage: float | None = None
    """Share of the mean variance that is added to the within-class covariance; None: no whitening."""

    def base(self, x: Matrix) -> Reduction:
        """Scaling and principal components, which no label changes."""
        return fit_reduction(
            x, unit=self.scaling == "unit", standardize=self.scaling == "standard", components=COMPONENTS
        )

    def shaping(self, z: Matrix, labels: Labels) -> Reduction:
        """Whitening by the labeled rows of base vectors z, around the mean of all of them."""
        known = labels >= 0
        shaping = Reduction()
        if self.shrinkage is not None and len(np.unique(labels[known])) < known.sum():
            directions = whitening(within_class_covariance(z[known], labels[known]), self.shrinkage)
            shaping = replace(shaping, mean=np.zeros(z.shape[1], dtype=np.float32), axes=directions.T.copy())
        return replace(shaping, shift=shaping(z).mean(axis=0))

    def shaped(self, task: Task) -> Task:
        """A task of base vectors with its vectors shaped by its own labeled rows."""
        x: Matrix = task.items.array
        clean = x if x.ndim == 2 else x[:, 0]
        return replace(task, items=Items.of(self.shaping(clean, task.labels)(x)))

    def describe(self) -> str:
        """In words."""
        columns = {"unit": "vectors at unit length", "none": "vectors as they are", "standard": "standardized columns"}
        parts = [columns[self.scaling]]
        if self.shrinkage is not None:
            parts.append(f"whitened by the spread within known classes (shrinkage {self.shrinkage:g})")
        return ", ".join(parts)


def choose_metric(x: Matrix, labels: Labels, scalings: Sequence[Scaling] = SCALINGS) -> Metric:
    """The metric in which neighbors of hidden known items are most often of their own class.

    Draws are fixed, so that the same data always get the same metric.
    """
    classes = np.unique(labels[labels >= 0])
    if len(classes) < 2:
        return Metric(scalings[0])
    draw = rng.numpy(0, "metric")
    half = max(2, len(classes) // 2)
    hidden: list[Labels] = []
    for _ in range(ROUNDS):
        order = draw.permutation(classes)
        hidden += [order[:half], order[-half:]]
    rows = [draw.permutation(np.flatnonzero(np.isin(labels, part)))[:HIDDEN_ROWS] for part in hidden]
    each = max(30, FITTED_ROWS // len(classes))
    fitted = np.concatenate([draw.permutation(np.flatnonzero(labels == c))[:each] for c in classes])
    logits: dict[Metric, list[float]] = {}
    for scaling in scalings:
        z = Metric(scaling).base(x)(x)
        for part, some in zip(hidden, rows, strict=True):
            rest = fitted[~np.isin(labels[fitted], part)]
            rest = rest if len(rest) else some
            within = (
                within_class_covariance(z[rest], labels[rest]) if len(np.unique(labels[rest])) < len(rest) else None
            )
            for shrinkage in SHRINKAGES:
                shaped = z[some] if shrinkage is None or within is None else z[some] @ whitening(within, shrinkage)
                logit = _precision_logit(directions(shaped - shaped.mean(axis=0)), labels[some], len(part))
                logits.setdefault(Metric(scaling, shrinkage), []).append(logit)
    best = max(logits.values(), key=lambda values: float(np.mean(values)))
    simplest = [Metric(scaling, shrinkage) for shrinkage in SHRINKAGES for scaling in scalings]
    return next(metric for metric in simplest if _as_good(np.subtract(best, logits[metric])))


def _as_good(behind: NDArray[np.float64]) -> bool:
    """Whether a metric that is behind the best one by so much, in each of the draws, may be as good."""
    error = float(behind.std(ddof=1)) / len(behind) ** 0.5
    return bool(behind.mean() <= max(TOLERANCE, error))


def _precision_logit(z: Matrix, y: Labels, classes: int) -> float:
    k = max(3, min(10, len(y) // (2 * classes)))
    neighbors = neighbor_graph(z, k).neighbors
    precision = float((y[neighbors] == y[:, None]).mean())
    return float(np.log((precision + 1e-3) / (1 - precision + 1e-3)))
