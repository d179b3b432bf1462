"""Read a task from files; of input in shards, which may not fit, a sample. The other rows are labeled afterwards."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from unveil import rng
from unveil.data import arrays
from unveil.data.items import Items, Rows, Vectors
from unveil.data.known_new import USUAL, check_alike, own_ids, read_task
from unveil.data.shards import Shard, find_shards, is_sharded
from unveil.data.sheets import LABELS, Columns
from unveil.data.task import UNLABELED, Task
from unveil.discovery.vectors import MOST_ROWS, stratified
from unveil.errors import UnveilError

SAMPLE = MOST_ROWS // 2
"""Known rows, and new rows, that are taken of input in shards: as many of each as a fit on vectors trains on."""
FEW = 20  # a class with fewer rows than this in a sample may be missed


def read_task_or_sample(known: Path, new: Path | None, columns: Columns = USUAL, sample: int | None = None) -> Task:
    """The task in KNOWN and NEW, with at most `sample` known and `sample` new items where it is given.

    Folders of array or table files are sampled in any case, and read a piece at a time: NEW in proportion to the rows
    of its shards, KNOWN with some rows of every class. A note of the task says how many rows were taken.
    """
    if not is_sharded(known) and (new is None or not is_sharded(new)):
        task = read_task(known, new, columns)
        return task if sample is None else task.sampled(sample)
    if new is None:
        raise UnveilError(f"{known} holds array or table files: give NEW too, a file or a folder of such files")
    labeled = _sample_known(known, columns, sample or SAMPLE)
    others, note = _sample_new(new, sample or SAMPLE)
    check_alike(labeled.items, others.items, known, new)
    assert labeled.ids is not None
    assert others.ids is not None
    return Task(
        name=f"{known.resolve().stem}-{new.resolve().stem}",
        items=labeled.items.and_then(others.items),
        ids=(*labeled.ids, *own_ids(others.ids, labeled.ids)),
        labels=np.concatenate([labeled.labels, others.labels]),
        known=labeled.known,
        notes=(*labeled.notes, *note),
    )


def _sample_known(known: Path, columns: Columns, most: int) -> Task:
    if not is_sharded(known):
        task = read_task(known, None, columns)
        return task.take(_every_class(task.labels, most)).with_used_classes()
    shards = find_shards(known)
    wanted = LABELS if columns.label is None else (columns.label.lower(),)
    starts, texts, found = np.cumsum([0, *(shard.count() for shard in shards)]), dict[str, int](), list[Rows]()
    for shard in shards:
        if (labels := shard.labels(wanted)) is None:
            raise UnveilError(f"{shard.paths[0]} has no column {' or '.join(wanted)}: add one, or name it with --label")
        numbers = [texts.setdefault(text.strip(), len(texts)) if text.strip() else UNLABELED for text in labels[0]]
        found.append(np.array([*numbers, UNLABELED])[labels[1]])
    label_of = np.concatenate(found)
    rows = _every_class(label_of, most)
    if not len(rows):
        raise UnveilError(f"{known}: no row has a label; fill in those of the known classes")
    parts = [rows[(rows >= a) & (rows < b)] - a for a, b in pairwise(starts)]
    vectors, ids, kept = _taken(shards, parts)
    names = list(texts)
    classes, indices = arrays.encode([names[label_of[row]] for row in rows[kept]], str(known))
    return Task(name=known.stem, items=Items.of(vectors), ids=ids, labels=indices, known=classes)


def _every_class(labels: Rows, most: int) -> Rows:
    """At most so many rows with a label, some of every class, always the same ones."""
    order = rng.numpy(0, "sample of known rows").permutation(np.flatnonzero(labels != UNLABELED))
    return np.sort(order[stratified(labels[order], most)])


def _sample_new(new: Path, most: int) -> tuple[Task, list[str]]:
    """The unlabeled rows, and what to tell about them."""
    if not is_sharded(new):
        raise UnveilError(f"KNOWN is a folder of array or table files, and {new} is not: give such a folder as NEW too")
    shards = find_shards(new)
    counts = np.array([shard.count() for shard in shards])
    ends = np.cumsum(counts) * min(most, int(counts.sum())) // max(1, int(counts.sum()))
    shares = np.diff(ends, prepend=0)  # of each shard in proportion to its rows, all together exactly `most`
    parts = [
        np.sort(rng.numpy(0, "sample of new shards", index).choice(count, share, replace=False))
        for index, (count, share) in enumerate(zip(counts, shares, strict=True))
    ]
    vectors, ids, _ = _taken(shards, parts)
    total, taken = int(counts.sum()), len(vectors)
    labels = np.full(taken, UNLABELED, dtype=np.int64)
    task = Task(name=new.stem, items=Items.of(vectors), ids=ids, labels=labels, known=())
    if taken == total:
        return task, []
    note = (
        f"the fit is on {taken:,} of the {total:,} rows of {new.name}, from each of its {len(shards):,} shards in "
        f"proportion to its rows: a class with fewer than {100 * FEW / taken:.2g} % of the rows may be missed"
    )
    return task, [note]


def _taken(shards: Sequence[Shard], parts: Sequence[Rows]) -> tuple[Vectors, tuple[str, ...], Rows]:
    """Vectors and ids of the given rows of each shard, and which of all given rows have a vector."""
    vectors, ids, kept, before = list[Vectors](), list[str](), list[Rows](), 0
    for shard, rows in zip(shards, parts, strict=True):
        start = 0
        for piece in shard.pieces() if len(rows) else ():
            first, last = np.searchsorted(rows, [start, start + len(piece.ids)])
            here = rows[first:last] - start
            start += len(piece.ids)
            has_vector = piece.present[here]
            place = np.cumsum(piece.present) - 1
            if has_vector.any():
                vectors.append(piece.items.array[place[here[has_vector]]])
            ids += [piece.ids[row] for row in here[has_vector]]
            kept.append(before + first + np.flatnonzero(has_vector))
        before += len(rows)
    if not vectors:
        raise UnveilError(f"{shards[0].paths[0].parent}: no row has a vector")
    if len(set(ids)) < len(ids):
        repeated = Counter(ids).most_common(1)[0][0]
        raise UnveilError(f"{shards[0].paths[0].parent}: the id {repeated!r} occurs twice; ids must be unique")
    if len(wide := sorted({part.shape[1] for part in vectors})) > 1:
        raise UnveilError(f"{shards[0].paths[0].parent}: vectors of {wide[0]} and of {wide[1]} numbers; give one size")
    return np.concatenate(vectors), tuple(ids), np.concatenate(kept)
