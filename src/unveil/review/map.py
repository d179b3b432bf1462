"""Where items lie on the page's map."""

import numpy as np
from numpy.typing import NDArray

from unveil.look import Look
from unveil.review.summary import unit

PIECE = 8192


def coordinates(look: Look) -> NDArray[np.float32]:
    """(n, 2), each from 0 to 1: the two directions in which the new items differ most."""
    return _to_square(projected(look, 2))


def projected(look: Look, dimensions: int) -> NDArray[np.float32]:
    """(n, dimensions): items of length one on the principal directions of the new ones; distances only shrink."""
    n, d = look.features.shape
    rows = np.flatnonzero(look.new) if look.new.any() else np.arange(n)
    total, squares = np.zeros(d), np.zeros((d, d))
    for start in range(0, len(rows), PIECE):
        x = unit(look.features[rows[start : start + PIECE]])
        total += x.sum(axis=0, dtype=np.float64)
        squares += x.T @ x
    mean = total / len(rows)
    _, vectors = np.linalg.eigh(squares / len(rows) - np.outer(mean, mean))
    axes = vectors[:, ::-1][:, :dimensions].astype(np.float32)
    found = np.zeros((n, dimensions), dtype=np.float32)
    for start in range(0, n, PIECE):
        x = unit(look.features[start : start + PIECE])
        found[start : start + PIECE, : axes.shape[1]] = (x - mean.astype(np.float32)) @ axes
    return found


def _to_square(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same shape within 0 to 1."""
    low, high = points.min(axis=0), points.max(axis=0)
    scale = max(float((high - low).max()), 1e-12)
    found: NDArray[np.float32] = ((points - (low + high) / 2) / scale + 0.5).astype(np.float32)
    return found
