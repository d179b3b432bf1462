"""Labeled data sets as readers return them, before they are divided into known and novel classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.items import Items


@dataclass(frozen=True, kw_only=True)
class Split:
    """The items of one split, with a class index and a readable id for each."""

    items: Items
    labels: NDArray[np.int64]
    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A labeled data set. `labels` index into `classes`."""

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split | None = None
    columns: tuple[str, ...] = ()  # names of the columns of a table
