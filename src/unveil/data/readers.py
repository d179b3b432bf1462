"""Read the small benchmark data sets (CIFAR, MNIST, Fashion-MNIST, digits) in their published formats."""

import gzip
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data import array_pickle
from unveil.data.dataset import Dataset, Split
from unveil.data.items import Images, Items
from unveil.errors import UnveilError

DOWNLOAD_AGAIN = "delete it and download the data set again (`unveil data get NAME`)"


def item_ids(prefix: str, count: int) -> tuple[str, ...]:
    """`train/00000`, `train/00001`, …"""
    return tuple(f"{prefix}/{i:05d}" for i in range(count))


def read_cifar10(folder: Path) -> Dataset:
    """`cifar-10-batches-py/{data_batch_1..5,test_batch,batches.meta}`."""
    batches = [folder / f"data_batch_{i}" for i in range(1, 6)]
    return _read_cifar("cifar10", folder / "batches.meta", "label", batches, folder / "test_batch")


def read_cifar100(folder: Path) -> Dataset:
    """`cifar-100-python/{train,test,meta}`, with the 100 fine labels."""
    return _read_cifar("cifar100", folder / "meta", "fine_label", [folder / "train"], folder / "test")


def read_mnist(folder: Path) -> Dataset:
    """`MNIST/raw/*-ubyte`, compressed or not."""
    return _read_idx_pairs(folder, "mnist", tuple("0123456789"))


def read_fashion_mnist(folder: Path) -> Dataset:
    """`FashionMNIST/raw/*-ubyte`, compressed or not."""
    names = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
    return _read_idx_pairs(folder, "fashion-mnist", tuple(names.split(",")))


def read_digits() -> Dataset:
    """The 1,797 digits that come with scikit-learn; every fifth image of a class is a test image."""
    from sklearn.datasets import load_digits  # slow to import, and only needed here

    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[..., None]
    labels = bunch.target.astype(np.int64)
    ids = item_ids("digits", len(labels))
    held_out = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        held_out[np.flatnonzero(labels == digit)[4::5]] = True

    def split(chosen: NDArray[np.bool_]) -> Split:
        rows = np.flatnonzero(chosen)
        return Split(items=Items.of(images[rows]), labels=labels[rows], ids=tuple(ids[i] for i in rows))

    return Dataset(name="digits", classes=tuple("0123456789"), train=split(~held_out), test=split(held_out))


def read_idx(path: Path, dims: int) -> NDArray[np.uint8]:
    """One idx file of unsigned bytes with `dims` dimensions; `path` or `path` + `.gz`."""
    zipped = path.with_name(path.name + ".gz")
    if not path.exists() and not zipped.exists():
        raise UnveilError(f"{path} is missing (and so is {zipped.name}); get the data with `unveil data get NAME`")
    file = path if path.exists() else zipped
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise UnveilError(f"{file} cannot be read ({error}); {DOWNLOAD_AGAIN}") from error
    header = 4 + 4 * dims
    magic = bytes((0, 0, 8, dims))  # 8 stands for unsigned bytes
    if len(content) < header or content[:4] != magic:
        raise UnveilError(
            f"{file} is not an idx file of {dims}-dimensional bytes: it begins with {content[:4].hex() or 'nothing'}, "
            f"expected {magic.hex()}; {DOWNLOAD_AGAIN}"
        )
    shape = struct.unpack(f">{dims}I", content[4:header])
    if len(content) - header != math.prod(shape):
        raise UnveilError(
            f"{file} is damaged: its header promises {math.prod(shape)} bytes {shape}, "
            f"it holds {len(content) - header}; {DOWNLOAD_AGAIN}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy()


def _read_idx_pairs(folder: Path, name: str, classes: tuple[str, ...]) -> Dataset:
    def split(stem: str, prefix: str) -> Split:
        images = read_idx(folder / f"{stem}-images-idx3-ubyte", dims=3)
        labels = read_idx(folder / f"{stem}-labels-idx1-ubyte", dims=1)
        if images.shape[1:] != (28, 28):
            raise UnveilError(f"{folder}: the {prefix} images are {images.shape[1:]}, expected (28, 28)")
        checked = _checked_labels(labels.tolist(), len(images), len(classes), f"{folder} ({prefix})")
        return Split(items=Items.of(images[..., None]), labels=checked, ids=item_ids(prefix, len(images)))

    return Dataset(name=name, classes=classes, train=split("train", "train"), test=split("t10k", "test"))


def load_cifar_pickle(path: Path) -> Mapping[str, Any]:
    """The dictionary in a CIFAR batch, with text keys; nothing in the file is executed."""
    try:
        record = array_pickle.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise UnveilError(f"{path} is missing; get the data with `unveil data get NAME`") from error
    except array_pickle.ForbiddenError as error:
        raise UnveilError(
            f"unveil refuses to load {path}: it asks for {error}, which is no part of a numpy array. "
            "The published CIFAR files do not; do not trust this one"
        ) from None
    except (OSError, ValueError) as error:
        raise UnveilError(f"{path} is damaged ({error}); {DOWNLOAD_AGAIN}") from error
    if not isinstance(record, dict):
        raise UnveilError(f"{path} holds a {type(record).__name__}, expected a CIFAR dictionary; {DOWNLOAD_AGAIN}")
    return {_text(key): value for key, value in record.items()}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _field(record: Mapping[str, Any], key: str, path: Path) -> Any:
    if key not in record:
        raise UnveilError(f"{path} has no {key!r}, only {', '.join(sorted(record)) or 'nothing'}; {DOWNLOAD_AGAIN}")
    return record[key]


def _read_cifar(name: str, meta: Path, kind: str, train: list[Path], test: Path) -> Dataset:
    """`kind` of the labels: `label` or `fine_label`."""
    names = _field(load_cifar_pickle(meta), f"{kind}_names", meta)
    if not isinstance(names, list) or not names:
        raise UnveilError(f"{meta}: {kind}_names is not a list of class names; {DOWNLOAD_AGAIN}")
    return Dataset(
        name=name,
        classes=tuple(_text(one) for one in names),
        train=_cifar_split(train, f"{kind}s", len(names), "train"),
        test=_cifar_split([test], f"{kind}s", len(names), "test"),
    )


def _cifar_split(paths: list[Path], key: str, classes: int, prefix: str) -> Split:
    images: list[Images] = []
    labels: list[NDArray[np.int64]] = []
    for path in paths:
        record = load_cifar_pickle(path)
        rows = _field(record, "data", path)
        if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != 3072:
            given = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
            raise UnveilError(f"{path}: data is {given}, expected uint8 (n, 3072); {DOWNLOAD_AGAIN}")
        # a row is the red plane, then the green, then the blue
        images.append(np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)))
        labels.append(_checked_labels(_field(record, key, path), len(rows), classes, str(path)))
    items = np.concatenate(images)
    return Split(items=Items.of(items), labels=np.concatenate(labels), ids=item_ids(prefix, len(items)))


def _checked_labels(labels: object, count: int, classes: int, where: str) -> NDArray[np.int64]:
    if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
        raise UnveilError(f"{where}: the labels are not a list of integers; {DOWNLOAD_AGAIN}")
    if len(labels) != count or count == 0:
        raise UnveilError(f"{where}: {count} images but {len(labels)} labels; {DOWNLOAD_AGAIN}")
    wrong = next((label for label in labels if not 0 <= label < classes), None)
    if wrong is not None:
        raise UnveilError(f"{where}: label {wrong} is outside 0..{classes - 1}; {DOWNLOAD_AGAIN}")
    return np.array(labels, dtype=np.int64)
