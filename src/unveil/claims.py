"""Claims on results that several processes could make, on one machine or on many that share a directory.

A claim is a file beside the result, which only one process can create. Its owner touches it while it works; one that
was not touched for a while, or whose process has ended, may be taken over.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from unveil.files import is_alive

EXPIRES = 120.0  # seconds after which a claim that was not touched is void


def once(result: Path, make: Callable[[], object], *, expires: float = EXPIRES) -> bool:
    """Call `make`, which writes `result`, unless it is there; where another process makes it, wait for that one.

    Returns whether it was made here.
    """
    while not result.exists():
        with claimed(result, expires=expires) as ours:
            if ours:
                if result.exists():  # finished between the two looks
                    return False
                make()
                return True
        time.sleep(min(1.0, expires / 10))
    return False


@contextmanager
def claimed(result: Path, *, expires: float = EXPIRES) -> Iterator[bool]:
    """Claim a result while the block runs. False: another process has claimed it."""
    path = result.with_name(f".{result.name}.claim")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not _create(path) and not (_is_void(path, expires) and _take_away(path, expires) and _create(path)):
        yield False
        return
    stop = threading.Event()

    def keep_touching() -> None:
        while not stop.wait(expires / 4):
            with suppress(OSError):
                os.utime(path)

    touching = threading.Thread(target=keep_touching, daemon=True)
    touching.start()
    try:
        yield True
    finally:
        stop.set()
        touching.join()
        with suppress(OSError):
            path.unlink()


def _create(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{socket.gethostname()} {os.getpid()}\n")
    return True


def _is_void(path: Path, expires: float) -> bool:
    """Whether its process has ended on this machine, or nobody has touched it for too long.

    Time is that of the file system: the clocks of machines differ.
    """
    if _has_ended(path):
        return True
    probe = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        probe.touch()
        return probe.stat().st_mtime - path.stat().st_mtime > expires
    except OSError:
        return False
    finally:
        with suppress(OSError):
            probe.unlink()


def _has_ended(path: Path) -> bool:
    """Whether the claim is of a process of this machine that is gone. Of others nothing is known."""
    try:
        host, process = path.read_text().split()
        return host == socket.gethostname() and not is_alive(int(process))
    except (OSError, ValueError):
        return False  # it is gone, or just being written


def _take_away(path: Path, expires: float) -> bool:
    """Rename a void claim: of several processes that try, one succeeds."""
    aside = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        path.rename(aside)
    except OSError:
        return False
    try:
        if _is_void(aside, expires):
            return True
        with suppress(OSError):  # somebody had taken it over just before, and it is theirs
            os.link(aside, path)
        return False
    finally:
        with suppress(OSError):
            aside.unlink()
