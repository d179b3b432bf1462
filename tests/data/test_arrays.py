"""People's own arrays: npz and npy."""

import contextlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from unveil.data.arrays import encode, read_array, read_unlabeled
from unveil.errors import UnveilError

Array = NDArray[Any]

VECTORS = np.arange(6, dtype=np.float64).reshape(3, 2)
LABELS = np.array(["b", "a", "b"])


def npz(folder: Path, **arrays: object) -> Path:
    path = folder / "own.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(("items", "labels"), [("X", "y"), ("features", "labels"), ("images", "y")])
def test_npz_is_read_under_each_of_its_key_names(tmp_path: Path, items: str, labels: str) -> None:
    data = read_array(npz(tmp_path, **{items: VECTORS, labels: LABELS}))
    assert (data.name, data.train.items.kind, data.classes) == ("own", "vectors", ("a", "b"))
    assert data.train.items.array.dtype == np.float32
    assert (data.train.items.array == VECTORS).all()
    assert data.train.labels.tolist() == [1, 0, 1]
    assert data.train.ids == ("train/00000", "train/00001", "train/00002")
    assert data.test is None


def test_npz_may_hold_a_test_split(tmp_path: Path) -> None:
    data = read_array(npz(tmp_path, X=VECTORS, y=LABELS, X_test=VECTORS[:1], y_test=LABELS[:1]))
    assert data.test is not None
    assert data.test.labels.tolist() == [1]
    assert data.test.ids == ("test/00000",)


