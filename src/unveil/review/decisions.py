"""What people decided in a review: the run with their corrections, and how far they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.review.corrections import REJECTED, Rows, State, current_state
from unveil.review.log import LAST, LOG
from unveil.runs.reader import Run, load, read_items

REJECTED_KIND = "rejected"


def folded_labels(state: State) -> Rows:
    """The labels, with clusters that turned out to be a known class counted to that class."""
    labels = state.labels.copy()
    for cluster, meaning in state.meanings.items():
        if meaning.known is not None:
            labels[state.labels == cluster] = meaning.known
    return labels


def corrected_run(run: Run, state: State, confidence: NDArray[np.float32], typicality: NDArray[np.float32]) -> Run:
    """The run as it is after the review. Classes keep their numbers; rejected items have the label -1."""
    count = max([len(run.classes) - 1, *state.meanings]) + 1
    exists = {c for c, meaning in state.meanings.items() if not (state.is_novel(c) and meaning.known is not None)}
    return replace(
        run,
        labels=folded_labels(state),
        classes=tuple(state.name(c) if c in exists else "" for c in range(count)),
        gone=frozenset(range(run.n_known, count)) - exists,
        confidence=confidence,
        typicality=typicality,
    )


def classes_after(state: State) -> list[tuple[str, str]]:
    """Name and kind of each class of the run after the review: of the class that most of its items are in now."""
    names = []
    for index, name in enumerate(state.run.classes):
        now = state.labels[(state.run.labels == index) & (state.labels != REJECTED)]
        place = int(np.bincount(now).argmax()) if len(now) else index
        meaning = state.meanings.get(place)
        novel = place >= state.run.n_known and (meaning is None or meaning.known is None)
        names.append((name if meaning is None else state.name(place), "novel" if novel else "known"))
    return names


def progress(state: State) -> dict[str, int]:
    """How many items there are, how many are new, and how many of those are in reviewed classes or rejected."""
    reviewed = [cluster for cluster, meaning in state.meanings.items() if meaning.reviewed]
    seen = np.isin(state.labels, [REJECTED, *reviewed]) & state.run.new
    return {"all": len(state.labels), "new": int(state.run.new.sum()), "reviewed": int(seen.sum())}


def decisions(state: State) -> dict[str, int]:
    """What people decided, in numbers: items reviewed, classes named and recognized, merges, splits, moved items."""
    novel = [meaning for cluster, meaning in state.meanings.items() if state.is_novel(cluster)]
    kinds = [change.kind for change in state.done]
    return {
        **progress(state),
        "named": sum(meaning.named and meaning.known is None for meaning in novel),
        "recognized": sum(meaning.known is not None for meaning in novel),
        "merged": kinds.count("merge"),
        "split": kinds.count("split"),
        "moved": int(state.by_hand.sum()),
        "rejected": int(state.rejected.sum()),
    }


def corrected_items(folder: Path) -> list[dict[str, str]]:
    """items.csv with labels and kinds as they are after the review; rejected items have an empty label."""
    if not (folder / LOG).exists() and not (folder / LAST).exists():
        return read_items(folder)
    state, items = current_state(load(folder)), read_items(folder)
    kinds = {REJECTED: ("", REJECTED_KIND)}
    for cluster, meaning in state.meanings.items():
        novel = state.is_novel(cluster) and meaning.known is None
        kinds[cluster] = state.name(cluster), "novel" if novel else "known"
    for item, label in zip(items, state.labels.tolist(), strict=True):
        item["label"], item["kind"] = kinds[label]
    return items
