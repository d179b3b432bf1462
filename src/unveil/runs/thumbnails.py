"""Thumbnails of image files, made once and kept in RUN/thumbnails.sqlite.

`python -m unveil.runs.thumbnails RUN` makes those that are missing.
"""

import io
import os
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path

from PIL import Image, ImageOps

from unveil.runs.reader import Run, load

SIDE = 224
"""Pixels of a side: thumbnails are square, cropped in the middle."""
QUALITY = 85
FILE = "thumbnails.sqlite"
BATCH = 64


class Thumbnails:
    """Square thumbnails by row. Where the file cannot be written, they are made again each time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._database = _open(run.folder / FILE)

    def get(self, row: int) -> Image.Image | None:
        """The thumbnail of an item with an image file; None where the file cannot be read."""
        content = self._stored(row)
        if content is None:
            if (content := self._made(row)) is None:
                return None
            self._store([(row, self._run.paths[row], content)])
        return Image.open(io.BytesIO(content)).convert("RGB")

    def missing(self) -> list[int]:
        """Rows with an image file and without a thumbnail."""
        with self._lock:
            query = "SELECT row, path FROM thumbnails"
            stored = dict(self._database.execute(query)) if self._database is not None else {}
        return [row for row, path in enumerate(self._run.paths) if path and stored.get(row) != path]

    def make_missing(self) -> int:
        """Make all thumbnails that are not there yet, new items first; returns how many."""
        rows = sorted(self.missing(), key=lambda row: not self._run.new[row])
        made = 0
        for start in range(0, len(rows), BATCH):
            batch = []
            for row in rows[start : start + BATCH]:
                if (content := self._made(row)) is not None:
                    batch.append((row, self._run.paths[row], content))
            self._store(batch)
            made += len(batch)
        return made

    def _stored(self, row: int) -> bytes | None:
        if self._database is None:
            return None
        with self._lock, suppress(sqlite3.Error):
            query = "SELECT jpeg FROM thumbnails WHERE row = ? AND path = ?"
            found = self._database.execute(query, (row, self._run.paths[row])).fetchone()
            return None if found is None else bytes(found[0])
        return None

    def _made(self, row: int) -> bytes | None:
        picture = self._run.picture(row, 2 * SIDE)
        if picture is None:
            return None
        side = min(SIDE, min(picture.size))
        buffer = io.BytesIO()
        ImageOps.fit(picture, (side, side), Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=QUALITY)
        return buffer.getvalue()

    def _store(self, thumbnails: list[tuple[int, str, bytes]]) -> None:
        if self._database is None:
            return
        with self._lock, suppress(sqlite3.Error), self._database:
            self._database.executemany("INSERT OR REPLACE INTO thumbnails VALUES (?, ?, ?)", thumbnails)


def _open(path: Path) -> sqlite3.Connection | None:
    """The database; None where it cannot be read or written, or is damaged."""
    try:
        database = sqlite3.connect(path, timeout=5, check_same_thread=False)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=OFF")  # a lost thumbnail is made again
        database.execute("CREATE TABLE IF NOT EXISTS thumbnails (row INTEGER PRIMARY KEY, path TEXT, jpeg BLOB)")
    except sqlite3.Error:
        return None
    return database


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # the review page needs the processor more
    Thumbnails(load(Path(sys.argv[1]))).make_missing()
