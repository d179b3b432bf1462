"""The classes as the page shows them: sizes, confidence, typical items; quick enough for every action."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.runs.corrections import REJECTED, State
from unveil.runs.reader import Look

TYPICAL = 8
"""Items on the card of a class."""
SAMPLE = 2048
"""Items from which the mean of a changed class is taken."""


class Summary:
    """Follows a state: what a change moved gets its place among the typical items of its new class."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._labels = look.labels.copy()
        self.typicality: NDArray[np.float32] = look.typicality.copy()

    def follow(self, state: State) -> None:
        """Cosine of moved items to the mean of their new class; back home, items have their first value again."""
        moved = np.flatnonzero(state.labels != self._labels)
        if not len(moved):
            return
        self._labels[moved] = state.labels[moved]
        self.typicality[moved] = self._look.typicality[moved]
        away = moved[(state.labels[moved] != self._look.labels[moved]) & (state.labels[moved] != REJECTED)]
        for cluster in np.unique(state.labels[away]).tolist():
            rows, members = away[state.labels[away] == cluster], np.flatnonzero(state.labels == cluster)
            sample = members[:: -(-len(members) // SAMPLE)]
            mean = unit(self._look.features[sample]).mean(axis=0)
            self.typicality[rows] = unit(self._look.features[rows]) @ unit(mean[None])[0]

    def ordered(self, state: State, cluster: int, sort: str) -> NDArray[np.int64]:
        """The items of a class, those that rank highest first; new ones before those that came with the label."""
        self.follow(state)
        rows = np.flatnonzero(state.labels == cluster)
        values = self.typicality if sort == "typicality" else self._look.confidence
        order = np.lexsort((-self.typicality[rows], -values[rows], ~self._look.new[rows]))
        return rows[order]

    def classes(self, state: State) -> list[dict[str, Any]]:
        """All classes; clusters that hold nothing are not there."""
        self.follow(state)
        look, inside = self._look, np.flatnonzero(state.labels != REJECTED)
        labels = state.labels[inside]
        count = max([*state.meanings, 0]) + 1
        size = np.bincount(labels, minlength=count)
        new = np.bincount(labels, weights=look.new[inside], minlength=count)
        sure = np.bincount(labels, weights=look.confidence[inside], minlength=count) / np.maximum(size, 1)
        order = inside[np.argsort(-self.typicality[inside], kind="stable")]
        order = order[np.argsort(state.labels[order].astype(np.int32), kind="stable")]
        ends = np.cumsum(size)
        found = []
        for cluster, meaning in state.meanings.items():
            start = int(ends[cluster] - size[cluster])
            found.append(
                {
                    "id": cluster,
                    "name": state.name(cluster),
                    "own": meaning.name,
                    "named": meaning.named,
                    "novel": state.novel(cluster),
                    "known": meaning.known,
                    "reviewed": meaning.reviewed,
                    "size": int(size[cluster]),
                    "new": int(new[cluster]),
                    "confidence": round(float(sure[cluster]), 4),
                    "typical": order[start : start + min(TYPICAL, int(size[cluster]))].tolist(),
                }
            )
        return found

    def state(self, state: State) -> dict[str, Any]:
        """Everything that the page needs to begin, and after every action."""
        classes = self.classes(state)
        rejected = int(state.rejected.sum())
        total = int(self._look.new.sum())
        reviewed = sum(one["new"] for one in classes if one["reviewed"]) + rejected
        return {
            "length": state.length,
            "classes": classes,
            "rejected": rejected,
            "items": {"all": len(state.labels), "new": total, "reviewed": reviewed},
            "undo": state.done[-1].kind if state.done else None,
            "redo": state.undone[-1].kind if state.undone else None,
        }


def unit(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length one."""
    found: NDArray[np.float32] = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return found
