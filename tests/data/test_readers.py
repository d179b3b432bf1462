"""CIFAR pickles, idx files and scikit-learn's digits."""

import gzip
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from unveil.data.readers import load_cifar_pickle, read_cifar10, read_cifar100, read_digits, read_idx, read_mnist
from unveil.errors import UnveilError

Array = NDArray[Any]


def rows(count: int) -> Array:
    return np.random.default_rng(count).integers(0, 256, (count, 3072), dtype=np.uint8)


def write_cifar10(folder: Path, *, protocol: int = 4, binary_keys: bool = False) -> Path:
    def dump(name: str, record: dict[str, Any]) -> None:
        keyed = {key.encode(): value for key, value in record.items()} if binary_keys else record
        (folder / name).write_bytes(pickle.dumps(keyed, protocol=protocol))

    folder.mkdir(exist_ok=True)
    for i in range(1, 6):
        dump(f"data_batch_{i}", {"data": rows(i), "labels": [i % 3] * i})
    dump("test_batch", {"data": rows(2), "labels": [0, 2]})
    names = ["cat", "dog", "frog"]
    dump("batches.meta", {"label_names": [n.encode() for n in names] if binary_keys else names})
    return folder


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("binary_keys", [False, True])
def test_cifar10_is_read_from_every_pickle_protocol_with_text_or_byte_keys(
    tmp_path: Path, protocol: int, binary_keys: bool
) -> None:
    data = read_cifar10(write_cifar10(tmp_path / "c", protocol=protocol, binary_keys=binary_keys))
    assert data.classes == ("cat", "dog", "frog")
    assert data.train.items.kind == "images"
    assert data.train.items.array.shape == (15, 32, 32, 3)
    assert data.train.labels.tolist() == [1, 2, 2, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    assert data.train.ids[-1] == "train/00014"
    assert data.test is not None
    assert data.test.ids == ("test/00000", "test/00001")


def test_a_cifar_row_is_three_planes_one_after_the_other(tmp_path: Path) -> None:
    data = read_cifar10(write_cifar10(tmp_path / "c"))
    row = rows(1)[0]
    pixel = data.train.items.array[0, 3, 7]
    assert pixel.tolist() == [row[plane * 1024 + 3 * 32 + 7] for plane in range(3)]


def test_pickles_of_numpy_before_version_2_are_read(tmp_path: Path) -> None:
    modern = pickle.dumps({"data": rows(1)}, protocol=2)
    old = modern.replace(b"numpy._core.", b"numpy.core.")
    assert b"numpy.core.multiarray" in old
    path = tmp_path / "batch"
    path.write_bytes(old)
    assert (load_cifar_pickle(path)["data"] == rows(1)).all()


def test_a_pickle_of_python_2_with_byte_strings_is_read(tmp_path: Path) -> None:
    # protocol 0 of Python 2: {'labels': [7], 'batch_label': 'a'}
    path = tmp_path / "batch"
    path.write_bytes(b"(dp0\nS'labels'\np1\n(lp2\nI7\nasS'batch_label'\np3\nS'a'\np4\ns.")
    assert load_cifar_pickle(path) == {"labels": [7], "batch_label": b"a"}


def test_cifar100_takes_the_fine_labels(tmp_path: Path) -> None:
    for name, labels in (("train", [1, 0]), ("test", [1])):
        record = {"data": rows(len(labels)), "fine_labels": labels, "coarse_labels": [0] * len(labels)}
        (tmp_path / name).write_bytes(pickle.dumps(record))
    meta = {"fine_label_names": ["apple", "bear"], "coarse_label_names": ["x"]}
    (tmp_path / "meta").write_bytes(pickle.dumps(meta))
    data = read_cifar100(tmp_path)
    assert data.classes == ("apple", "bear")
    assert data.train.labels.tolist() == [1, 0]


class Malice:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_is_refused_and_not_executed(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "executed"
    folder = write_cifar10(tmp_path / "c")
    (folder / "data_batch_3").write_bytes(pickle.dumps({"data": Malice(f"touch {mark}")}, protocol=protocol))
    with pytest.raises(UnveilError, match=r"refuses to load .*data_batch_3.*system"):
        read_cifar10(folder)
    assert not mark.exists()


@pytest.mark.parametrize(
    "source",
    [b"cbuiltins\neval\n(S'1'\ntR.", b"cnumpy\nload\n(S'x'\ntR.", b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93."],
)
def test_only_what_rebuilds_an_array_can_be_named(tmp_path: Path, source: bytes) -> None:
    (tmp_path / "batch").write_bytes(source)
    with pytest.raises(UnveilError, match="refuses to load"):
        load_cifar_pickle(tmp_path / "batch")


def test_the_codec_that_old_pickles_call_encodes_latin1_only(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(b"c_codecs\nencode\n(Vabc\nVrot13\ntR.")
    with pytest.raises(UnveilError, match="rot13"):
        load_cifar_pickle(tmp_path / "batch")


@pytest.mark.parametrize("keep", [0, 10, 1000])
def test_a_truncated_batch_names_the_file_and_says_download_again(tmp_path: Path, keep: int) -> None:
    folder = write_cifar10(tmp_path / "c")
    batch = folder / "data_batch_2"
    batch.write_bytes(batch.read_bytes()[:keep])
    with pytest.raises(UnveilError, match=r"data_batch_2 is damaged.*download"):
        read_cifar10(folder)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"data": rows(2), "labels": [0, 3]}, r"label 3 is outside 0\.\.2"),
        ({"data": rows(2), "labels": [0, -1]}, r"label -1 is outside"),
        ({"data": rows(2), "labels": [0]}, "2 images but 1 labels"),
        ({"data": rows(1), "labels": ["cat"]}, "not a list of integers"),
        ({"data": rows(2)[:, :3000], "labels": [0, 0]}, r"\(2, 3000\), expected uint8 \(n, 3072\)"),
        ({"data": rows(2).astype(float), "labels": [0, 0]}, "float64"),
        ({"data": [1, 2], "labels": [0, 0]}, "data is list"),
        ({"labels": [0]}, "has no 'data', only labels"),
        ([1], "holds a list"),
    ],
)
def test_a_batch_with_wrong_contents_is_an_error_that_names_it(tmp_path: Path, record: object, message: str) -> None:
    folder = write_cifar10(tmp_path / "c")
    (folder / "test_batch").write_bytes(pickle.dumps(record))
    with pytest.raises(UnveilError, match=rf"test_batch.*{message}"):
        read_cifar10(folder)