@pytest.mark.parametrize(("shape", "expected"), [((3, 5, 4), (3, 5, 4, 1)), ((3, 5, 4, 3), (3, 5, 4, 3))])
def test_bytes_of_three_or_four_dimensions_are_images(
    tmp_path: Path, shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    data = read_array(npz(tmp_path, X=np.zeros(shape, dtype=np.uint8), y=LABELS))
    assert data.train.items.kind == "images"
    assert data.train.items.array.shape == expected


def with_value(value: float, dtype: type = np.float64) -> Array:
    array: Array = np.zeros((3, 2), dtype=dtype)
    array[1, 1] = value
    return array


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": with_value(np.nan), "y": LABELS}, r"row 1 .*column 1 is nan"),
        ({"X": with_value(-np.inf), "y": LABELS}, r"row 1 .*column 1 is -inf"),
        ({"X": with_value(1e300), "y": LABELS}, r"row 1 .*column 1 is 1e\+300.*float32"),
        ({"X": VECTORS[0], "y": LABELS}, r"shape \(2,\); expected vectors \(n, features\)"),
        ({"X": np.zeros((3, 4, 4, 3)), "y": LABELS}, r"save images as uint8"),
        ({"X": np.zeros((3, 4), dtype=np.uint8), "y": LABELS}, r"save vectors as float32"),
        ({"X": np.zeros((3, 3, 8, 8), dtype=np.uint8), "y": LABELS}, r"channels last"),
        ({"X": np.zeros((3, 8, 8, 4), dtype=np.uint8), "y": LABELS}, r"1 or 3 channels.*RGB"),
        ({"X": np.zeros((3, 4), dtype=np.int64), "y": LABELS}, r"int64 .*astype"),
        ({"X": VECTORS[:2], "y": LABELS}, r"2 items but 3 labels"),
        ({"X": VECTORS[:0], "y": LABELS[:0]}, r"\(0, 2\): it is empty"),
        ({"X": VECTORS[:, :0], "y": LABELS}, r"\(3, 0\): it is empty"),
        ({"X": np.array([{}, {}, {}]), "y": LABELS}, r"own\.npz cannot be read.*no Python objects"),
        ({"X": VECTORS, "y": np.array([{}, {}, {}])}, r"own\.npz cannot be read.*no Python objects"),
        ({"X": VECTORS, "y": np.array([0.5, 1, 2])}, r"y in .*float64.*integers or text"),
        ({"X": VECTORS, "y": LABELS[:, None]}, r"y in .*\(3, 1\).*expected labels \(n,\)"),
        ({"X": VECTORS, "y": np.array(["a", "", "b"])}, r"row 1 .*empty label"),
        ({"y": LABELS, "other": VECTORS}, r"no X or features or images; it holds y, other"),
        ({"X": VECTORS}, r"no y or labels; it holds X"),
        ({"X": VECTORS, "y": LABELS, "X_test": VECTORS}, r"no y_test"),
        ({"X": VECTORS, "y": LABELS, "y_test": LABELS}, r"no X_test"),
        ({"X": VECTORS, "y": LABELS, "X_test": np.zeros((1, 5)), "y_test": ["a"]}, r"test item is float32 \(5,\)"),
        ({"X": VECTORS, "y": LABELS, "X_test": VECTORS, "y_test": ["a", "c", "a"]}, r"row 1 .*label 'c'"),
    ],
)
def test_a_bad_npz_says_what_was_given_and_what_to_do(tmp_path: Path, arrays: dict[str, Array], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        read_array(npz(tmp_path, **arrays))


@pytest.mark.parametrize("name", ["own.npz", "own.npy"])
@pytest.mark.parametrize("content", [b"", b"not an array", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_array_is_an_error(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnveilError, match=f"{name} cannot be read"):
        read_array(tmp_path / name)


def test_an_array_under_the_wrong_suffix_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "own.npy", VECTORS)
    (tmp_path / "own.npy").rename(tmp_path / "own.npz")
    with pytest.raises(UnveilError, match="not a zip archive"):
        read_array(tmp_path / "own.npz")


def npy(folder: Path, array: Array, labels: str | None = "b\na\nb\n", beside: str = "own.labels.txt") -> Path:
    np.save(folder / "own.npy", array)
    if labels is not None:
        (folder / beside).write_text(labels, encoding="utf-8")
    return folder / "own.npy"


@pytest.mark.parametrize("beside", ["own.labels.txt", "own.txt"])
def test_npy_stays_on_disk_and_takes_labels_from_beside_it(tmp_path: Path, beside: str) -> None:
    data = read_array(npy(tmp_path, VECTORS.astype(np.float32), beside=beside))
    assert isinstance(data.train.items.array, np.memmap)
    assert (data.train.items.array == VECTORS).all()
    assert data.classes == ("a", "b")
    assert data.train.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("array", "labels", "message"),
    [
        (VECTORS, None, r"has no labels: expected .*own\.labels\.txt or own\.txt"),
        (VECTORS, "a\nb\n", "3 items but 2 labels"),
        (VECTORS, "a\n\nb\n", "row 1 .*empty label"),
        (VECTORS[:0], "", "it is empty"),
        (np.array([{}, {}, {}]), "a\na\na", "cannot be read.*Python objects"),
        (with_value(np.nan, np.float32), "a\na\na", "row 1 .*nan"),
    ],
)
def test_a_bad_npy_says_what_is_wrong(tmp_path: Path, array: Array, labels: str | None, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        read_array(npy(tmp_path, array, labels))


def test_a_truncated_npy_is_an_error(tmp_path: Path) -> None:
    path = npy(tmp_path, VECTORS)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UnveilError, match=r"own\.npy cannot be read"):
        read_array(path)


def test_labels_that_are_not_utf8_are_an_error(tmp_path: Path) -> None:
    path = npy(tmp_path, VECTORS)
    (tmp_path / "own.labels.txt").write_bytes(b"\xff\xfea\n")
    with pytest.raises(UnveilError, match="not UTF-8"):
        read_array(path)


def test_every_chunk_of_a_large_array_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.data.arrays._CHUNK", 4)
    array = np.zeros((50, 2), dtype=np.float32)
    array[37, 0] = np.inf
    with pytest.raises(UnveilError, match=r"row 37 .*column 0 is inf"):
        read_array(npy(tmp_path, array, "a\n" * 50))


def test_a_file_of_another_kind_lists_the_kinds_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "own.pkl").write_bytes(b"")
    with pytest.raises(UnveilError, match=r"\.pkl file; expected one of \.npz, \.npy, \.csv, \.tsv, \.jsonl"):
        read_array(tmp_path / "own.pkl")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"no file .*gone\.npz"):
        read_array(tmp_path / "gone.npz")


