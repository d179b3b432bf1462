"""Pictures for the review page: sheets of small ones, single large ones; unusual columns of items without pictures."""

import io
import os
import subprocess
import sys
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from PIL import Image

from unveil.runs.reader import Run
from unveil.runs.thumbnails import Thumbnails

SIDES = (112, 224)  # sides of small pictures in pixels: for usual and for high-density screens
COLUMNS = 8
MOST_ROWS = 64
LARGE = 1600
KEPT = 800  # most small pictures in memory: 120 MB
UNUSUAL_COLUMNS = 4
MOST_COLUMNS = 400  # columns of one item that are shown at most


class Pictures:
    """Small pictures are kept, so that a page that comes back to them does not wait for the disk."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._small = lru_cache(maxsize=KEPT)(self._shrunk)
        largest = SIDES[-1] if run.pictures is None else max(run.pictures.shape[1:3])
        self.sides = tuple(side for side in SIDES if side <= largest) or (largest,)
        self._process: subprocess.Popen[bytes] | None = None

    @cached_property
    def _thumbnails(self) -> Thumbnails:
        return Thumbnails(self._run.folder)

    def _shrunk(self, row: int) -> Image.Image | None:
        if path := self._run.paths[row]:
            return self._thumbnails.get(path)
        return self._run.picture(row, self.sides[-1])

    def prepare(self) -> None:
        """Make the thumbnails that are missing in a process of its own, once."""
        if self._process is None and any(self._run.paths) and self._thumbnails.missing(self._run.paths):
            self._process = in_background("unveil.runs.thumbnails", self._run)

    def sheet(self, rows: list[int], side: int) -> tuple[bytes, str, str]:
        """Small pictures in cells, eight beside each other: the image, its type, and the size of each picture."""
        sheet = Image.new("RGB", (side * COLUMNS, side * -(-len(rows) // COLUMNS)), "#808080")
        sizes = []
        for index, row in enumerate(rows):
            picture = self._small(row)
            if picture is None:
                sizes.append("0x0")
                continue
            if max(picture.size) > side:
                scale = side / max(picture.size)
                picture = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))))
            sheet.paste(picture, (index % COLUMNS * side, index // COLUMNS * side))
            sizes.append(f"{picture.width}x{picture.height}")
        return *encoded(sheet, exact=side <= 64), ",".join(sizes)

    def large(self, row: int) -> tuple[bytes, str] | None:
        """One whole picture, as large as a window needs it."""
        picture = self._run.picture(row, LARGE)
        return None if picture is None else encoded(picture, exact=max(picture.size) <= 64)

    def whole_row(self, row: int) -> list[dict[str, Any]]:
        """All columns of an item without a picture, the most unusual first."""
        return self.columns([row], MOST_COLUMNS)[0]

    def columns(self, rows: list[int], most: int = UNUSUAL_COLUMNS) -> list[list[dict[str, Any]]]:
        """For each item the columns in which it is farthest from the mean of all items."""
        if self._run.column_statistics is None or self._run.inputs is None:
            return [[] for _ in rows]
        mean, deviation = self._run.column_statistics
        x = np.asarray(self._run.inputs[rows])
        distance = (x - mean) / np.maximum(deviation, 1e-12)
        best = np.argsort(-np.abs(distance), axis=1, kind="stable")[:, :most]
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


def in_background(module: str, run: Run) -> subprocess.Popen[bytes]:
    """`python -m MODULE RUN`, quiet and with one thread: the page needs the other cores."""
    command = [sys.executable, "-P", "-m", module, str(run.folder.resolve())]
    quiet = subprocess.DEVNULL
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=environment)
