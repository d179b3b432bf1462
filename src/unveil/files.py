"""Write files atomically: under a temporary name, synced and renamed, so that no incomplete file is ever seen."""

import csv
import errno
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from unveil.errors import UnveilError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write(path: Path, content: bytes | str) -> None:
    """Write a whole file atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    write(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnveilError(f"{path} cannot be read ({error}): delete it and run again") from None


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV, with lines that end in a newline on every system."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def write_with(path: Path, save: Callable[[BinaryIO], object]) -> None:
    """Write a file atomically through a function that takes an open binary file."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        save(file)


def disk_error(error: OSError, path: Path) -> UnveilError:
    """A full or read-only disk, or another reason that prevents writing, as an error message."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UnveilError(
            f"the disk is full: {path} could not be written; free some space and run again: it goes on where it stopped"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return UnveilError(f"no permission to write {path}: choose another directory")
    reason = error.strerror or error  # an incomplete write by numpy has no errno
    return UnveilError(f"{path} could not be written ({reason}): choose another directory")
