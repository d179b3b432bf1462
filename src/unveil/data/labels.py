"""Read labels of users: numbers or text, with -1, None, NaN or an empty text for unlabeled rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.files import is_text
from unveil.numerics import Labels

PREFIXES = ("novel-", "new-", "cluster-", "discovered-")


@dataclass(frozen=True)
class Classes:
    """The known classes as they were given, and unused names for novel ones."""

    known: NDArray[Any]

    @property
    def numeric(self) -> bool:
        return self.known.dtype.kind in "iu"

    def novel(self, count: int) -> NDArray[Any]:
        """Numbers after the known ones, or texts `novel-0`, `novel-1`, …"""
        if self.numeric:
            return np.arange(count, dtype=np.int64) + (int(self.known.max()) + 1 if len(self.known) else 0)
        taken = [str(name).lower() for name in self.known]
        free = [prefix for prefix in PREFIXES if not any(name.startswith(prefix) for name in taken)]
        return np.array([f"{(free or ['unveil-novel-'])[0]}{i}" for i in range(count)], dtype=object)

    def named(self, indices: NDArray[np.int64], novel: int) -> NDArray[Any]:
        """The labels of class indices, in which known classes come before `novel` novel ones."""
        labels = [*self.known.tolist(), *self.novel(novel).tolist()]
        names = np.array(labels, dtype=np.int64 if self.numeric else object)
        return names[indices]


def read_labels(y: Any, rows: int) -> tuple[Classes, Labels]:
    """The known classes, sorted, and the index of each row's class among them, or -1."""
    if y is None:
        return Classes(np.empty(0, dtype=np.int64)), np.full(rows, -1, dtype=np.int64)
    values = np.asarray(y)
    if values.dtype.kind in "US" and not isinstance(y, np.ndarray):
        values = np.asarray(y, dtype=object)  # numpy would make "nan" of a missing value beside texts
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise UnveilError(f"y has shape {values.shape}: give one label for each item")
    if len(values) != rows:
        raise UnveilError(f"X has {rows} items and y has {len(values)} labels: give one label for each item")
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if values.dtype.kind in "iu":
        labeled = values != -1
        known, index = np.unique(values[labeled], return_inverse=True)
        return _indexed(Classes(known.astype(np.int64)), labeled, index)
    if values.dtype.kind == "f":
        return read_labels(_whole(values), rows)
    labeled = np.array([not _missing(value) for value in values.tolist()], dtype=bool)
    if values.dtype.kind == "U":
        labeled &= values != "nan"  # what numpy makes of a missing value beside texts
    known_labels = [value for value, is_labeled in zip(values.tolist(), labeled, strict=True) if is_labeled]
    whole = [isinstance(value, int | np.integer) and not isinstance(value, bool) for value in known_labels]
    if whole and all(whole):
        known, index = np.unique(np.array(known_labels, dtype=np.int64), return_inverse=True)
        return _indexed(Classes(known), labeled, index)
    texts = [str(value) for value in known_labels]
    if (bad := next((text for text in texts if not is_text(text)), None)) is not None:
        raise UnveilError(f"y has the label {bad!r}, which is not valid text: rename it")
    known, index = np.unique(np.array(texts, dtype=str), return_inverse=True)
    return _indexed(Classes(known.astype(object)), labeled, index)


def _indexed(classes: Classes, labeled: NDArray[np.bool_], index: Labels) -> tuple[Classes, Labels]:
    labels = np.full(len(labeled), -1, dtype=np.int64)
    labels[labeled] = index
    return classes, labels


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    known = values[np.isfinite(values)]
    if np.isinf(values).any() or (known != np.round(known)).any():
        raise UnveilError(
            "y has fractional numbers (Unknown label type: continuous): classes are whole numbers or text; "
            "use -1 where the class is not known"
        )
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and np.isnan(value)):
        return True
    return isinstance(value, int | float | str | np.number) and value in (-1, "-1", "")
