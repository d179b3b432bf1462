"""Propose a split of a class into parts by k-means; it is previewed before it is applied."""

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.numerics import spread_rows, squared_distances, unit_rows
from unveil.runs.reader import Run

FEWEST, MOST = 2, 6
SAMPLE = 50_000  # items to which the centers are fitted; the others are assigned to the nearest


def split(run: Run, rows: NDArray[np.int64], parts: int) -> list[NDArray[np.int64]]:
    """k-means on features of unit length. The largest part comes first; in each part, items nearest to its center."""
    if not FEWEST <= parts <= MOST:
        raise UnveilError(f"{parts} parts: give {FEWEST} to {MOST}")
    if len(rows) < parts:
        raise UnveilError(f"{len(rows)} items cannot be split into {parts} parts")
    from sklearn.cluster import KMeans  # late: it takes a second, and only a split needs it

    x = unit_rows(np.asarray(run.features[rows], dtype=np.float32))
    fitted = KMeans(parts, n_init=3, random_state=0).fit(x[spread_rows(len(x), SAMPLE)])
    distances = squared_distances(x, fitted.cluster_centers_.astype(np.float32))
    labels, distance = distances.argmin(axis=1), distances.min(axis=1)
    groups = [np.flatnonzero(labels == label) for label in range(parts)]
    filled = sorted((group for group in groups if len(group)), key=len, reverse=True)
    if len(filled) < 2:
        raise UnveilError("the items are all alike: select some of them and move them instead")
    return [rows[group[np.argsort(distance[group])]] for group in filled]
