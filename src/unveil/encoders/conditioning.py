"""Numbers that would break a fit although their classes are clear, and what is done about them before any scaling.

Columns far from zero are centered in float64, vectors of a tiny or huge spread are brought to a spread of 1, values
such as -999 that stand for missing ones become the median of their column, and rows many times larger than all
others are shrunk. Vectors with none of this are not touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from unveil.data.items import Vectors
from unveil.numerics import loses_in_float32

Numbers = NDArray[np.float64]
LEAST_ROWS = 20
"""With fewer rows nothing is unusual."""
SMALLEST_MARK, MARK_CELLS = 90, 3
"""Least absolute value of a mark for missing values, a whole number, and how many cells must have it."""
FAR = 10
"""A mark is farther than this many interquartile ranges from its column's median, and from all other values."""
LARGE_ROW, USUAL_ROW = 30, 2
"""Rows whose median distance is above the first, in interquartile ranges, are shrunk to the second."""
LARGE_SHARE = 0.02
"""Most rows that can be unusually large."""


@dataclass(frozen=True)
class Conditioning:
    """x → marks replaced → large rows shrunk → (x − offset) · factor, in float64."""

    marks: Numbers
    """(d,): the value that stands for a missing one; NaN: none."""
    median: Numbers
    spread: Numbers
    """(d,): interquartile ranges; 0 of a column that is mostly constant."""
    offset: Numbers
    factor: Numbers
    """(1,)"""
    shrink: Numbers
    """(1,): 1 where large rows are shrunk."""

    def __call__(self, x: NDArray[np.floating]) -> Vectors:
        """Vectors along the last dimension, in float32."""
        values: Numbers = np.asarray(x, dtype=np.float64)
        values = np.where(values == self.marks, self.median, values)
        if self.shrink[0]:
            size = row_sizes(values, self.median, self.spread)[..., None]
            shrunk = self.median + (values - self.median) * (USUAL_ROW / np.maximum(size, LARGE_ROW))
            values = np.where(size > LARGE_ROW, shrunk, values)
        return ((values - self.offset) * self.factor).astype(np.float32)

    def arrays(self) -> dict[str, Numbers]:
        """Everything, to be stored."""
        return {spec.name: np.ascontiguousarray(getattr(self, spec.name)) for spec in fields(self)}


def row_sizes(x: Numbers, median: Numbers, spread: Numbers) -> Numbers:
    """(n,): the median distance of each row's values from those of their columns, in interquartile ranges."""
    judged = spread > 0
    if not judged.any():
        return np.zeros(x.shape[:-1])
    sizes: Numbers = np.median(np.abs(x[..., judged] - median[judged]) / spread[judged], axis=-1)
    return sizes


def conditioning(x: NDArray[np.floating], columns: Sequence[str] = ()) -> tuple[Conditioning | None, list[str]]:
    """What these vectors (n, d) need, and a sentence about each thing that was found; None where they need nothing."""
    if len(x) < LEAST_ROWS or x.shape[1] == 0:
        return None, []
    values: Numbers = np.asarray(x, dtype=np.float64)
    low, median, high = np.percentile(values, [25, 50, 75], axis=0)
    spread = high - low
    marks, notes = _marks(values, median, spread, columns)
    values = np.where(values == marks, median, values)
    large = row_sizes(values, median, spread) > LARGE_ROW
    shrink = 0 < large.sum() <= max(1, LARGE_SHARE * len(x))
    if shrink:
        notes.append(
            f"{large.sum()} rows are many times larger than all others, the first is row {large.argmax()} (counted "
            "from 0): they were shrunk, and should be looked at"
        )
    usual = values[~large] if shrink else values
    offset = np.zeros(x.shape[1])
    if loses_in_float32(usual):
        far = np.abs(median) > 1e3 * usual.std(axis=0)
        offset = np.where(far, median, 0.0)
    deviations = (usual - offset).std(axis=0)
    varied = deviations[deviations > 0]
    typical = float(np.median(varied)) if len(varied) else 1.0
    factor = 1.0 if 1e-6 < typical < 1e6 else 1 / typical
    if not (notes or offset.any() or factor != 1):
        return None, []
    needed = Conditioning(marks, median, spread, offset, factor=np.array([factor]), shrink=np.array([float(shrink)]))
    return needed, notes


def _marks(x: Numbers, median: Numbers, spread: Numbers, columns: Sequence[str]) -> tuple[Numbers, list[str]]:
    """(d,) values that stand for missing ones, or NaN, and a sentence about them."""
    marks = np.full(x.shape[1], np.nan)
    far = (np.abs(x - median) > FAR * spread) & (spread > 0)
    codes = far & (x == np.round(x)) & (np.abs(x) >= SMALLEST_MARK)
    candidates, counts = np.unique(x[codes], return_counts=True)
    for value in candidates[counts >= MARK_CELLS]:
        for column in np.flatnonzero((codes & (x == value)).any(axis=0) & np.isnan(marks)):
            others = x[x[:, column] != value, column]
            gap = np.abs(others - value).min(initial=np.inf)
            if len(others) > 0 and len(others) > 0.5 * len(x) and gap > max(FAR * spread[column], np.ptp(others)):
                marks[column] = value
    found = np.flatnonzero(~np.isnan(marks))
    if not len(found):
        return marks, []
    names = [repr(columns[i]) if i < len(columns) else str(i) for i in found[:5]]
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    cells = int((x == marks).sum())
    values = ", ".join(f"{value:g}" for value in np.unique(marks[found])[:3])
    return marks, [
        f"{cells} cells are {values}, in the columns {', '.join(names)}{more}: they look like marks for missing values "
        "and were replaced by the medians of their columns"
    ]
