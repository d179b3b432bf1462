"""Files are there whole or not at all, and a disk that fails is an error for people."""

import errno
import os
import resource
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from unveil import files
from unveil.errors import UnveilError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    files.write(tmp_path / "new" / "folder" / "text", "å\n")
    assert (tmp_path / "new" / "folder" / "text").read_bytes() == "å\n".encode()
    files.write(tmp_path / "bytes", b"\x00\xff")
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"
    files.write_json(tmp_path / "json", {"ä": [1, None]})
    assert files.read_json(tmp_path / "json") == {"ä": [1, None]}
    files.write_with(tmp_path / "array.npy", lambda file: np.save(file, np.arange(3)))
    assert np.load(tmp_path / "array.npy").tolist() == [0, 1, 2]
    assert names(tmp_path) == ["array.npy", "bytes", "json", "new"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write(path, "old")

    def fail(file: BinaryIO) -> None:
        file.write(b"half of the new")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        files.write_with(path, fail)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["write_bytes", "fsync"])
def test_a_full_disk_names_the_path_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    path = tmp_path / "file"
    files.write(path, "old")

    def full(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(*((Path, call, full) if call == "write_bytes" else (os, call, full)))
    with pytest.raises(UnveilError, match="the disk is full") as caught:
        files.write(path, "new")
    assert str(path) in str(caught.value)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("save", [lambda file: file.write(b"x" * 9999), lambda file: np.save(file, np.zeros(9999))])
def test_a_write_that_the_system_cuts_short_is_told_with_the_path(tmp_path: Path, save: Any) -> None:
    path = tmp_path / "file"
    files.write(path, "old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # the nearest to a full disk without mounting one
    try:
        with pytest.raises(UnveilError, match="could not be written") as caught:
            files.write_with(path, save)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(path) in str(caught.value)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_an_incomplete_write_by_numpy_is_a_full_disk() -> None:
    error = OSError("51200 requested and 46048 written")
    assert "the disk is full: some/place" in str(files.disk_error(error, Path("some/place")))


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    files.write(tmp_path / "file", "old")
    with pytest.raises(UnveilError, match="could not be written"):
        files.write(tmp_path / "file" / "below", "new")
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_no_permission_is_told_with_the_path(number: int) -> None:
    message = str(files.disk_error(OSError(number, os.strerror(number)), Path("some/place")))
    assert "no permission to write some/place" in message


def test_json_that_cannot_be_read_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "half").write_text('{"a": ')
    for name in ("half", "gone"):
        with pytest.raises(UnveilError, match=f"{name} cannot be read"):
            files.read_json(tmp_path / name)


def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("content")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("link", "a link"), ("dangling", "a link"), ("folder", "a folder"), ("pipe", "a pipe")):
        before = os.lstat(tmp_path / name)
        with pytest.raises(UnveilError, match=f"{name} is {what}"):
            files.write(tmp_path / name, "new")
        assert os.lstat(tmp_path / name) == before
    with pytest.raises(UnveilError, match="/dev/null is a device"):
        files.write(Path("/dev/null"), "new")
    assert (tmp_path / "precious").read_text() == "content"
    assert names(tmp_path) == ["dangling", "folder", "link", "pipe", "precious"]


def test_text_that_utf8_lacks_is_written_all_the_same(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    assert not files.is_text(name)
    assert files.is_text("café")
    files.write_json(tmp_path / "a", {"name": name})
    assert files.read_json(tmp_path / "a") == {"name": name}
    files.write(tmp_path / "b", name)
    assert (tmp_path / "b").read_bytes() == b"caf\\udce9"


def test_numbers_are_no_formulas() -> None:
    rows = [("-1.5", "=1", " =1", "a=b", "-", 3, "", "+4e5")]
    assert files.sheet_text("abcdefgh", rows).splitlines()[1] == "-1.5,'=1,' =1,a=b,'-,3,,+4e5"
