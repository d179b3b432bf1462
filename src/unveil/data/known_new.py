"""Read user data as a task: KNOWN has labels, NEW has none."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unveil.data import arrays
from unveil.data.catalog import load
from unveil.data.folders import EXTENSIONS, image_files
from unveil.data.items import Items
from unveil.data.readers import item_ids
from unveil.data.task import UNLABELLED, Task
from unveil.errors import UnveilError


def read_task(known: Path, new: Path | None) -> Task:
    """The items of KNOWN, then those of NEW, which must be of the same kind; without NEW, those of KNOWN alone."""
    labelled = load(str(known))
    train, columns = labelled.train, arrays.columns(known)
    task = Task(
        name=known.resolve().stem,
        items=train.items,
        ids=train.ids,
        labels=train.labels,
        known=labelled.classes,
        columns=columns,
    )
    if new is None:
        return task
    items, new_ids = read_new(new, columns)
    check_alike(train.items, items, known, new)
    return Task(
        name=f"{known.resolve().stem}-{new.resolve().stem}",
        items=train.items.and_then(items),
        ids=(*train.ids, *_own_ids(new_ids, train.ids)),
        labels=np.concatenate([train.labels, np.full(len(items), UNLABELLED)]),
        known=labelled.classes,
        columns=columns,
    )


def _own_ids(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names of new items; one that a known item has too gets `new/` before it, as often as needed."""
    used, own = {*taken, *names}, []
    known = set(taken)
    for name in names:
        unique = name
        if name in known:
            while unique in used:
                unique = f"new/{unique}"
            used.add(unique)
        own.append(unique)
    return own


def read_new(path: Path, columns: Sequence[str] = ()) -> tuple[Items, tuple[str, ...]]:
    """Items without labels: a folder of images, however nested, one image, or an array (.npz, .npy, .csv).

    The columns of a table are put into the order of `columns`, the names that the known items have.
    """
    if path.is_dir():
        files = image_files(path)
        if not files:
            raise UnveilError(f"{path} holds no images ({' '.join(sorted(EXTENSIONS))}): give a folder with some")
        return Items.of(files), tuple(file.relative_to(path).as_posix() for file in files)
    if not path.exists():
        raise UnveilError(f"there is no file or folder {path}")
    if path.suffix.lower() in EXTENSIONS:
        return Items.of((path,)), (path.name,)
    items, ids = arrays.read_unlabelled(path)
    if items.kind == "vectors":
        items = Items.of(items.array[:, column_order(arrays.columns(path), columns, path)])
    if len(set(ids)) < len(ids):
        repeated = Counter(ids).most_common(1)[0][0]
        raise UnveilError(f"{path}: the id {repeated!r} occurs in more than one row; ids must be unique")
    return items, ids or item_ids("new", len(items))


def column_order(given: Sequence[str], wanted: Sequence[str], path: Path) -> list[int] | slice:
    """Index of each wanted column among the given ones; no reordering where either side lacks or repeats names."""
    if not given or not wanted or len(set(wanted)) < len(wanted) or len(set(given)) < len(given):
        return slice(None)
    index_of = {name: index for index, name in enumerate(given)}
    missing = [name for name in wanted if name not in index_of]
    expected = set(wanted)
    extra = [name for name in given if name not in expected]
    if missing or extra:
        problems = [f"lacks {_listed(missing)}"] if missing else []
        problems += [f"has {_listed(extra)}, which known items do not have"] if extra else []
        raise UnveilError(f"{path} {' and '.join(problems)}: give the same columns to known and new items")
    return [index_of[name] for name in wanted]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def check_alike(known_items: Items, new_items: Items, known: Path, new: Path) -> None:
    """Raise an error unless both are folders, or arrays whose items have the same type and shape."""
    if known_items.kind == new_items.kind == "files":
        return
    if "files" in (known_items.kind, new_items.kind):
        folder = known if known_items.kind == "files" else new
        raise UnveilError(f"{folder} is a folder of images and the other is an array: give two folders or two arrays")
    first, second = known_items.array, new_items.array
    if first.dtype.kind != second.dtype.kind or first.shape[1:] != second.shape[1:]:
        raise UnveilError(
            f"an item of {known} is {first.dtype} {first.shape[1:]}, "
            f"one of {new} is {second.dtype} {second.shape[1:]}: "
            "give items of one kind and size"
        )
