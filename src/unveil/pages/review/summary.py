"""The classes as the review page shows them: sizes, confidence, color, typical items. Computed after every action."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import mean_direction, spread_rows
from unveil.pages.colors import class_color
from unveil.review.corrections import REJECTED, State
from unveil.review.decisions import progress
from unveil.review.edited_scores import EditedScores
from unveil.runs.reader import Run

TYPICAL = 8  # items on the card of a class
SAMPLE = 2048  # items from which a mean direction is taken


class Summary:
    """Summarizes a state. Confidence and typicality are those of the state, not those of the run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.scores = EditedScores(run)
        self.confidence: NDArray[np.float32] = run.confidence
        self.typicality: NDArray[np.float32] = run.typicality

    def follow(self, state: State) -> None:
        """Update confidence and typicality of items whose class has changed."""
        self.confidence, self.typicality = self.scores.of(state)

    def nearest(self, state: State, query: NDArray[np.float32]) -> list[tuple[int, float]]:
        """All classes with items and the cosine of their mean direction to `query`, the nearest first."""
        means = self.scores.means(state)
        clusters = []
        for cluster, meaning in state.meanings.items():
            mean = means.get(cluster if meaning.known is None else meaning.known)
            if mean is not None:
                clusters.append((cluster, float(mean @ query)))
        return sorted(clusters, key=lambda one: -one[1])

    def mean(self, state: State, cluster: int) -> NDArray[np.float32]:
        """The mean direction of the items of a class."""
        return self.mean_of(np.flatnonzero(state.labels == cluster))

    def mean_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The mean direction of items."""
        sample = rows[spread_rows(len(rows), SAMPLE)]
        return mean_direction(np.asarray(self._run.features[sample], dtype=np.float32))

    def ordered(self, state: State, cluster: int, sort: str) -> NDArray[np.int64]:
        """The items of a class, those that rank highest first; new ones before those that came with the label."""
        self.follow(state)
        rows = np.flatnonzero(state.labels == cluster)
        values = self.typicality if sort == "typicality" else self.confidence
        order = np.lexsort((-self.typicality[rows], -values[rows], ~self._run.new[rows]))
        return rows[order]

    def classes(self, state: State) -> list[dict[str, Any]]:
        """All classes; novel ones without items are left out."""
        self.follow(state)
        run, rows = self._run, np.flatnonzero(state.labels != REJECTED)
        labels = state.labels[rows]
        count = max([*state.meanings, 0]) + 1
        size = np.bincount(labels, minlength=count)
        new = np.bincount(labels, weights=run.new[rows], minlength=count)
        confidence = np.bincount(labels, weights=self.confidence[rows], minlength=count) / np.maximum(size, 1)
        order = rows[np.argsort(-self.typicality[rows], kind="stable")]
        order = order[np.argsort(state.labels[order].astype(np.int32), kind="stable")]
        ends = np.cumsum(size)
        classes = []
        for cluster, meaning in state.meanings.items():
            start = int(ends[cluster] - size[cluster])
            classes.append(
                {
                    "id": cluster,
                    "name": state.name(cluster),
                    "own": meaning.name,
                    "named": meaning.named,
                    "novel": state.is_novel(cluster),
                    "known": meaning.known,
                    "reviewed": meaning.reviewed,
                    "size": int(size[cluster]),
                    "new": int(new[cluster]),
                    "confidence": round(float(confidence[cluster]), 4),
                    "color": class_color(cluster, run.n_known),
                    "typical": order[start : start + min(TYPICAL, int(size[cluster]))].tolist(),
                }
            )
        return classes

    def state(self, state: State) -> dict[str, Any]:
        """What the page needs at the start and after every action."""
        classes = self.classes(state)
        return {
            "length": state.length,
            "classes": classes,
            "rejected": int(state.rejected.sum()),
            "items": progress(state),
            "undo": state.done[-1].kind if state.done else None,
            "redo": state.undone[-1].kind if state.undone else None,
        }
