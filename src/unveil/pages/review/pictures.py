"""Pictures for the page: many small ones as one image, single large ones, and numbers where there are none."""

import io
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unveil.runs.reader import Look

SIDE = 112
"""Largest side of a small picture."""
COLUMNS = 8
MOST_ROWS = 64
LARGE = 720
KEPT = 3000
"""Small pictures in memory: 110 MB at most."""
TELLING = 4


class Pictures:
    """Small pictures are kept, so that a page that comes back to them does not wait for the disk."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._small = lru_cache(maxsize=KEPT)(self._shrunk)
        self.side = SIDE if look.pictures is None else min(SIDE, max(look.pictures.shape[1:3]))

    def _shrunk(self, row: int) -> Image.Image | None:
        return self._look.picture(row, self.side)

    def sheet(self, rows: list[int]) -> tuple[bytes, str, str]:
        """Small pictures in cells, eight beside each other: the image, its type, and the size of each picture."""
        side = self.side
        sheet = Image.new("RGB", (side * COLUMNS, side * -(-len(rows) // COLUMNS)), "#808080")
        sizes = []
        for place, row in enumerate(rows):
            picture = self._small(row)
            if picture is None:
                sizes.append("0x0")
                continue
            sheet.paste(picture, (place % COLUMNS * side, place // COLUMNS * side))
            sizes.append(f"{picture.width}x{picture.height}")
        return *encoded(sheet, exact=side <= 64), ",".join(sizes)

    def large(self, row: int) -> tuple[bytes, str] | None:
        """One picture, as large as a page needs it."""
        picture = self._look.picture(row, LARGE)
        return None if picture is None else encoded(picture, exact=max(picture.size) <= 64)

    @cached_property
    def _spread(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        x = self._look.inputs
        if x is None:
            return None
        x = x.reshape(len(x), -1)
        return x.mean(axis=0), np.maximum(x.std(axis=0), 1e-12)

    def telling(self, rows: list[int]) -> list[list[dict[str, Any]]]:
        """For each item the columns in which it is farthest from the usual, with the value."""
        if self._spread is None or self._look.inputs is None:
            return [[] for _ in rows]
        mean, spread = self._spread
        x = np.asarray(self._look.inputs[rows]).reshape(len(rows), -1)
        strange = (x - mean) / spread
        best = np.argsort(-np.abs(strange), axis=1)[:, :TELLING]
        return [[self._told(int(c), x[i, c], strange[i, c]) for c in best[i]] for i in range(len(rows))]

    def _told(self, column: int, value: float, spreads: float) -> dict[str, Any]:
        name = self._look.column(column)
        return {"column": name, "value": float(f"{value:.4g}"), "spreads": round(float(spreads), 1)}


def encoded(picture: Image.Image, *, exact: bool) -> tuple[bytes, str]:
    """PNG where pixels are few enough to be seen one by one, JPEG otherwise; with the type."""
    buffer = io.BytesIO()
    if exact:
        picture.save(buffer, "PNG", compress_level=1)
        return buffer.getvalue(), "image/png"
    picture.save(buffer, "JPEG", quality=86)
    return buffer.getvalue(), "image/jpeg"
