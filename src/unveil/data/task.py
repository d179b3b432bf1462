"""A task: labeled items of known classes and unlabeled items of novel ones, with the truth in a separate object.

Data sets, user files and arrays all become the same `Task` (here, in known_new.py and in the estimator).
"""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil import rng
from unveil.data.dataset import Dataset, Split
from unveil.data.items import Items, Rows
from unveil.errors import UnveilError
from unveil.settings import Data

UNLABELED = -1


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that training may see."""

    name: str
    items: Items
    labels: NDArray[np.int64]  # (n,): the known class of a row as an index into `known`, or -1 where it is unlabeled
    known: tuple[str | int, ...]  # the known classes as they were given
    n_novel: int | None = None  # the number of novel classes; None: to be estimated
    known_in_unlabeled: bool = False  # unlabeled rows may be of known classes too
    ids: tuple[str, ...] | None = None  # a name for each row; None: rows are only numbered
    columns: tuple[str, ...] = ()  # names of the columns of a table
    notes: tuple[str, ...] = ()  # sentences about what was left out or filled in when it was read
    test_items: Items | None = None
    test_ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def labeled(self) -> NDArray[np.int64]:
        """Rows with a label."""
        return np.flatnonzero(self.labels != UNLABELED)

    @property
    def unlabeled(self) -> NDArray[np.int64]:
        """Rows to be discovered."""
        return np.flatnonzero(self.labels == UNLABELED)

    @property
    def n_clusters(self) -> int:
        """Classes that an unlabeled row may be of."""
        assert self.n_novel is not None, "the number of novel classes is not known yet"
        return self.n_novel + (len(self.known) if self.known_in_unlabeled else 0)

    def id_of(self, row: int) -> str:
        """The name of a row, or its number."""
        return str(row) if self.ids is None else self.ids[row]

    def take(self, rows: NDArray[np.int64]) -> "Task":
        """The task restricted to these rows."""
        ids = None if self.ids is None else tuple(self.ids[row] for row in rows)
        return replace(self, items=self.items.take(rows), labels=self.labels[rows], ids=ids)

    def sampled(self, most: int) -> "Task":
        """At most so many labeled and so many unlabeled rows, always the same ones."""
        draw = rng.numpy(0, "sample")
        parts = [np.sort(draw.permutation(part)[:most]) for part in (self.labeled, self.unlabeled)]
        return self.take(np.concatenate(parts)).with_used_classes()

    def with_used_classes(self) -> "Task":
        """The task without classes that no row has."""
        used = np.unique(self.labels[self.labeled])
        index_of = np.full(len(self.known) + 1, UNLABELED)
        index_of[used] = np.arange(len(used))
        return replace(self, known=tuple(self.known[c] for c in used.tolist()), labels=index_of[self.labels])

    def with_labels(self, labels: Mapping[str, str]) -> "Task":
        """The task with additional labels, given by id; a label that is not a known class yet becomes one."""
        assert self.ids is not None
        index_of = {str(name): index for index, name in enumerate(self.known)}
        known = [*self.known, *(name for name in dict.fromkeys(labels.values()) if name not in index_of)]
        index_of |= {str(name): index for index, name in enumerate(known)}
        pairs = zip(self.ids, self.labels, strict=True)
        indices = [index_of[labels[name]] if name in labels else old for name, old in pairs]
        return replace(self, known=tuple(known), labels=np.array(indices, dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The true novel classes, which only evaluation may see."""

    novel: tuple[str, ...]
    unlabeled: NDArray[np.int64]
    """(n_u,): index into `novel` of each unlabeled training row, in the order of `Task.unlabeled`."""
    test: NDArray[np.int64]  # (n_test,): known classes from 0, then the novel ones


