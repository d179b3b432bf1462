"""A class cut into parts, to be looked at before it is applied."""

import numpy as np
from numpy.typing import NDArray

from unveil.discovery.clusters import kmeans
from unveil.errors import UnveilError
from unveil.pages.review.summary import unit
from unveil.runs.reader import Look

FEWEST, MOST = 2, 6


def split(look: Look, rows: NDArray[np.int64], parts: int) -> list[NDArray[np.int64]]:
    """k-means on directions; the largest part first, and in each the items nearest to its middle first."""
    if not FEWEST <= parts <= MOST:
        raise UnveilError(f"{parts} parts: give {FEWEST} to {MOST}")
    if len(rows) < parts:
        raise UnveilError(f"{len(rows)} items cannot be {parts} parts")
    x = unit(look.features[rows])
    found = kmeans(x, parts, seed=0, n_init=3)
    near = np.square(x - found.centers[found.labels]).sum(axis=1)
    groups = [np.flatnonzero(found.labels == label) for label in range(parts)]
    filled = sorted((group for group in groups if len(group)), key=len, reverse=True)
    if len(filled) < 2:
        raise UnveilError("the items are all alike: select some of them and move them instead")
    return [rows[group[np.argsort(near[group])]] for group in filled]
