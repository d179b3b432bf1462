"""Thumbnails of image files, made once and kept in RUN/thumbnails.sqlite.

`kept_in` makes them of pictures that are decoded anyway, while embeddings are computed.
`python -m unveil.runs.thumbnails RUN` makes those that are missing.
"""

import io
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from PIL import Image, ImageOps

from unveil import ranks
from unveil.data.pictures import THUMBNAIL_SIDE, KeepPicture, read_image
from unveil.errors import UnveilError
from unveil.runs.reader import load

QUALITY = 85
FILE = "thumbnails.sqlite"
BATCH = 64
_FAILURES = (sqlite3.Error, UnicodeEncodeError)
"""A full disk, a damaged file, a name that is no text: the thumbnail is made when it is needed."""


class Thumbnails:
    """Square thumbnails of files by their paths. Where the database cannot be written, they are made each time."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._waiting: dict[str, bytes] = {}

    def get(self, path: str) -> Image.Image | None:
        """The thumbnail of a file, made where it is missing; None where the file cannot be read."""
        content = self._stored(path)
        if content is None:
            if (content := _made(path)) is None:
                return None
            self._store({path: content})
        return Image.open(io.BytesIO(content)).convert("RGB")

    def missing(self, paths: Sequence[str]) -> list[str]:
        """The paths that have no thumbnail yet, in the same order, each once; "" is no path."""
        stored = set[str]()
        if self._database is not None:
            with self._lock, suppress(sqlite3.Error):
                stored = {path for (path,) in self._database.execute("SELECT path FROM by_path")}
        return [path for path in dict.fromkeys(paths) if path and path not in stored]

    def make_missing(self, paths: Sequence[str]) -> int:
        """Make the thumbnails of files that have none yet; returns how many."""
        missing, made = self.missing(paths), 0
        for start in range(0, len(missing), BATCH):
            batch = {path: content for path in missing[start : start + BATCH] if (content := _made(path)) is not None}
            self._store(batch)
            made += len(batch)
        return made

    def keep(self, path: Path, picture: Image.Image) -> None:
        """Make the thumbnail of a file that somebody has decoded; it is stored with the next ones, or by `close`."""
        self._waiting[str(path.resolve())] = square(picture)
        if len(self._waiting) >= BATCH:
            self._store_waiting()

    def close(self) -> None:
        """Store what waits, and close the database where it was opened."""
        if self._waiting:
            self._store_waiting()
        if (database := self.__dict__.pop("_database", None)) is not None:
            database.close()

    def _store_waiting(self) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._store(self._waiting)
        self._waiting = {}

    def _stored(self, path: str) -> bytes | None:
        if self._database is None:
            return None
        with self._lock, suppress(*_FAILURES):
            found = self._database.execute("SELECT jpeg FROM by_path WHERE path = ?", (path,)).fetchone()
            return None if found is None else bytes(found[0])
        return None

    def _store(self, thumbnails: dict[str, bytes]) -> None:
        if self._database is None:
            return
        with self._lock, suppress(*_FAILURES), self._database:
            self._database.executemany("INSERT OR REPLACE INTO by_path VALUES (?, ?)", list(thumbnails.items()))

    @cached_property
    def _database(self) -> sqlite3.Connection | None:
        """The database; None where it cannot be read or written, or is damaged."""
        try:
            database = sqlite3.connect(self._path, timeout=5, check_same_thread=False)
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=OFF")  # a lost thumbnail is made again
            database.execute("CREATE TABLE IF NOT EXISTS by_path (path TEXT PRIMARY KEY, jpeg BLOB)")
        except sqlite3.Error:
            return None
        return database


@contextmanager
def kept_in(folder: Path) -> Iterator[KeepPicture | None]:
    """A function that keeps a thumbnail of each file it is given in a run directory, which may not be there yet.

    Of processes that work together the first one keeps those of its part; the page makes the others.
    """
    thumbnails = Thumbnails(folder)
    try:
        yield thumbnails.keep if ranks.current().first else None
    finally:
        thumbnails.close()


def square(picture: Image.Image) -> bytes:
    """The middle of a picture as a square JPEG, no larger than the picture."""
    side = min(THUMBNAIL_SIDE, *picture.size)
    buffer = io.BytesIO()
    ImageOps.fit(picture, (side, side), Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


def _made(path: str) -> bytes | None:
    try:
        return square(read_image(Path(path), at_least=THUMBNAIL_SIDE))
    except UnveilError:
        return None


def main(folder: Path) -> None:
    """Make the thumbnails that a run lacks, new items first."""
    if hasattr(os, "nice"):
        os.nice(10)  # the review page needs the processor more
    run = load(folder)
    rows = sorted(range(len(run.ids)), key=lambda row: not run.new[row])
    Thumbnails(folder).make_missing([run.paths[row] for row in rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
