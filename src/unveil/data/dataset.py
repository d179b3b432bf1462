"""What a reader hands over: items, labels and class names, before anybody decides which classes are known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.items import Items


@dataclass(frozen=True, kw_only=True)
class Split:
    """The items of one split, a class index for each, and an id for each that people recognise."""

    items: Items
    labels: NDArray[np.int64]
    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A labelled data set. `labels` index into `classes`."""

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split | None = None