def test_a_missing_batch_is_named(tmp_path: Path) -> None:
    folder = write_cifar10(tmp_path / "c")
    (folder / "data_batch_5").unlink()
    with pytest.raises(UnveilError, match="data_batch_5 is missing"):
        read_cifar10(folder)


def idx(array: Array) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_mnist(folder: Path, *, zipped: bool, side: int = 28) -> Path:
    for stem, count in (("train", 3), ("t10k", 2)):
        images = np.full((count, side, side), count, dtype=np.uint8)
        for part, array in (("images-idx3", images), ("labels-idx1", np.arange(count, dtype=np.uint8))):
            name = f"{stem}-{part}-ubyte"
            if zipped:
                (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (folder / name).write_bytes(idx(array))
    return folder


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist_is_read_plain_and_compressed(tmp_path: Path, zipped: bool) -> None:
    data = read_mnist(write_mnist(tmp_path, zipped=zipped))
    assert data.train.items.array.shape == (3, 28, 28, 1)
    assert data.train.labels.tolist() == [0, 1, 2]
    assert data.train.labels.dtype == np.int64
    assert data.test is not None
    assert (data.test.items.array == 2).all()
    assert data.classes == tuple("0123456789")


def test_images_of_another_size_are_not_mnist(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"\(27, 27\), expected \(28, 28\)"):
        read_mnist(write_mnist(tmp_path, zipped=False, side=27))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing, expected 00000803"),
        (b"<html>not found</html>", "begins with 3c68746d"),
        (idx(np.zeros(5, dtype=np.uint8)), "begins with 00000801"),
        (idx(np.zeros((2, 3, 3), dtype=np.uint8))[:-1], "promises 18 bytes .* holds 17"),
        (idx(np.zeros((2, 3, 3), dtype=np.uint8)) + b"x", "promises 18 bytes .* holds 19"),
    ],
)
def test_an_idx_file_is_checked_against_its_header(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "images").write_bytes(content)
    with pytest.raises(UnveilError, match=f"{message}.*download"):
        read_idx(tmp_path / "images", dims=3)


def test_a_truncated_gz_names_the_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (9, 9, 9), dtype=np.uint8)
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(noise))[:-50])
    with pytest.raises(UnveilError, match=r"images\.gz cannot be read.*download"):
        read_idx(tmp_path / "images", dims=3)


def test_a_missing_idx_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="train-images-idx3-ubyte is missing"):
        read_mnist(tmp_path)


def test_digits_are_split_by_class_without_chance() -> None:
    data = read_digits()
    assert data.test is not None
    assert data.train.items.array.shape[1:] == (8, 8, 1)
    assert data.train.items.array.max() == 255
    assert set(data.train.ids) | set(data.test.ids) == {f"digits/{i:05d}" for i in range(1797)}
    assert not set(data.train.ids) & set(data.test.ids)
    for digit in range(10):
        held, rest = int((data.test.labels == digit).sum()), int((data.train.labels == digit).sum())
        assert held == (held + rest) // 5