@given(st.lists(st.integers(-1000, 1000), min_size=1))
def test_integer_labels_are_sorted_by_number(values: list[int]) -> None:
    classes, labels = encode([str(value) for value in values], "here")
    assert [int(name) for name in classes] == sorted(set(values))
    assert [int(classes[i]) for i in labels] == values


@given(st.lists(st.text(min_size=1), min_size=1))
def test_every_label_points_at_its_own_class(texts: list[str]) -> None:
    classes, labels = encode(texts, "here")
    assert [classes[i] for i in labels] == texts
    assert len(set(classes)) == len(classes)


def fuzzed(content: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Copies with flipped bits, foreign bytes, and pieces that are missing or doubled, mostly near the beginning."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        copy = bytearray(content)
        for _ in range(int(draw.integers(1, 5))):
            place = int(len(copy) * draw.random() ** 2)
            match int(draw.integers(4)):
                case 0 if place < len(copy):
                    copy[place] ^= 1 << int(draw.integers(8))
                case 1 if place < len(copy):
                    copy[place] = b"()[]{}'\\\n\x00\xff9,:OLV"[int(draw.integers(17))]
                case 2:
                    del copy[place : place + int(draw.integers(1, 12))]
                case _:
                    copy[place:place] = copy[place : place + int(draw.integers(1, 12))]
        yield bytes(copy)


@pytest.mark.parametrize("kind", ["npy", "npz", "compressed"])
def test_damaged_files_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"own.{'npz' if kind == 'compressed' else kind}"
    if kind == "npy":
        npy(tmp_path, VECTORS)
    else:
        (np.savez if kind == "npz" else np.savez_compressed)(path, X=VECTORS, y=LABELS)
    for number, content in enumerate(fuzzed(path.read_bytes(), 0, 400)):
        path.write_bytes(content)
        with contextlib.suppress(UnveilError):
            (read_array if number % 2 else read_unlabeled)(path)


def test_an_archive_that_needs_more_than_all_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = npz(tmp_path, X=np.zeros((1000, 1000), dtype=np.float32), y=np.zeros(1000, dtype=int))
    real = os.sysconf
    monkeypatch.setattr("os.sysconf", lambda name: 100 if name == "SC_PHYS_PAGES" else real(name))
    with pytest.raises(UnveilError, match=r"holds arrays of .* save them as \.npy"):
        read_array(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_read(tmp_path: Path, compression: int) -> None:
    np.savez(tmp_path / "a.npz", X=VECTORS, y=LABELS)
    with zipfile.ZipFile(tmp_path / "a.npz") as old, zipfile.ZipFile(tmp_path / "b.npz", "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert (read_array(tmp_path / "b.npz").train.items.array == VECTORS).all()


def test_an_encrypted_archive_and_another_version_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=VECTORS, y=LABELS)
    whole = (tmp_path / "a.npz").read_bytes()
    for place, value in ((6, 1), (4, 99), (8, 77)):  # flags, version needed, compression: in both headers
        content = bytearray(whole)
        for start in (whole.index(b"PK\x03\x04"), whole.index(b"PK\x01\x02") + 2):
            content[start + place] = value
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(UnveilError, match=r"a\.npz"):
            read_array(tmp_path / "a.npz")


@pytest.mark.parametrize("value", [1e300, -1e38, 1e16])
def test_values_that_cannot_be_squared_are_named(tmp_path: Path, value: float) -> None:
    array = np.zeros((3, 2))
    array[2, 1] = value
    np.save(tmp_path / "new.npy", array)
    with pytest.raises(UnveilError, match=r"row 2 .*column 1 is"):
        read_unlabeled(tmp_path / "new.npy")


def test_labels_that_are_no_text_are_refused(tmp_path: Path) -> None:
    lone, none = np.array(["a", "b", "\ud800"]), np.array(["a", "b", "c"])
    none.view(np.uint32)[-1] = 0x7FFFFFFF  # beyond the last character
    for labels in (lone, none):
        with pytest.raises(UnveilError, match=r"own\.npz"):
            read_array(npz(tmp_path, X=VECTORS, y=labels))
