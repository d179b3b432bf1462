"""Confidence and typicality after a review: recomputed for items of classes that were merged, split or changed.

The run's own confidence comes from a model that does not know the edited classes. So the margin of an item (its cosine
to the mean direction of its class, minus that of the nearest other class) is turned into a confidence by the monotone
curve that fits margins and confidences of the unedited result best. Items that a person moved are certain.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import mean_direction, spread_rows, unit_rows
from unveil.review.corrections import REJECTED, State, current_state
from unveil.review.decisions import corrected_run, decisions, folded_labels
from unveil.runs.reader import Run

Floats = NDArray[np.float32]
CLASS_SAMPLE = 1024  # items from which the mean direction of a class is taken
CURVE_SAMPLE = 4000  # items that the curve from margin to confidence is fitted to
PIECE = 4096


class EditedScores:
    """Follows a state: only classes that changed since the last call are computed again.

    Where the features were not kept, the scores of the run stay.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._labels = run.labels.copy()
        self._typicality = run.typicality.copy()
        self._confidence = run.confidence.copy()
        self._means: dict[int, Floats] | None = None
        self._curve: tuple[Any, Any] | None = None

    def of(self, state: State) -> tuple[Floats, Floats]:
        """(n,) confidence and (n,) typicality of all items in this state."""
        labels = folded_labels(state)
        moved = np.flatnonzero(labels != self._labels)
        if len(moved) and self._run.has_features:
            touched = np.union1d(labels[moved], self._labels[moved])
            self._labels = labels
            self._update([int(cluster) for cluster in touched if cluster != REJECTED], state.by_hand)
        confidence = self._confidence.copy()
        confidence[state.by_hand & (labels != REJECTED)] = 1
        return confidence, self._typicality.copy()

    def means(self, state: State) -> dict[int, Floats]:
        """The mean direction of every class that has items, after `state`."""
        self.of(state)
        self.prepare()
        assert self._means is not None
        return {cluster: mean for cluster, mean in self._means.items() if mean.any()}

    def prepare(self) -> None:
        """Compute what the first edit needs; an error where the features were not kept."""
        if self._means is None:
            self._means = {int(c): self._mean(self._run.labels, int(c)) for c in np.unique(self._run.labels)}
            self._curve = self._fitted_curve()

    def _update(self, touched: list[int], by_hand: NDArray[np.bool_]) -> None:
        run, labels = self._run, self._labels
        self.prepare()
        assert self._means is not None
        for cluster in touched:
            self._means[cluster] = self._mean(labels, cluster)
        for cluster in touched:
            members = labels == cluster
            rows = np.flatnonzero(members)
            if np.array_equal(members, run.labels == cluster):  # as it was at first
                self._confidence[rows], self._typicality[rows] = run.confidence[rows], run.typicality[rows]
                continue
            rows = rows[run.new[rows]]
            placed, rows = rows[by_hand[rows]], rows[~by_hand[rows]]  # what a person placed needs no confidence
            self._typicality[placed] = unit_rows(np.asarray(run.features[placed], np.float32)) @ self._means[cluster]
            own, margin = self._margins(rows, np.full(len(rows), cluster))
            assert self._curve is not None
            self._typicality[rows], self._confidence[rows] = own, np.interp(margin, *self._curve)

    def _mean(self, labels: NDArray[np.int64], cluster: int) -> Floats:
        rows = np.flatnonzero(labels == cluster)
        rows = rows[spread_rows(len(rows), CLASS_SAMPLE)]
        return mean_direction(np.asarray(self._run.features[rows], dtype=np.float32))

    def _margins(self, rows: NDArray[np.int64], own_classes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Cosine to the own class, and how much larger it is than the largest cosine to another class."""
        assert self._means is not None
        clusters = [cluster for cluster, mean in self._means.items() if mean.any()]
        place = {cluster: number for number, cluster in enumerate(clusters)}
        means = np.stack([self._means[cluster] for cluster in clusters])
        own, margin = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
        for start in range(0, len(rows), PIECE):
            part = slice(start, start + PIECE)
            cosines = unit_rows(np.asarray(self._run.features[rows[part]], dtype=np.float32)) @ means.T
            columns = np.array([place.get(int(c), -1) for c in own_classes[part]])
            lines = np.arange(len(columns))
            own[part] = np.where(columns >= 0, cosines[lines, columns], 0)
            cosines[lines, columns] = -1
            margin[part] = own[part] - cosines.max(axis=1)
        return own, margin

    def _fitted_curve(self) -> tuple[Any, Any]:
        """Margins and confidences of the unedited result, as a rising curve of points."""
        run = self._run
        rows = np.flatnonzero(run.new)
        rows = rows[spread_rows(len(rows), CURVE_SAMPLE)]
        if not len(rows):
            return [0.0], [1.0]
        _, margins = self._margins(rows, run.labels[rows])
        order = np.argsort(margins, kind="stable")
        return rising_curve(margins[order], run.confidence[rows[order]])


def rising_curve(x: Floats, y: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Isotonic regression (pool adjacent violators): the means of pooled x, which rise, and of pooled y."""
    blocks: list[list[float]] = []  # sum of x, sum of y, count
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        blocks.append([a, b, 1])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][2] >= blocks[-1][1] * blocks[-2][2]:
            last = blocks.pop()
            blocks[-1] = [left + right for left, right in zip(blocks[-1], last, strict=True)]
    pooled = np.array(blocks)
    return pooled[:, 0] / pooled[:, 2], pooled[:, 1] / pooled[:, 2]


def reviewed(run: Run) -> tuple[Run, dict[str, int] | None]:
    """The run after its review and what people decided; the run itself and None where there was no review."""
    state = current_state(run)
    if not state.done:
        return run, None
    return corrected_run(run, state, *EditedScores(run).of(state)), decisions(state)
