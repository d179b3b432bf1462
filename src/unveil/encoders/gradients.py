"""Histograms of oriented gradients: vectors of small, plain images (handwriting, symbols, clothes) without an encoder.

Strokes that move by a pixel change every pixel and hardly any histogram (Dalal and Triggs, CVPR 2005). Bins, cells and
blur are those with which known items of handwriting and clothes have most neighbors of their own class.
"""

import numpy as np
from scipy.ndimage import gaussian_filter

from unveil.numerics import Matrix, unit_rows

SIDE = 32
"""Side in pixels to which images are scaled."""
BINS, CELLS = 12, 6
"""Directions, and cells along each side; a gradient counts in the two nearest of each."""
BLUR = 0.5
"""Standard deviation in pixels of the blur before gradients are taken."""


def gradient_histograms(images: Matrix) -> Matrix:
    """(n, 432) of unit length, from gray images (n, 32, 32)."""
    down, right = np.gradient(gaussian_filter(images, (0, BLUR, BLUR)), axis=(1, 2))
    strength = np.hypot(right, down)
    direction = np.mod(np.arctan2(down, right) / (2 * np.pi), 1) * BINS
    lower = np.floor(direction)
    upper_share = direction - lower
    lower = lower.astype(np.int64) % BINS
    cells = np.maximum(0, 1 - np.abs(_centers(SIDE, 1) - _centers(CELLS, SIDE / CELLS)[:, None]) * CELLS / SIDE)
    histograms = [
        cells @ np.where(lower == one, strength * (1 - upper_share), 0) @ cells.T
        + cells @ np.where((lower + 1) % BINS == one, strength * upper_share, 0) @ cells.T
        for one in range(BINS)
    ]  # of each direction (n, 6, 6)
    shares = unit_rows(np.stack(histograms, axis=1).reshape(len(images), -1).astype(np.float32))
    roots: Matrix = unit_rows(np.sqrt(shares))
    return roots


def _centers(count: int, width: float) -> Matrix:
    """(count,): the middles of intervals of this width side by side."""
    middles: Matrix = ((np.arange(count) + 0.5) * width).astype(np.float32)
    return middles
