"""People's own data: KNOWN, with labels, and NEW, without."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.data import arrays
from unveil.data.catalog import load
from unveil.data.dataset import Items
from unveil.data.folders import EXTENSIONS, image_files
from unveil.data.readers import item_ids
from unveil.errors import UnveilError


@dataclass(frozen=True)
class Own:
    """Known items first, then new ones; `labels` are the names of the known classes, and None for new items."""

    items: Items
    ids: tuple[str, ...]
    labels: tuple[str | None, ...]
    known: int
    """How many of the items are known."""
    columns: tuple[str, ...] = ()
    """Names of the numbers of an item, where a table has some."""

    @property
    def paths(self) -> tuple[Path, ...] | None:
        """Where images are files."""
        return self.items if isinstance(self.items, tuple) else None


def read_own(known: Path, new: Path | None) -> Own:
    """Both together; they must be of one kind."""
    labelled = load(str(known))
    names = tuple(labelled.classes[label] for label in labelled.train.labels)
    first, ids = labelled.train.items, labelled.train.ids
    columns = arrays.columns(known)
    if new is None:
        return Own(first, ids, names, len(ids), columns)
    second, new_ids = read_new(new, columns)
    taken = set(ids)
    fresh = tuple(f"new/{name}" if name in taken else name for name in new_ids)
    return Own(joined(first, second, known, new), (*ids, *fresh), (*names, *(None for _ in fresh)), len(ids), columns)


def read_new(path: Path, columns: Sequence[str] = ()) -> tuple[Items, tuple[str, ...]]:
    """Items without labels: a folder of images, however nested, or an array (.npz, .npy, .csv).

    Columns of a table come in the order of `columns`, the names that other items have.
    """
    if path.is_dir():
        found = image_files(path)
        if not found:
            raise UnveilError(f"{path} holds no images ({' '.join(sorted(EXTENSIONS))}): give a folder with some")
        return found, tuple(file.relative_to(path).as_posix() for file in found)
    if not path.exists():
        raise UnveilError(f"there is no file or folder {path}")
    if path.suffix.lower() in EXTENSIONS:
        return (path,), (path.name,)
    items, ids = arrays.read_unlabelled(path)
    if not isinstance(items, tuple) and items.ndim == 2:
        items = items[:, order_of(arrays.columns(path), columns, path)]
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise UnveilError(f"{path}: the id {twice!r} stands on more than one row; ids must differ")
    return items, ids or item_ids("new", len(items))


def order_of(found: Sequence[str], wanted: Sequence[str], path: Path) -> list[int] | slice:
    """Where each of the wanted columns is; all as they are where one side has no names, or names twice."""
    if not found or not wanted or len(set(wanted)) < len(wanted) or len(set(found)) < len(found):
        return slice(None)
    lacking, strange = ([name for name in a if name not in b] for a, b in ((wanted, found), (found, wanted)))
    if lacking or strange:
        told = [f"lacks {_listed(lacking)}"] if lacking else []
        told += [f"has {_listed(strange)}, which known items do not have"] if strange else []
        raise UnveilError(f"{path} {' and '.join(told)}: give the same columns to known and new items")
    return [found.index(name) for name in wanted]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def joined(first: Items, second: Items, known: Path, new: Path) -> Items:
    """Items of both, or an error that says how they differ."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return (*first, *second)
    if isinstance(first, tuple) or isinstance(second, tuple):
        which = known if isinstance(first, tuple) else new
        raise UnveilError(f"{which} is a folder of images and the other is an array: give two folders or two arrays")
    if first.dtype.kind != second.dtype.kind or first.shape[1:] != second.shape[1:]:
        raise UnveilError(
            f"an item of {known} is {first.dtype} {first.shape[1:]}, "
            f"one of {new} is {second.dtype} {second.shape[1:]}: "
            "give items of one kind and size"
        )
    both: NDArray[np.float32] | NDArray[np.uint8] = np.concatenate([first, second])
    return both
