"""Hashes of the content of files, so that a replaced file is never taken for the old one.

A file is read again unless device, inode, size and both time stamps are those of an earlier reading.
"""

import hashlib
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

INDEX = "file-hashes.txt"
"""Name of the index in the store: a line for each file that was read, with its status and its hash."""
UNREADABLE = "unreadable"  # the hash of a file that cannot be read now
SETTLED = 2.0  # seconds after which a time stamp is trusted: a change right after the reading could have the same one
_KNOWN: dict[str, str] = {}


def hash_files(paths: Sequence[Path], store: Path | None = None) -> list[str]:
    """A hash of the content of each file; hashes of earlier readings are kept in the index of the store."""
    known = _KNOWN if store is None else {**_read_index(store / INDEX), **_KNOWN}
    hashes, fresh = [], []
    for path in paths:
        try:
            status = _status(path)
            if (found := known.get(status)) is None:
                found = _hash(path)
                changed = max(map(int, status.split()[-2:])) / 1e9
                if status == _status(path) and changed < time.time() - SETTLED:
                    _KNOWN[status] = found
                    fresh.append(f"{status} {found}\n")
        except OSError:
            found = UNREADABLE
        hashes.append(found)
    if store is not None and fresh:
        _append(store / INDEX, fresh)
    return hashes


def _hash(path: Path) -> str:
    # without waiting for somebody to write to a pipe
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("no regular file")  # a device may have no end
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _status(path: Path) -> str:
    status = path.stat()
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _read_index(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.rsplit(" ", 1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and len(pair[1]) == 32}


def _append(path: Path, lines: list[str]) -> None:
    """One write, so that lines of several processes do not mix; a line that is cut off is not found again."""
    with suppress(OSError):  # the files are read again the next time
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o644), "wb", buffering=0) as file:
            file.write(("\n" + "".join(lines)).encode())
