"""Corrections that were made on the review page, applied to the labels of a run.

The run itself is never changed. Each action is a line of RUN/review.jsonl; the present state is the original result
with all lines applied in order, so that undo and redo are lines too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.review.actions import ACTIONS, Meaning, as_list, denied_question
from unveil.review.actions import REJECTED as REJECTED
from unveil.review.actions import Rows as Rows
from unveil.review.log import LOG, Entry, check_end, clean_name, parse_entries, read_last, typed_name
from unveil.runs.reader import Run


@dataclass(frozen=True, kw_only=True)
class Change:
    """What one action changed, so that it can be undone. A meaning of None: the cluster does not exist."""

    kind: str
    rows: Rows
    before: Rows
    after: Rows
    meanings: dict[int, tuple[Meaning | None, Meaning | None]]
    by_hand: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    """Before and after: whether a person moved these rows where they are."""
    denied: tuple[str, tuple[int, ...]] | None = None  # a question that a person answered with no, and its classes
    takes_back: bool = False  # the answer is taken back


class State:
    """Labels and classes after the first `length` entries of the log."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.labels: Rows = run.labels.copy()
        self.length = 0
        self.done: list[Change] = []
        self.undone: list[Change] = []
        filled = set(np.unique(run.labels).tolist())
        self.meanings = {i: Meaning(name=name) for i, name in enumerate(run.classes) if i < run.n_known or i in filled}
        self.by_hand: NDArray[np.bool_] = np.zeros(len(run.labels), dtype=bool)
        """(n,): a person moved the item where it is."""
        self.denied: set[tuple[str, tuple[int, ...]]] = set()
        """Questions that a person answered with no: merge, known or split, and the classes."""
        self.rejected_from: Rows = run.labels.copy()  # (n,): the class that a rejected item was in
        self.next_number = len(run.classes)  # the number of the next new class
        self._row_changed: NDArray[np.int32] = np.zeros(len(run.labels), dtype=np.int32)
        self._cluster_changed: dict[int, int] = {}

    @property
    def rejected(self) -> NDArray[np.bool_]:
        rows: NDArray[np.bool_] = self.labels == REJECTED
        return rows

    def name(self, cluster: int) -> str:
        """The name to show; a cluster that is a known class has the name of that class."""
        meaning = self.meanings[cluster]
        return meaning.name if meaning.known is None else self.run.classes[meaning.known]

    def is_denied(self, question: str, clusters: Sequence[int]) -> bool:
        """Whether a person answered this question with no."""
        return (question, tuple(clusters)) in self.denied

    def changed_at(self, cluster: int) -> int:
        """The number of the last entry that changed a class; 0: none."""
        return self._cluster_changed.get(cluster, 0)

    def is_novel(self, cluster: int) -> bool:
        """Whether it is a cluster of new items, and not a class that was known from the start."""
        return cluster >= self.run.n_known

    def apply(self, entry: Entry) -> Change:
        """Apply one more entry. An entry that is not possible is an error and changes nothing."""
        if entry.kind in ("undo", "redo"):
            source, target = (self.done, self.undone) if entry.kind == "undo" else (self.undone, self.done)
            if not source:
                raise UnveilError(f"there is nothing to {entry.kind}")
            change = source.pop()
            target.append(change)
            applied = change if entry.kind == "redo" else _inverse(change)
        else:
            change = applied = self._change(entry.kind, entry.data)
            self.next_number = max([self.next_number, *(cluster + 1 for cluster in change.meanings)])
            self.done.append(change)
            self.undone.clear()
        self._put(applied, entry.number)
        return applied

    def conflicts(self, kind: str, data: dict[str, Any], base: int) -> bool:
        """Whether the classes or items of an action have changed since the log had `base` entries."""
        if base == self.length:
            return False
        if base > self.length or kind in ("undo", "redo"):
            return True
        clusters = [data.get("cluster"), data.get("to"), *as_list(data.get("clusters"))]
        if any(self._cluster_changed.get(cluster, 0) > base for cluster in clusters if isinstance(cluster, int)):
            return True
        rows = self.rows(data["rows"]) if "rows" in data else np.empty(0, dtype=np.int64)
        return bool((self._row_changed[rows] > base).any())

    def compact(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        """The data of a new entry as it is stored: every row once, names checked more strictly than old ones."""
        stored = dict(data)
        if "rows" in data:
            stored["rows"] = self.rows(data["rows"]).tolist()
        if "parts" in data:
            stored["parts"] = []
            for part in as_list(data["parts"]):
                self.rows(part)
                stored["parts"].append(list(dict.fromkeys(np.asarray(part).tolist())))  # in the order of the list
        if "clusters" in data:
            clusters = as_list(data["clusters"])
            if all(isinstance(cluster, int) for cluster in clusters):
                stored["clusters"] = list(dict.fromkeys(clusters))
        if isinstance(data.get("text"), str):
            stored["text"] = typed_name(data["text"])
        return stored

    def _put(self, change: Change, number: int) -> None:
        self.labels[change.rows] = change.after
        self.by_hand[change.rows] = change.by_hand[1]
        away = (change.after == REJECTED) & (change.before != REJECTED)
        self.rejected_from[change.rows[away]] = change.before[away]
        if change.denied is not None:
            (self.denied.discard if change.takes_back else self.denied.add)(change.denied)
        self._row_changed[change.rows] = number
        for cluster, (_, meaning) in change.meanings.items():
            if meaning is None:
                self.meanings.pop(cluster, None)
            else:
                self.meanings[cluster] = meaning
        touched = {*change.meanings, *np.unique(change.before).tolist(), *np.unique(change.after).tolist()}
        self._cluster_changed.update(dict.fromkeys(touched, number))
        self.length = number

    def _change(self, kind: str, data: dict[str, Any]) -> Change:
        if (make := ACTIONS.get(kind)) is None:
            raise UnveilError(f"the action is '{kind}': there is {', '.join(ACTIONS)}, undo, redo")
        rows, after, meanings = make(self, data)
        before = self.labels[rows]
        for cluster in np.unique(before[before != after]).tolist():  # a cluster without items does not exist
            emptied = (before == cluster).sum() == (self.labels == cluster).sum() and cluster not in after
            if self.is_novel(cluster) and emptied:
                meanings[cluster] = None
        pairs = {cluster: (self.meanings.get(cluster), meaning) for cluster, meaning in meanings.items()}
        placed = self.by_hand[rows]
        by_hand = placed, (placed | (kind == "move")) & (kind != "reject")
        denied = denied_question(data) if kind == "no" else None
        return Change(kind=kind, rows=rows, before=before, after=after, meanings=pairs, by_hand=by_hand, denied=denied)

    def cluster(self, value: object, *, novel: bool = True) -> int:
        """The number of a class that somebody gave; an error where there is none, or `novel` and it is a known one."""
        if not isinstance(value, int) or isinstance(value, bool) or value not in self.meanings:
            raise UnveilError(f"there is no class {value!r} any more: reload the page")
        if novel and not self.is_novel(value):
            raise UnveilError(f"'{self.name(value)}' is a known class: only clusters can be changed")
        return value

    def rows(self, value: object) -> Rows:
        """Row numbers that somebody gave, each once, in rising order; an error where they are none."""
        try:
            rows = np.asarray(value)
        except (ValueError, OverflowError):
            rows = np.empty(0)
        if rows.ndim != 1 or rows.dtype.kind != "i" or not len(rows):
            raise UnveilError("give the numbers of one or more items")
        if rows.min() < 0 or rows.max() >= len(self.labels):
            raise UnveilError(f"item {rows.max()} of {len(self.labels)}: there is no such item")
        return np.unique(rows).astype(np.int64)

    def movable(self, value: object) -> Rows:
        """Rows that somebody gave; an error where one came with its label."""
        rows = self.rows(value)
        if not self.run.new[rows].all():
            first = self.run.ids[rows[~self.run.new[rows]][0]]
            raise UnveilError(f"{first} came with its label: correct it in the labeled data")
        return rows

    def fresh(self, text: object = None, taken: Iterable[str] = ()) -> Meaning:
        """The meaning of a new class; without a name it gets the next free number."""
        names = {meaning.name for meaning in self.meanings.values()} | set(taken)
        number = self.next_number - self.run.n_known
        while f"novel-{number}" in names:
            number += 1
        meaning = Meaning(name=f"novel-{number}")
        return meaning if text is None else self.named(meaning, text, None)

    def named(self, meaning: Meaning, text: object, cluster: int | None) -> Meaning:
        """A meaning with the name that somebody gave: that of a known class, or one that no other class has."""
        name = clean_name(text)
        if name in self.run.classes[: self.run.n_known]:
            return replace(meaning, known=self.run.classes.index(name))
        others = (self.meanings[other] for other in self.meanings if other != cluster and self.is_novel(other))
        if any(other.name == name for other in others):
            raise UnveilError(f"another class is called '{name}' already: merge the two, or take another name")
        return replace(meaning, name=name, named=True, known=None)


def _inverse(change: Change) -> Change:
    meanings = {cluster: (after, before) for cluster, (before, after) in change.meanings.items()}
    inverse = replace(change, before=change.after, after=change.before, by_hand=change.by_hand[::-1])
    return replace(inverse, meanings=meanings, takes_back=not change.takes_back)


def replay(state: State, entries: Iterable[Entry], path: Path) -> State:
    """Apply entries of a log to a state; an entry that does not fit is an error that names its line."""
    for entry in entries:
        try:
            state.apply(entry)
        except UnveilError as error:
            raise UnveilError(f"line {entry.number} of {path} does not fit this run ({error}): cut it there") from None
    return state


def current_state(run: Run) -> State:
    """The labels and classes after the review, or as the run left them where there was none."""
    path = run.folder / LOG
    noted = read_last(path)
    try:
        entries = parse_entries(path.read_bytes(), path)[0] if path.exists() else []
    except OSError as error:
        raise UnveilError(f"{path} cannot be read ({error.strerror or error}): check the file") from None
    check_end(path, noted, entries)
    return replay(State(run), entries, path)
