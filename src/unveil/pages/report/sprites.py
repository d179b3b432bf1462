"""Thumbnails of many items in one picture, small enough to be embedded in an HTML file."""

import base64
import io
import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache, cached_property

from PIL import Image

from unveil.runs.reader import Run

SIDES = ((300, 96), (1200, 64), (2500, 48))
"""(most items, side in pixels): the first side whose number of items is large enough is used."""
SMALLEST, LEAST = 16, 32
"""Sides in pixels: thumbnails never get smaller than the first; sheets with more items start with the second."""
QUALITIES = (82, 65, 50, 35, 20)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A grid of thumbnails of rows. It is drawn last, into the bytes that the other parts of the page leave."""

    name: str
    rows: tuple[int, ...]

    @property
    def columns(self) -> int:
        return max(1, math.ceil(math.sqrt(len(self.rows))))

    @property
    def lines(self) -> int:
        return max(1, math.ceil(len(self.rows) / self.columns))

    @cached_property
    def cells(self) -> dict[int, tuple[int, int]]:
        """Column and line of the thumbnail of each item."""
        return {row: (index % self.columns, index // self.columns) for index, row in enumerate(self.rows)}


def side(items: int) -> int:
    """Pixels of a thumbnail's side: the more there are, the smaller."""
    return next((pixels for most, pixels in SIDES if items <= most), LEAST)


def draw(run: Run, sheet: Sheet, room: int) -> tuple[str, int]:
    """A CSS rule that shows the sheet, of at most about `room` bytes, and how many pictures are missing."""
    wanted = side(len(sheet.rows))
    pictures = [run.picture(row, wanted) for row in sheet.rows]
    cell = min(wanted, max((max(picture.size) for picture in pictures if picture), default=1))
    content = _fitting(pictures, sheet, cell, room * 3 // 4)
    sharp = "image-rendering:pixelated;" if cell <= SMALLEST else ""  # a blurred 8 x 8 picture shows less, not more
    address = f"data:image/webp;base64,{base64.b64encode(content).decode()}"
    rule = f".{sheet.name}{{--columns:{sheet.columns};--lines:{sheet.lines};{sharp}background-image:url({address})}}"
    return rule, sum(picture is None for picture in pictures)


def _fitting(pictures: list[Image.Image | None], sheet: Sheet, cell: int, room: int) -> bytes:
    """The best sheet that fits into `room` bytes: quality is reduced first, then size."""
    sides = [cell]
    while sides[-1] > SMALLEST:
        sides.append(max(SMALLEST, sides[-1] * 3 // 4))
    steps = [(side, quality) for side in sides for quality in ((None,) if side <= SMALLEST else ()) + QUALITIES]

    @cache
    def encoded(step: int) -> bytes:
        side, quality = steps[step]
        file = io.BytesIO()
        whole = _paste(pictures, sheet, side)
        whole.save(file, "WEBP", lossless=quality is None, quality=quality or 80, method=4)
        return file.getvalue()

    if len(encoded(0)) <= room:  # the usual case
        return encoded(0)
    first = bisect_left(range(len(steps) - 1), True, key=lambda step: len(encoded(step)) <= room)
    return encoded(first)


def _paste(pictures: list[Image.Image | None], sheet: Sheet, cell: int) -> Image.Image:
    """Whole pictures, uncropped, in the middle of their cells; the rest is transparent."""
    whole = Image.new("RGBA", (sheet.columns * cell, sheet.lines * cell))
    for index, picture in enumerate(pictures):
        if picture is None:
            continue
        scale = cell / max(picture.size)
        width, height = (max(1, round(scale * length)) for length in picture.size)
        if picture.size != (width, height):
            method = Image.Resampling.NEAREST if scale >= 2 else Image.Resampling.LANCZOS
            picture = picture.resize((width, height), method)
        line, column = divmod(index, sheet.columns)
        whole.paste(picture, (column * cell + (cell - width) // 2, line * cell + (cell - height) // 2))
    return whole
