"""The actions of the review page: what each of them changes in the state of a review.

An action that is not possible is an error.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError

Rows = NDArray[np.int64]
REJECTED = -1  # the label of items that belong to no class
QUESTIONS = {"merge": 2, "known": 2, "split": 1}
"""Questions that can be answered with no, and how many classes they are about."""
NO_ROWS: Rows = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What the review says about a class: its name, or the known class that a cluster turned out to be."""

    name: str
    named: bool = False  # a person gave the name; otherwise it is novel-0, novel-1, …
    known: int | None = None  # index of the known class that the cluster was identified with
    reviewed: bool = False


Effect = tuple[Rows, Rows, dict[int, Meaning | None]]
"""What an action changes: rows, their new labels, and new meanings of classes."""


class Corrected(Protocol):
    """The state of a review as far as actions need it; `corrections.State` is one."""

    labels: Rows
    meanings: dict[int, Meaning]
    rejected_from: Rows
    next_number: int

    def name(self, cluster: int) -> str: ...
    def is_novel(self, cluster: int) -> bool: ...
    def cluster(self, value: object, *, novel: bool = True) -> int: ...
    def rows(self, value: object) -> Rows: ...
    def movable(self, value: object) -> Rows: ...
    def fresh(self, text: object = None, taken: Iterable[str] = ()) -> Meaning: ...
    def named(self, meaning: Meaning, text: object, cluster: int | None) -> Meaning: ...


def _name(state: Corrected, data: dict[str, Any]) -> Effect:
    cluster = state.cluster(data.get("cluster"))
    return NO_ROWS, NO_ROWS, {cluster: state.named(state.meanings[cluster], data.get("text"), cluster)}


def _known(state: Corrected, data: dict[str, Any]) -> Effect:
    cluster, known = state.cluster(data.get("cluster")), data.get("class")
    if known is not None and state.is_novel(known := state.cluster(known, novel=False)):
        raise UnveilError(f"'{state.name(known)}' is no known class: merge the two classes instead")
    return NO_ROWS, NO_ROWS, {cluster: replace(state.meanings[cluster], known=known)}


def _merge(state: Corrected, data: dict[str, Any]) -> Effect:
    clusters = list(dict.fromkeys(state.cluster(cluster) for cluster in as_list(data.get("clusters"))))
    if len(clusters) < 2:
        raise UnveilError("give two or more different classes to merge")
    meanings = [state.meanings[cluster] for cluster in clusters]
    first = next((meaning for meaning in meanings if meaning.named), meanings[0])
    known = next((meaning.known for meaning in meanings if meaning.known is not None), None)
    rows = np.flatnonzero(np.isin(state.labels, clusters[1:]))
    merged = replace(first, known=known, reviewed=all(meaning.reviewed for meaning in meanings))
    return rows, np.full(len(rows), clusters[0]), {clusters[0]: merged}


def _split(state: Corrected, data: dict[str, Any]) -> Effect:
    cluster = state.cluster(data.get("cluster"))
    parts = [state.rows(part) for part in as_list(data.get("parts"))]
    rows = np.concatenate(parts) if parts else NO_ROWS
    if len(parts) < 2 or len(np.unique(rows)) != len(rows):
        raise UnveilError("give two or more parts that share no item")
    if (state.labels[rows] != cluster).any():
        raise UnveilError(f"the parts are not of '{state.name(cluster)}' any more: split it again")
    moved = parts[1:]  # the first keeps the number and the name
    meanings: dict[int, Meaning | None] = {cluster: replace(state.meanings[cluster], reviewed=False)}
    for number in range(len(moved)):
        taken = [meaning.name for meaning in meanings.values() if meaning]
        meanings[state.next_number + number] = state.fresh(taken=taken)
    after = np.repeat(state.next_number + np.arange(len(moved)), [len(part) for part in moved])
    return np.concatenate(moved), after, meanings


def _move(state: Corrected, data: dict[str, Any]) -> Effect:
    rows, to = state.movable(data.get("rows")), data.get("to")
    if to is not None:
        return rows, np.full(len(rows), state.cluster(to, novel=False)), {}
    return rows, np.full(len(rows), state.next_number), {state.next_number: state.fresh(data.get("text"))}


def _reject(state: Corrected, data: dict[str, Any]) -> Effect:
    rows = state.movable(data.get("rows"))
    return rows, np.full(len(rows), REJECTED), {}


def _restore(state: Corrected, data: dict[str, Any]) -> Effect:
    rows = state.movable(data.get("rows"))
    if (state.labels[rows] != REJECTED).any():
        raise UnveilError("some of these items are not rejected: reload the page")
    before = state.rejected_from[rows]
    if gone := [cluster for cluster in np.unique(before).tolist() if cluster not in state.meanings]:
        many = int(np.isin(before, gone).sum())
        raise UnveilError(f"the class of {many} of these items does not exist any more: move them to another one")
    return rows, before, {}


def _no(state: Corrected, data: dict[str, Any]) -> Effect:
    question, clusters = data.get("question"), as_list(data.get("clusters"))
    if question not in QUESTIONS or len(clusters) != QUESTIONS[question]:
        raise UnveilError(f"the question is {question!r}: there is {', '.join(QUESTIONS)}")
    for cluster in clusters:
        state.cluster(cluster, novel=False)
    return NO_ROWS, NO_ROWS, {}


def denied_question(data: dict[str, Any]) -> tuple[str, tuple[int, ...]]:
    clusters = data["clusters"]
    return data["question"], tuple(sorted(clusters) if data["question"] == "merge" else clusters)


def _accept(state: Corrected, data: dict[str, Any]) -> Effect:
    cluster = state.cluster(data.get("cluster"), novel=False)
    reviewed = data.get("reviewed", True) is True
    return NO_ROWS, NO_ROWS, {cluster: replace(state.meanings[cluster], reviewed=reviewed)}


ACTIONS: dict[str, Callable[[Corrected, dict[str, Any]], Effect]] = {
    "name": _name,
    "known": _known,
    "merge": _merge,
    "split": _split,
    "move": _move,
    "reject": _reject,
    "restore": _restore,
    "no": _no,
    "accept": _accept,
}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
