"""The stage store: finished pre-training and caches, found by the content of what they were made from."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.dataset import Items
from unveil.errors import UnveilError
from unveil.files import disk_error

LOCK = ".lock"
FORMAT = 1  # raise it when stored stages of older versions must not be reused


def default_store() -> Path:
    """UNVEIL_STORE, or a folder in the user's cache."""
    if folder := os.environ.get("UNVEIL_STORE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unveil" / "stages"


def identity(**parts: Any) -> str:
    """A short name for everything that a stored result depends on."""
    text = json.dumps({"format": FORMAT, **parts}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def fingerprint(items: Items) -> str:
    """The content of a data set: its bytes, or for files their names, sizes and times."""
    digest = hashlib.sha256()
    if isinstance(items, tuple):
        for path in items:
            status = path.stat()
            digest.update(f"{path.parent.name}/{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    else:
        digest.update(f"{items.shape} {items.dtype}".encode())
        for start in range(0, len(items), 8192):  # in pieces: the array may be memory-mapped and large
            digest.update(np.ascontiguousarray(items[start : start + 8192]).data)
    return digest.hexdigest()[:20]


def fingerprint_file(path: Path) -> str:
    """The content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:20]


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Only one process at a time fills a folder; others wait and then find it filled, or are told."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise disk_error(error, folder) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise UnveilError(f"another process is working in {folder}: wait for it, or choose another --out") from None
        yield