def make_task(dataset: Dataset, settings: Data) -> tuple[Task, Truth]:
    """Split a data set by class. Known and novel classes are always disjoint."""
    known = _names(settings.known, dataset.classes, "known")
    others = tuple(name for name in dataset.classes if name not in set(known))
    novel = others if settings.novel is None else _names(settings.novel, others, "novel", everything=dataset.classes)
    if shared := sorted(set(known) & set(novel)):
        raise UnveilError(
            f"{len(shared)} class(es) are both known and novel ({', '.join(shared[:3])}): "
            "a class is one or the other; take them out of data.known or data.novel"
        )
    if not known or not novel:
        raise UnveilError(
            f"{len(known)} known and {len(novel)} novel classes of {len(dataset.classes)} in {dataset.name}: "
            "each side needs at least one; set data.known to fewer classes than there are"
        )
    position = {name: index for index, name in enumerate((*known, *novel))}
    renumber = np.array([position.get(name, -1) for name in dataset.classes])
    rows, labels = _select(dataset.train, renumber, settings.per_class)
    if settings.imbalance > 1:
        chosen = imbalanced(labels, len(known), settings.imbalance)
        rows, labels = rows[chosen], labels[chosen]
    counts = np.bincount(labels, minlength=len(position))
    if empty := [name for name, count in zip(position, counts, strict=True) if count == 0]:
        raise UnveilError(
            f"no training items of class {', '.join(map(repr, empty[:3]))} in {dataset.name}: "
            "add items or leave the class out"
        )
    hidden = labels >= len(known)
    none = np.empty(0, int)
    test_rows, test_labels = _select(dataset.test, renumber, None) if dataset.test else (none, none)
    task = Task(
        name=dataset.name,
        items=dataset.train.items.take(rows),
        ids=tuple(dataset.train.ids[row] for row in rows),
        labels=np.where(hidden, UNLABELED, labels),
        known=known,
        n_novel=len(novel),
        test_items=dataset.test.items.take(test_rows) if dataset.test else None,
        test_ids=tuple(dataset.test.ids[row] for row in test_rows) if dataset.test else (),
    )
    return task, Truth(novel=novel, unlabeled=labels[hidden] - len(known), test=test_labels)


def imbalanced(labels: NDArray[np.int64], known: int, ratio: float) -> NDArray[np.int64]:
    """The rows that remain when class i of C (known and novel ones separately) keeps ratio^(−i/(C−1)) of its items."""
    rows = []
    classes = int(labels.max()) + 1
    for first, last in ((0, known), (known, classes)):
        for rank, label in enumerate(range(first, last)):
            members = np.flatnonzero(labels == label)
            share = ratio ** (-rank / max(1, last - first - 1))
            rows.append(members[: max(1, round(share * len(members)))])
    return np.sort(np.concatenate(rows))


def _select(split: Split, renumber: Rows, per_class: int | None) -> tuple[Rows, Rows]:
    """Rows of the task's classes, in file order, and their new labels."""
    labels = renumber[split.labels]
    rows = np.flatnonzero(labels >= 0)
    if per_class is not None:
        rank = np.zeros(len(labels), dtype=np.int64)
        for label in np.unique(labels[rows]):
            members = np.flatnonzero(labels == label)
            rank[members] = np.arange(len(members))
        rows = rows[rank[rows] < per_class]
    return rows, labels[rows]


def _names(
    choice: int | tuple[str, ...] | str, offered: tuple[str, ...], key: str, everything: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """The classes that a setting names: the first n of those offered, a list, a pattern, or a file of names."""
    if isinstance(choice, str) and choice.startswith("not "):
        others = set(_listed(choice.removeprefix("not "), key))
        return tuple(name for name in offered if name not in others)
    if isinstance(choice, str) and "*" in choice:
        if not (matching := tuple(fnmatch.filter(offered, choice))):
            raise UnveilError(f"data.{key}: no class matches {choice!r}; there are {', '.join(offered[:8])}, …")
        return matching
    if isinstance(choice, int):
        if abs(choice) > len(offered):
            raise UnveilError(f"data.{key} asks for {choice} classes, there are {len(offered)}: give a smaller number")
        return offered[:choice] if choice >= 0 else offered[choice:]
    names = tuple(choice) if isinstance(choice, tuple) else _listed(choice, key)
    existing = set(everything or offered)
    if missing := [name for name in names if name not in existing]:
        raise UnveilError(
            f"data.{key} names {missing[0]!r}, which is no class of this data set "
            f"({', '.join((everything or offered)[:8])}, …): correct the name"
        )
    if len(set(names)) != len(names):
        raise UnveilError(f"data.{key} names a class twice: list each class once")
    return names


def _listed(source: str, key: str) -> tuple[str, ...]:
    if source.startswith("package:"):
        path: Traversable = resources.files("unveil.data") / "splits" / f"{source.removeprefix('package:')}.txt"
        problem = f"no class list '{source}' comes with unveil"
    else:
        path, problem = Path(source), f"no class list at {source}: give a text file with one class name per line"
    if not path.is_file():
        raise UnveilError(f"data.{key}: {problem}")
    return tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
