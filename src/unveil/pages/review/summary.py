"""The classes as the review page shows them: sizes, confidence, color, typical items. Computed after every action."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import mean_direction, unit_rows
from unveil.pages.colors import class_color
from unveil.runs.corrections import REJECTED, State
from unveil.runs.reader import Run

TYPICAL = 8
"""Items on the card of a class."""
SAMPLE = 2048
"""Items from which the mean direction of a changed class is taken."""


class Summary:
    """Summarises a state. Items that were moved get a typicality in their new class."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._labels = run.labels.copy()
        self.typicality: NDArray[np.float32] = run.typicality.copy()

    def follow(self, state: State) -> None:
        """Update the typicality of moved items; those that are back in their first class get their first value back."""
        moved = np.flatnonzero(state.labels != self._labels)
        if not len(moved):
            return
        self._labels[moved] = state.labels[moved]
        self.typicality[moved] = self._run.typicality[moved]
        away = moved[(state.labels[moved] != self._run.labels[moved]) & (state.labels[moved] != REJECTED)]
        for cluster in np.unique(state.labels[away]).tolist():
            rows, members = away[state.labels[away] == cluster], np.flatnonzero(state.labels == cluster)
            sample = members[:: -(-len(members) // SAMPLE)]
            mean = mean_direction(self._run.features[sample])
            self.typicality[rows] = unit_rows(self._run.features[rows]) @ mean

    def ordered(self, state: State, cluster: int, sort: str) -> NDArray[np.int64]:
        """The items of a class, those that rank highest first; new ones before those that came with the label."""
        self.follow(state)
        rows = np.flatnonzero(state.labels == cluster)
        values = self.typicality if sort == "typicality" else self._run.confidence
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
        confidence = np.bincount(labels, weights=run.confidence[rows], minlength=count) / np.maximum(size, 1)
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
        rejected = int(state.rejected.sum())
        total = int(self._run.new.sum())
        reviewed = sum(entry["new"] for entry in classes if entry["reviewed"]) + rejected
        return {
            "length": state.length,
            "classes": classes,
            "rejected": rejected,
            "items": {"all": len(state.labels), "new": total, "reviewed": reviewed},
            "undo": state.done[-1].kind if state.done else None,
            "redo": state.undone[-1].kind if state.undone else None,
        }
