"""What a reader hands over: items, labels and class names, before anybody decides which classes are known."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.uint8]
"""(n, height, width, channels) with 1 or 3 channels."""
Vectors = NDArray[np.float32]
"""(n, features), finite; may be memory-mapped."""
Files = tuple[Path, ...]
"""Image files that are decoded while training (data sets that do not fit in memory)."""
Items = Images | Vectors | Files


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

    @property
    def kind(self) -> str:
        """`images` (one uint8 array), `files` (paths, decoded while training) or `vectors`."""
        if isinstance(self.train.items, tuple):
            return "files"
        return "images" if self.train.items.dtype == np.uint8 else "vectors"
