"""Append to RUN/review.jsonl: a line for each action, on disk before the answer. Processes may share the file."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from unveil import files
from unveil.errors import UnveilError
from unveil.files import disk_error
from unveil.review.corrections import Change, State, replay
from unveil.review.log import LAST, LOG, Entry, check_end, parse_entries, read_last, write_last
from unveil.runs.reader import Run

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class ConflictError(UnveilError):
    """The same classes or items were changed in another window."""


class TroubleError(UnveilError):
    """Nothing can be saved until somebody helps. `trouble`: missing (the run), log (deleted), read-only."""

    def __init__(self, trouble: str, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble


def check_present(run: Run) -> None:
    """An error where the run directory was moved or deleted."""
    if not (run.folder / "record.json").exists():
        raise TroubleError("missing", f"the run {run.folder} is gone: put it back")


class Log:
    """The log of one run and the state after all its entries, also those that other processes append."""

    def __init__(self, run: Run) -> None:
        self.path = run.folder / LOG
        self._run = run
        self._guard = threading.RLock()
        self._reset()
        self.refresh()

    def _reset(self) -> None:
        self.state = State(self._run)
        self._content = b""  # what was read or written, so that a deleted file can be written again
        self._file = 0
        self._sum = ""

    @property
    def _read(self) -> int:
        return len(self._content)

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The present state; it does not change while the block runs."""
        with self._guard:
            self.refresh()
            yield self.state

    def refresh(self) -> None:
        """Apply the entries that were appended since the last time."""
        with self._guard:
            check_present(self._run)
            noted = read_last(self.path)
            try:
                with self.path.open("rb") as file:
                    status = os.fstat(file.fileno())
                    if status.st_size < self._read or status.st_ino != self._file:
                        self._reset()  # the file was cut or replaced
                        self._file = status.st_ino
                    if status.st_size == self._read:
                        return
                    file.seek(self._read)
                    content = file.read()
            except FileNotFoundError:
                if self._read:
                    raise TroubleError("log", f"{self.path} was deleted while it was in use") from None
                check_end(self.path, noted, [])
                return
            except OSError as error:
                raise TroubleError("log", f"{self.path} cannot be read ({error.strerror})") from None
            first = self.state.length + 1
            entries, used = parse_entries(content, self.path, first, self._sum)
            check_end(self.path, noted, entries, first)
            replay(self.state, entries, self.path)
            self._content += content[:used]
            self._sum = entries[-1].sum if entries else self._sum

    def restore(self) -> None:
        """Write a log that was deleted again, with everything that was in it."""
        with self._guard:
            if self.path.exists():
                return
            try:
                files.write(self.path, self._content)
                self._file = self.path.stat().st_ino
            except (OSError, UnveilError) as error:
                raise TroubleError("log", str(error)) from None

    def forget(self) -> None:
        """Begin again without the deleted log."""
        with self._guard:
            if not self.path.exists():
                (self.path.parent / LAST).unlink(missing_ok=True)
                self._reset()

    def act(self, kind: str, data: dict[str, Any], base: int) -> Change:
        """Append an action that was chosen when the log had `base` entries."""
        with self._guard, self._locked() as descriptor:
            self.refresh()
            if self.state.conflicts(kind, data, base):
                raise ConflictError("this was changed in another window: try again")
            data = self.state.compact(kind, data)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            entry = Entry(number=self.state.length + 1, time=now, kind=kind, data=data).chained(self._sum)
            line = entry.line()
            change = self.state.apply(entry)
            try:
                self._append(descriptor, line)
            except BaseException:
                self._reset()  # the state in memory was not written
                raise
            self._sum = entry.sum
            write_last(self.path, entry)
            return change

    def _append(self, descriptor: int, line: bytes) -> None:
        try:
            if os.fstat(descriptor).st_size > self._read:
                os.ftruncate(descriptor, self._read)  # an incomplete line that a crash left
            if os.write(descriptor, line) != len(line):
                os.ftruncate(descriptor, self._read)
                message = f"the disk is full: {self.path} could not be written; free some space and try again"
                raise TroubleError("read-only", message)
            os.fsync(descriptor)
        except OSError as error:
            raise TroubleError("read-only", str(disk_error(error, self.path))) from error
        self._file = os.fstat(descriptor).st_ino
        self._content += line

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            create = 0 if self._read else os.O_CREAT  # a deleted log is not begun again without asking
            descriptor = os.open(self.path, FLAGS | create, 0o644)
        except FileNotFoundError:
            self.refresh()  # says what is missing
            raise
        except OSError as error:
            if self.path.is_symlink():  # it may lead anywhere
                message = f"{self.path} is a link, expected a log of corrections: replace it by the file"
                raise TroubleError("log", message) from None
            raise TroubleError("read-only", str(disk_error(error, self.path))) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)
