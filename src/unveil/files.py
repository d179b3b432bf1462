"""Write files atomically: under a temporary name, synced and renamed, so that no incomplete file is ever seen."""

import csv
import errno
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from unveil import ranks
from unveil.errors import DamagedError, UnveilError

_PART = re.compile(r"\.(.+)\.(\d+)\.part")
"""Temporary names: that of the file and the number of the process that writes it."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error.

    A device, pipe, folder or link in that place is refused: it would be replaced by a plain file. Of processes that
    train together only the first writes: what the others write is lost.
    """
    if not ranks.current().first:
        yield Path(os.devnull)
        return
    check_replaceable(path)
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


def check_replaceable(path: Path) -> None:
    """Raise an error where something else than a regular file is at `path`."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return  # nothing there, or no access: writing will tell
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        what = kinds.get(stat.S_IFMT(mode), "a device")
        raise UnveilError(f"{path} is {what} and would be replaced by a file: give the path of a regular file")


def remove(path: Path) -> None:
    """Delete a file where it exists; of processes that train together the first one does."""
    if ranks.current().first:
        path.unlink(missing_ok=True)


def clear_leftovers(folder: Path) -> None:
    """Delete the temporary files that killed processes have left in a folder."""
    with suppress(OSError):
        for path in folder.iterdir():
            if (match := _PART.fullmatch(path.name)) and not is_alive(int(match[2])):
                path.unlink(missing_ok=True)


def is_alive(process: int) -> bool:
    """Whether there is a process with this number on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # it belongs to somebody else
    return True


def write(path: Path, content: bytes | str) -> None:
    """Write a whole file atomically. Characters that UTF-8 lacks (halves of pairs) become escapes like \\udcff."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def is_text(text: str) -> bool:
    """Whether a name can be written as UTF-8. Names of files that are stored in another encoding cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    write(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path} cannot be read ({error}): delete it and run again") from None


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV, with lines that end in a newline on every system."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def sheet_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV that people may open in a spreadsheet: what it would take for a formula gets a ' before it."""
    return csv_text(header, ([_harmless(cell) for cell in row] for row in rows))


def _harmless(cell: object) -> object:
    if not isinstance(cell, str) or not cell.lstrip().startswith(("=", "+", "-", "@")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def write_with(path: Path, save: Callable[[BinaryIO], object]) -> None:
    """Write a file atomically through a function that takes an open binary file."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        save(file)


def disk_error(error: OSError, path: Path) -> UnveilError:
    """A full or read-only disk, or another reason that prevents writing, as an error message."""
    incomplete = error.errno is None and str(error).endswith(" written")  # all that numpy says of a full disk
    if incomplete or error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UnveilError(
            f"the disk is full: {path} could not be written; free some space and run again: it goes on where it stopped"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return UnveilError(f"no permission to write {path}: choose another directory")
    return UnveilError(f"{path} could not be written ({error.strerror or error}): choose another directory")
