"""Files that are read back are what was written, to the last bit, or an error names them."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from conftest import overwrite
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as serialize

from unveil import checksums, files
from unveil.errors import DamagedError, UnveilError


def flipped(path: Path, bit: int) -> bytes:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    return bytes(content)


@pytest.mark.parametrize("mapped", [False, True])
def test_an_array_comes_back_and_damage_is_found(tmp_path: Path, mapped: bool) -> None:
    path, array = tmp_path / "a.npy", np.arange(12.0).reshape(3, 4)
    checksums.save_array(path, array)
    np.testing.assert_array_equal(checksums.load_array(path, "", mapped=mapped), array)
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        overwrite(path, flipped(path, bit))
        with pytest.raises(DamagedError, match=r"a\.npy is damaged .*: copy it"):
            checksums.load_array(path, "copy it", mapped=mapped)
        overwrite(path, whole)
    for length in range(len(whole)):
        overwrite(path, whole[:length])
        with pytest.raises(DamagedError, match=r"a\.npy"):
            checksums.load_array(path, "copy it", mapped=mapped)
    path.unlink()
    with pytest.raises(DamagedError, match="cannot be read"):
        checksums.load_array(path, "copy it", mapped=mapped)


def test_an_array_without_a_checksum_is_read_if_it_is_one(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    assert checksums.load_array(tmp_path / "a.npy", "").tolist() == [0, 1, 2]
    whole = (tmp_path / "a.npy").read_bytes()
    for content in (b"", whole[:9], whole[:100], b"PK\x03\x04", whole[:20] + b"((((" + whole[24:]):
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(DamagedError, match=r"a\.npy cannot be read"):
            checksums.load_array(tmp_path / "a.npy", "")
    (tmp_path / "a.npy").write_bytes(whole)
    (tmp_path / "a.npy.sum").write_bytes(b"\xff\xfe")
    with pytest.raises(DamagedError, match="is damaged"):
        checksums.load_array(tmp_path / "a.npy", "")


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reads = tmp_path / "file", []
    path.write_bytes(b"content")
    real = checksums.of_file

    def counted(path: Path) -> str:
        reads.append(path)
        return real(path)

    monkeypatch.setattr(checksums, "of_file", counted)
    expected = real(path)
    for _ in range(3):
        checksums.verify(path, expected, "")
    assert len(reads) == 1
    path.write_bytes(b"contend")
    with pytest.raises(DamagedError):
        checksums.verify(path, expected, "")


def test_a_sealed_file_shows_every_flipped_bit(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"x": np.arange(3, dtype=np.float32)}
    path.write_bytes(checksums.sealed(serialize(tensors, metadata={"note": "n", **checksums.METADATA})))
    checksums.check_sealed(path)
    assert load_file(path)["x"].tolist() == [0, 1, 2]
    whole = path.read_bytes()
    key = whole.index(b'"checksum"')
    silent = set()
    for bit in range(8 * len(whole)):
        overwrite(path, flipped(path, bit))
        with contextlib.suppress(ValueError, SafetensorError):
            checksums.check_sealed(path)
            load_file(path)
            silent.add(bit // 8)
        overwrite(path, whole)
    assert silent <= set(range(key, key + len(b'"checksum"')))  # then it looks like a file without one
    for length in range(len(whole)):
        overwrite(path, whole[:length])
        with pytest.raises((ValueError, SafetensorError)):  # noqa: PT012
            checksums.check_sealed(path)
            load_file(path)


def test_a_sealed_file_of_an_older_version_has_no_checksum(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(serialize({"x": np.zeros(2, dtype=np.float32)}))
    checksums.check_sealed(tmp_path / "a")


def test_a_table_knows_its_values(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    table = {"a": [1, 2.5, None, "ä"], "b": {"nested": True}}
    files.write_json(path, checksums.with_checksum(table))
    read = files.read_json(path)
    checksums.check_table(read, path, "")
    assert checksums.with_checksum(read) == read
    checksums.check_table(table, path, "")  # written by an older version
    for change in ({"a": [1, 2.5, None, "a"]}, {"c": 1}, {"checksum": "0"}):
        with pytest.raises(DamagedError, match="its content has changed"):
            checksums.check_table(read | change, path, "")
    with pytest.raises(DamagedError, match="no table"):
        checksums.check_table([1], path, "")


def test_what_is_set_aside_never_replaces_what_was(tmp_path: Path) -> None:
    names = []
    for number in range(3):
        (tmp_path / "a").write_text(str(number))
        names.append(checksums.set_aside(tmp_path / "a").name)
    assert names == ["a.damaged", "a.damaged-2", "a.damaged-3"]
    assert (tmp_path / "a.damaged").read_text() == "0"
    assert not (tmp_path / "a").exists()


def test_an_array_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    checksums.save_array(path, np.arange(3))
    with pytest.raises((UnveilError, ValueError)):
        checksums.save_array(path, np.array([{}], dtype=object))
    assert checksums.load_array(path, "").tolist() == [0, 1, 2]
