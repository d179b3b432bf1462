"""Directories for finished stages and caches, named by a hash of what they were computed from."""

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError
from unveil.files import clear_leftovers, disk_error

LOCK = ".lock"
FORMAT = 2  # raise it when stored stages of older versions must not be reused


@dataclass(frozen=True)
class Storage:
    """The directories to write to. Functions that get no `Storage` keep everything in memory."""

    stages: Path
    """Finished stages and caches, shared by all runs."""
    run: Path
    """The run's own directory: checkpoint and metrics of the discovery stage."""

    def within(self, name: str) -> "Storage":
        """A storage with the same stages and a subdirectory of the run directory."""
        return Storage(self.stages, self.run / name)


def default_store() -> Path:
    """The directory for stages: $UNVEIL_STORE, or a folder in the user's cache."""
    if folder := os.environ.get("UNVEIL_STORE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unveil" / "stages"


def identity(**parts: Any) -> str:
    """A short hash of everything that a stored result depends on."""
    text = json.dumps({"format": FORMAT, **parts}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def fingerprint_file(path: Path) -> str:
    """A short hash of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:20]


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock a folder while the block runs. Other processes wait, or get an error where `wait` is false.

    What killed processes have left half written in it is deleted.
    """
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if path.is_symlink():  # it may lead anywhere
            raise UnveilError(f"{path} is a link, expected an empty file of unveil: delete it") from None
        raise disk_error(error, folder) from error
    with os.fdopen(descriptor, "rb+", buffering=0):
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnveilError(f"{path} is not a regular file, expected an empty file of unveil: delete it")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise UnveilError(f"another process is working in {folder}: wait for it, or choose another --out") from None
        clear_leftovers(folder)
        yield
