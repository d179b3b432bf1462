"""Checksums of files that are read back, so that a flipped bit or a missing part is told and never used.

An array has its checksum in a small file beside it, a safetensors file in its own metadata, a JSON file under the key
`checksum`. Files of older versions have none and are taken as they are.
"""

import hashlib
import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil import files, ranks
from unveil.errors import DamagedError

BLOCK = 1 << 22  # bytes that are read at a time
KEY = "checksum"
METADATA = {KEY: "0" * 64}  # metadata of a safetensors file that `sealed` shall complete
_ENTRY = re.compile(rb'"checksum":"([^"]*)"')
_VERIFIED: dict[tuple[str, str], tuple[int, ...]] = {}


def of_file(path: Path) -> str:
    """Number of bytes and CRC-32 of a file. It finds every single flipped bit and costs little."""
    size = total = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            size, total = size + len(block), zlib.crc32(block, total)
    return f"{size} {total:08x}"


def verify(path: Path, expected: str, advice: str) -> None:
    """Raise an error unless the file has this checksum. A file that has not changed is read once per process."""
    try:
        status = path.stat()
        seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if _VERIFIED.get((str(path.absolute()), expected)) == seen:
            return
        found = of_file(path)
    except OSError as error:
        raise DamagedError(f"{path} cannot be read ({error.strerror or error}): {advice}") from None
    if found != expected:
        raise DamagedError(f"{path} is damaged (its content has changed since it was written): {advice}")
    _VERIFIED[str(path.absolute()), expected] = seen


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file and its checksum."""
    with files.replacing(path) as temporary:
        with temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        files.write(_beside(path), of_file(temporary) + "\n")  # first: an array without its checksum is never there


def load_array(path: Path, advice: str, *, mapped: bool = False) -> NDArray[Any]:
    """A .npy file that `save_array` wrote, memory-mapped or in memory."""
    beside = _beside(path)
    if beside.exists():
        try:
            expected = beside.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            expected = "unreadable"
        verify(path, expected, advice)
    return read_array(path, advice, mapped=mapped)


def read_array(path: Path, advice: str, *, mapped: bool = True) -> NDArray[Any]:
    """A .npy file; whatever numpy dislikes about it is an error that names the file."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it is an archive")
    except Exception as error:  # a damaged header can raise nearly anything
        raise DamagedError(f"{path} cannot be read ({error}): {advice}") from None
    return array


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".sum")


def sealed(content: bytes) -> bytes:
    """A safetensors file with `METADATA`, completed by the checksum of all its bytes."""
    content = _ordered(content)
    place = content.index(_entry(METADATA[KEY]), 0, _header(content))
    digest = hashlib.sha256(content).hexdigest()
    return content[:place] + _entry(digest) + content[place + len(_entry(digest)) :]


def check_sealed(path: Path) -> None:
    """Raise an error where a safetensors file is not as `sealed` left it; one without a checksum is accepted.

    DamagedError: its content has changed. ValueError: it is no such file.
    """
    with path.open("rb") as file:
        length = _header(file.read(8))
        if length > os.fstat(file.fileno()).st_size:
            raise ValueError("it is cut off")
        file.seek(0)
        header = file.read(length)
        if (entry := _ENTRY.search(header)) is None:
            return
        digest = hashlib.sha256(header.replace(entry[0], _entry(METADATA[KEY]), 1))
        while block := file.read(BLOCK):
            digest.update(block)
        if digest.hexdigest().encode() != entry[1]:
            raise DamagedError("its content has changed")


def _ordered(content: bytes) -> bytes:
    """The file with its metadata in alphabetical order: safetensors writes them in any, and equal files shall be equal
    byte for byte."""
    end = _header(content)
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + content[end:]


def _entry(text: str) -> bytes:
    return f'"{KEY}":"{text}"'.encode()


def _header(content: bytes) -> int:
    """Bytes of a safetensors file before its tensors."""
    return 8 + int.from_bytes(content[:8], "little")


def with_checksum(table: dict[str, Any]) -> dict[str, Any]:
    """The table with the checksum of all its values, to be written as JSON."""
    return {**{key: value for key, value in table.items() if key != KEY}, KEY: _of_table(table)}


def check_table(table: Any, path: Path, advice: str) -> None:
    """Raise an error where a table that was read as JSON is none, or not what `with_checksum` returned."""
    if not isinstance(table, dict):
        raise DamagedError(f"{path} is damaged (it holds no table): {advice}")
    if KEY in table and table[KEY] != _of_table(table):
        raise DamagedError(f"{path} is damaged (its content has changed since it was written): {advice}")


def _of_table(table: dict[str, Any]) -> str:
    rest = {key: value for key, value in table.items() if key != KEY}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:20]


def set_aside(path: Path) -> Path:
    """Rename a damaged file or folder, so that it can be looked at and is not found any more."""
    number, target = 1, path.with_name(f"{path.name}.damaged")
    while target.exists() or target.is_symlink():
        number += 1
        target = path.with_name(f"{path.name}.damaged-{number}")
    if ranks.current().first:
        path.replace(target)
    return target
