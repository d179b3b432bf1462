"""Read user arrays of vectors or images: `.npz`, and `.npy` with a labels file."""

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data import table_files
from unveil.data.dataset import Dataset, Split
from unveil.data.items import Images, Items, Vectors
from unveil.data.readers import item_ids
from unveil.errors import UnveilError
from unveil.files import is_text
from unveil.numerics import loses_in_float32

SUFFIXES = (".npz", ".npy")
_ITEM_KEYS = ("X", "features", "images")
_LABEL_KEYS = ("y", "labels")
_TEST_KEYS = ("X_test", "y_test")
LARGEST = 1e15  # largest absolute value of a vector: sums of squares of larger ones do not fit float32
_CHUNK = 1 << 24  # numbers checked at a time, so that a memory-mapped file is not loaded as a whole


def read_array(path: Path, name: str | None = None) -> Dataset:
    """The data set in a `.npz` or `.npy` file."""
    if not path.is_file():
        raise UnveilError(f"there is no file {path}")
    readers = {".npz": _read_npz, ".npy": _read_npy}
    if (reader := readers.get(path.suffix.lower())) is None:
        raise _unknown_kind(path)
    return reader(path, name or path.stem)


def _unknown_kind(path: Path) -> UnveilError:
    every = (*SUFFIXES, *table_files.SUFFIXES)
    return UnveilError(f"{path} is a {path.suffix or 'suffixless'} file; expected one of {', '.join(every)}")


def read_unlabeled(path: Path) -> Items:
    """Items of a `.npz` or `.npy` file. Labels in the file are ignored."""
    kind = path.suffix.lower()
    if kind == ".npz":
        arrays, held = _npz_arrays(path, _ITEM_KEYS)
        key = next((key for key in _ITEM_KEYS if key in arrays), None)
        if key is None:
            raise UnveilError(f"{path} has no {' or '.join(_ITEM_KEYS)}; it holds {held}")
        return Items.of(checked_items(arrays[key], f"{key} in {path}"))
    if kind == ".npy":
        return Items.of(checked_items(_npy_array(path), str(path)))
    raise _unknown_kind(path)


