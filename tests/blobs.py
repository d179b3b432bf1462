"""Gaussian blobs with known classes."""

import numpy as np
from numpy.typing import NDArray


def blobs(classes: int, each: int, seed: int = 0, apart: float = 6.0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """`each` points around every one of `classes` centers in eight dimensions, and their classes."""
    draw = np.random.default_rng(seed)
    centers = draw.normal(size=(classes, 8)) * apart
    y = np.repeat(np.arange(classes), each)
    return (centers[y] + draw.normal(size=(len(y), 8))).astype(np.float32), y
