"""Files are known by their content; they are read again whenever they may have changed."""

import os
from pathlib import Path

import pytest

from unveil.data import file_hashes
from unveil.data.file_hashes import INDEX, UNREADABLE, hash_files


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are really read; nothing is remembered from other tests."""
    seen: list[Path] = []
    real = file_hashes._hash

    def counted(path: Path) -> str:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(file_hashes, "_hash", counted)
    monkeypatch.setattr(file_hashes, "_KNOWN", {})
    monkeypatch.setattr(file_hashes, "SETTLED", -60)  # trust time stamps at once
    return seen


def test_equal_content_has_equal_hashes(tmp_path: Path, reads: list[Path]) -> None:
    for name, content in (("a", b"one"), ("b", b"one"), ("c", b"two")):
        (tmp_path / name).write_bytes(content)
    a, b, c = hash_files([tmp_path / name for name in "abc"])
    assert a == b != c


def test_another_process_reads_only_what_has_changed(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_bytes(b"content")
    before = hash_files(paths, tmp_path / "store")
    monkeypatch.setattr(file_hashes, "_KNOWN", {})
    assert hash_files(paths, tmp_path / "store") == before
    assert reads == paths
    status = paths[0].stat()
    paths[0].write_bytes(b"CONTENT")  # the same size, and soon the same time stamp; ctime gives it away
    os.utime(paths[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    after = hash_files(paths, tmp_path / "store")
    assert after[0] != before[0]
    assert after[1] == before[1]
    assert reads == [*paths, paths[0]]


def test_a_fresh_time_stamp_is_not_trusted(tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_hashes, "SETTLED", 60)
    (tmp_path / "a").write_bytes(b"content")
    hash_files([tmp_path / "a"] * 2, tmp_path / "store")
    assert len(reads) == 2
    assert not (tmp_path / "store").exists()


def test_a_damaged_index_costs_time_alone(tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (before,) = hash_files([tmp_path / "a"], tmp_path)
    index = tmp_path / INDEX
    for content in (b"", b"\xff\x00nonsense\n\n 1\n", index.read_bytes()[:-5]):
        index.write_bytes(content)
        monkeypatch.setattr(file_hashes, "_KNOWN", {})
        assert hash_files([tmp_path / "a"], tmp_path) == [before]
    assert len(reads) == 4
    index.unlink()
    index.mkdir()
    monkeypatch.setattr(file_hashes, "_KNOWN", {})
    assert hash_files([tmp_path / "a"], tmp_path) == [before]


def test_what_cannot_be_read_is_told_apart_and_does_not_wait(tmp_path: Path, reads: list[Path]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert hash_files([tmp_path / "gone", tmp_path])[:1] == [UNREADABLE]
    assert hash_files([tmp_path / "pipe"]) == [UNREADABLE]


def test_devices_and_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "device.png").symlink_to("/dev/zero")
    assert hash_files([tmp_path / "pipe.png", tmp_path / "device.png"]) == [UNREADABLE, UNREADABLE]