def checked_items(array: NDArray[Any], where: str) -> Images | Vectors:
    """`array` as images or vectors, or an error that says why it is neither."""
    description = f"{where} is a {array.dtype} array of shape {array.shape}"
    if array.size == 0:
        raise UnveilError(f"{description}: it is empty; expected at least one row")
    if array.dtype == np.uint8:
        return _checked_images(array, description)
    if array.dtype.kind != "f":
        raise UnveilError(
            f"{description}; expected uint8 images (n, height, width[, channels]) or float vectors (n, features): "
            "convert vectors with .astype('float32')"
        )
    if array.ndim != 2:
        raise UnveilError(f"{description}; expected vectors (n, features): reshape them, or save images as uint8")
    with np.errstate(over="ignore", invalid="ignore"):  # values that overflow float32 become inf, and are told below
        vectors: Vectors = array if loses_in_float32(array) else array.astype(np.float32, copy=False)
    step = max(1, _CHUNK // vectors.shape[1])
    for start in range(0, len(vectors), step):
        small = np.abs(vectors[start : start + step]) <= LARGEST  # false for NaN too
        if not small.all():
            row = start + int(np.argmin(small.all(axis=1)))
            column = int(np.argmin(small[row - start]))
            raise UnveilError(
                f"{where}: row {row} (counted from 0) is not finite, or too large to compute with: column {column} is "
                f"{array[row, column]}; expected float32 numbers up to {LARGEST:g}: remove or repair such rows"
            )
    return vectors


def encode(labels: Sequence[str], where: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The sorted classes (by number if all are integers) and the class index of each label."""
    empty = next((i for i, label in enumerate(labels) if not label), None)
    if empty is not None:
        raise UnveilError(
            f"{where}: row {empty} (counted from 0) has an empty label; every item needs one. "
            "(In one file without NEW, rows with an empty label are the new ones)"
        )
    if (bad := next((name for name in set(labels) if not is_text(name)), None)) is not None:  # half of a UTF-16 pair
        raise UnveilError(f"{where}: the name {bad!r} is not valid text; rename it")
    classes = sorted(set(labels))
    if all(re.fullmatch("-?[0-9]{1,99}", label) for label in classes):
        classes.sort(key=int)
    return tuple(classes), _indices(labels, classes, where)


def _indices(labels: Sequence[str], classes: Sequence[str], where: str) -> NDArray[np.int64]:
    index = {label: i for i, label in enumerate(classes)}
    unknown = next((i for i, label in enumerate(labels) if label not in index), None)
    if unknown is not None:
        raise UnveilError(
            f"{where}: row {unknown} (counted from 0) has label {labels[unknown]!r}, which no training item has; "
            "add such items to the training rows, or take these out"
        )
    return np.array([index[label] for label in labels], dtype=np.int64)


def _checked_images(array: NDArray[Any], description: str) -> Images:
    images = array[..., None] if array.ndim == 3 else array
    if images.ndim != 4:
        expected = "expected images (n, height, width[, channels])"
        raise UnveilError(f"{description}; {expected}: reshape them, or save vectors as float32")
    if images.shape[3] not in (1, 3):
        first = images.shape[1] in (1, 3)
        hint = "move the channels last: .transpose(0, 2, 3, 1)" if first else "convert to RGB or gray"
        raise UnveilError(f"{description}; expected 1 or 3 channels in the last dimension: {hint}")
    return images


def _same_length(items: Images | Vectors, labels: Sequence[str], where: str) -> None:
    if len(items) != len(labels):
        raise UnveilError(f"{where}: {len(items)} items but {len(labels)} labels; expected one label for each item")


def _label_texts(labels: NDArray[Any], where: str) -> list[str]:
    if labels.ndim != 1 or labels.dtype.kind not in "iuUS":
        raise UnveilError(
            f"{where} is a {labels.dtype} array of shape {labels.shape}; expected labels (n,) that are integers or text"
        )
    if labels.dtype.kind == "S":
        return [text.decode("utf-8", "replace") for text in labels.tolist()]
    with _numpy_errors(Path(where)):  # numbers that are no characters
        return [str(label) for label in labels.tolist()]


def _npy_array(path: Path) -> NDArray[Any]:
    """The array in a `.npy` file, memory-mapped."""
    with _numpy_errors(path):
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            form = np.lib.format
            read_header = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
            shape, _, dtype = read_header(file)
        if 0 in shape:  # cannot be memory-mapped
            return np.empty(shape, dtype)
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array


def _npz_arrays(path: Path, wanted: Sequence[str]) -> tuple[dict[str, NDArray[Any]], str]:
    """The wanted arrays of a `.npz` file, where it has them, and the names of all; others may hold anything."""
    with _numpy_errors(path):
        if not zipfile.is_zipfile(path):  # numpy would take it for another kind of file
            raise ValueError("it is not a zip archive")
        _check_memory(path, wanted)
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files if key in wanted}
            return arrays, ", ".join(map(repr, file.files[:10])).replace("'", "") or "nothing"


def _check_memory(path: Path, wanted: Sequence[str]) -> None:
    """Raise an error where the arrays of an archive do not fit into the memory of this machine: a few bytes can become
    very many."""
    with zipfile.ZipFile(path) as archive:
        size = sum(info.file_size for info in archive.infolist() if info.filename.removesuffix(".npy") in wanted)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise UnveilError(
            f"{path} holds arrays of {size / 1e9:.0f} GB, and this machine has {memory / 1e9:.0f} GB of memory: "
            "save them as .npy, which is not read as a whole"
        )


@contextmanager
def _numpy_errors(path: Path) -> Iterator[None]:
    """Turn errors of numpy into UnveilError: damaged files, and object arrays, which would have to be unpickled.

    A damaged header or archive can raise nearly anything: a file is either read or refused by name.
    """
    try:
        yield
    except UnveilError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UnveilError(
            f"{path} cannot be read ({reason}); expected plain numeric or text arrays saved by numpy, "
            "with no Python objects in them: convert with .astype() and save again"
        ) from error


def _read_npz(path: Path, name: str) -> Dataset:
    arrays, keys = _npz_arrays(path, _ITEM_KEYS + _LABEL_KEYS + _TEST_KEYS)

    def pick(names: tuple[str, ...]) -> str:
        if (key := next((key for key in names if key in arrays), None)) is None:
            raise UnveilError(f"{path} has no {' or '.join(names)}; it holds {keys}")
        return key

    def read_split(items_key: str, labels_key: str) -> tuple[Images | Vectors, list[str]]:
        items = checked_items(arrays[items_key], f"{items_key} in {path}")
        labels = _label_texts(arrays[labels_key], f"{labels_key} in {path}")
        _same_length(items, labels, f"{items_key} and {labels_key} in {path}")
        return items, labels

    items, texts = read_split(pick(_ITEM_KEYS), pick(_LABEL_KEYS))
    classes, labels = encode(texts, str(path))
    test = None
    if any(key in arrays for key in _TEST_KEYS):
        test_items, test_texts = read_split(pick(("X_test",)), pick(("y_test",)))
        if test_items.shape[1:] != items.shape[1:] or test_items.dtype != items.dtype:
            raise UnveilError(
                f"{path}: a test item is {test_items.dtype} {test_items.shape[1:]}, "
                f"a training item {items.dtype} {items.shape[1:]}; expected the same"
            )
        test_labels = _indices(test_texts, classes, f"y_test in {path}")
        test = Split(items=Items.of(test_items), labels=test_labels, ids=item_ids("test", len(test_items)))
    train = Split(items=Items.of(items), labels=labels, ids=item_ids("train", len(items)))
    return Dataset(name=name, classes=classes, train=train, test=test)


def _read_npy(path: Path, name: str) -> Dataset:
    items = checked_items(_npy_array(path), str(path))
    candidates = (path.with_suffix(".labels.txt"), path.with_suffix(".txt"))
    if (file_of_labels := next((file for file in candidates if file.is_file()), None)) is None:
        raise UnveilError(f"{path} has no labels: expected {candidates[0]} or {candidates[1].name}, one label per line")
    try:
        texts = [line.strip() for line in file_of_labels.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise UnveilError(f"{file_of_labels} is not UTF-8 text ({error}); save it as UTF-8") from error
    _same_length(items, texts, f"{path} and {file_of_labels.name}")
    classes, labels = encode(texts, str(file_of_labels))
    split = Split(items=Items.of(items), labels=labels, ids=item_ids("train", len(items)))
    return Dataset(name=name, classes=classes, train=split)
