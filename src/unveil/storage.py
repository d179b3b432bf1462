"""Directories for finished stages and caches, named by a hash of what they were computed from."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unveil import ranks
from unveil.errors import UnveilError
from unveil.files import clear_leftovers, disk_error

LOCK = ".lock"
FORMAT = 2  # raise it when stored stages of older versions must not be reused
_ENTRY = re.compile(r"[0-9a-f]{20}")  # names that `identity` gives
_KINDS = {
    "embeddings.npy": "embeddings",
    "layout.json": "outputs of a frozen trunk",
    "model.safetensors": "pre-trained stage",
    "labels.npy": "k-means clusters",
}
"""What an entry holds, by the name of its file."""


@dataclass(frozen=True)
class Storage:
    """The directories to write to. Functions that get no `Storage` keep everything in memory."""

    stages: Path  # finished stages and caches, shared by all runs
    run: Path  # the run's own directory: checkpoint and metrics of the discovery stage

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

    What killed processes have left half written in it is deleted. Processes that train together enter and leave the
    block together, under a lock of the first.
    """
    together = ranks.current()
    with _locked(folder, wait) if together.first else nullcontext():
        together.wait()
        yield
        together.wait()


@contextmanager
def _locked(folder: Path, wait: bool) -> Iterator[None]:
    while True:
        with os.fdopen(_open_lock(folder), "rb+", buffering=0) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                message = f"another process is working in {folder}: wait for it, or choose another --out"
                raise UnveilError(message) from None
            if not _is_there(folder / LOCK, lock.fileno()):
                continue  # the folder was deleted while this process waited
            os.utime(lock.fileno())  # when it was last used, for `unveil cache`
            clear_leftovers(folder)
            yield
            return


def _open_lock(folder: Path) -> int:
    """A descriptor of the lock of a folder, which is made where it is missing."""
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if path.is_symlink():  # it may lead anywhere
            raise UnveilError(f"{path} is a link, expected an empty file of unveil: delete it") from None
        raise disk_error(error, folder) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnveilError(f"{path} is not a regular file, expected an empty file of unveil: delete it")
    return descriptor


def _is_there(path: Path, descriptor: int) -> bool:
    """Whether the file of a descriptor is still the one at `path`."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class Entry:
    """A folder of the store: what it holds, how large it is and when it was last used (seconds since 1970)."""

    folder: Path
    kind: str
    bytes: int
    used: float

    def to_json(self) -> dict[str, Any]:
        """For JSON: the time as text, UTC."""
        used = datetime.fromtimestamp(self.used, UTC).isoformat(timespec="seconds")
        return {"name": self.folder.name, "kind": self.kind, "bytes": self.bytes, "used": used}


def entries(store: Path) -> list[Entry]:
    """Everything in the store, largest first. Links and folders that unveil did not name are left out."""
    if not store.is_dir():
        return []
    found = []
    for folder in store.iterdir():
        if _ENTRY.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            kind = next((kind for name, kind in _KINDS.items() if (folder / name).exists()), "unfinished")
            lock = folder / LOCK
            used = (lock if lock.exists() else folder).stat().st_mtime
            found.append(Entry(folder, kind, size_of(folder), used))
    return sorted(found, key=lambda entry: (-entry.bytes, entry.folder.name))


def remove(entry: Entry) -> bool:
    """Delete an entry; False where another process is working in it."""
    try:
        with locked(entry.folder, wait=False):
            shutil.rmtree(entry.folder)
    except UnveilError:
        return False
    return True


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder. Links are not followed."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total += Path(folder, name).lstat().st_size
    return total
