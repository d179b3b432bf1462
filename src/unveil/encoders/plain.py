"""Images as vectors without a network: their pixels, or the histograms of their gradients."""

import numpy as np

from unveil.data.items import Items, Vectors
from unveil.encoders.gradients import SIDE, gradient_histograms
from unveil.encoders.stored import pictures

PIXEL_SIDE = 32
"""Side in pixels to which larger images are scaled where pixels are used as vectors."""


def pixels(items: Items) -> Vectors:
    """Pixels as vectors in 0..1; larger images are scaled to 32x32. Rows of unreadable files are NaN."""
    if items.fit_into(PIXEL_SIDE):
        return (items.array.reshape(len(items), -1) / np.float32(255)).astype(np.float32)
    pieces = []
    for piece in items.pieces(512):
        x, readable = pictures(piece, PIXEL_SIDE, skip_unreadable=True)
        vectors = (x[:, :1] if items.are_gray else x).flatten(1).numpy()
        vectors[~readable] = np.nan
        pieces.append(vectors)
    return np.concatenate(pieces)


def gradients(items: Items) -> Vectors:
    """Histograms of the gradients of gray images. Rows of unreadable files are NaN."""
    pieces = []
    for piece in items.pieces(512):
        x, readable = pictures(piece, SIDE, skip_unreadable=True)
        vectors = gradient_histograms(x.mean(dim=1).numpy())
        vectors[~readable] = np.nan
        pieces.append(vectors)
    return np.concatenate(pieces)
