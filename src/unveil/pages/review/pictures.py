"""Pictures for the review page: sheets of small ones, single large ones; unusual columns of items without pictures."""

import io
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unveil.runs.reader import Run

SIDE = 112
"""Largest side of a small picture, in pixels."""
COLUMNS = 8
MOST_ROWS = 64
LARGE = 720
KEPT = 3000
"""Most small pictures in memory: 110 MB."""
UNUSUAL_COLUMNS = 4


class Pictures:
    """Small pictures are kept, so that a page that comes back to them does not wait for the disk."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._small = lru_cache(maxsize=KEPT)(self._shrunk)
        self.side = SIDE if run.pictures is None else min(SIDE, max(run.pictures.shape[1:3]))

    def _shrunk(self, row: int) -> Image.Image | None:
        return self._run.picture(row, self.side)

    def sheet(self, rows: list[int]) -> tuple[bytes, str, str]:
        """Small pictures in cells, eight beside each other: the image, its type, and the size of each picture."""
        side = self.side
        sheet = Image.new("RGB", (side * COLUMNS, side * -(-len(rows) // COLUMNS)), "#808080")
        sizes = []
        for index, row in enumerate(rows):
            picture = self._small(row)
            if picture is None:
                sizes.append("0x0")
                continue
            sheet.paste(picture, (index % COLUMNS * side, index // COLUMNS * side))
            sizes.append(f"{picture.width}x{picture.height}")
        return *encoded(sheet, exact=side <= 64), ",".join(sizes)

    def large(self, row: int) -> tuple[bytes, str] | None:
        """One picture, as large as a page needs it."""
        picture = self._run.picture(row, LARGE)
        return None if picture is None else encoded(picture, exact=max(picture.size) <= 64)

    @cached_property
    def _statistics(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        x = self._run.inputs
        if x is None:
            return None
        x = x.reshape(len(x), -1)
        return x.mean(axis=0), np.maximum(x.std(axis=0), 1e-12)

    def columns(self, rows: list[int]) -> list[list[dict[str, Any]]]:
        """For each item the columns in which it is farthest from the mean of all items."""
        if self._statistics is None or self._run.inputs is None:
            return [[] for _ in rows]
        mean, deviation = self._statistics
        x = np.asarray(self._run.inputs[rows]).reshape(len(rows), -1)
        distance = (x - mean) / deviation
        best = np.argsort(-np.abs(distance), axis=1)[:, :UNUSUAL_COLUMNS]
        return [[self._column(int(c), x[i, c], distance[i, c]) for c in best[i]] for i in range(len(rows))]

    def _column(self, column: int, value: float, deviations: float) -> dict[str, Any]:
        name = self._run.column(column)
        return {"column": name, "value": float(f"{value:.7g}"), "deviations": round(float(deviations), 1)}


def encoded(picture: Image.Image, *, exact: bool) -> tuple[bytes, str]:
    """PNG where pixels are few enough to be seen one by one, JPEG otherwise; with the type."""
    buffer = io.BytesIO()
    if exact:
        picture.save(buffer, "PNG", compress_level=1)
        return buffer.getvalue(), "image/png"
    picture.save(buffer, "JPEG", quality=86)
    return buffer.getvalue(), "image/jpeg"
