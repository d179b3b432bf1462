"""Folders of text files: `DIR/CLASS/*.txt` with labels, or `.txt` files anywhere below a folder."""

from pathlib import Path

import numpy as np

from unveil.data.dataset import Dataset, Split
from unveil.data.folders import EXTENSIONS, class_folders, files_of, holds
from unveil.data.items import Items
from unveil.errors import UnveilError

SUFFIX = ".txt"
MOST_BYTES = 1_000_000  # a longer file is no text to be read as one item


def holds_texts(folder: Path) -> bool:
    """Whether there are `.txt` files below a folder, and no images."""
    return holds(folder, (SUFFIX,), without=EXTENSIONS)


def read_texts(folder: Path) -> tuple[Items, tuple[str, ...]]:
    """The texts of all files below a folder, and their names."""
    files = files_of(folder, (SUFFIX,))
    return Items.of_texts([_content(file) for file in files]), tuple(f.relative_to(folder).as_posix() for f in files)


def read_text_folder(folder: Path) -> Dataset:
    """Each sub-folder is a class."""
    classes = tuple(class_folders(folder))
    if not classes:
        raise UnveilError(f"{folder} has no class folders; expected {folder}/CLASS/*.txt: make a folder for each class")
    texts: list[str] = []
    ids: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        items, names = read_texts(folder / name)
        if not names:
            raise UnveilError(f"{folder / name} holds no texts (.txt); add some or remove the folder")
        texts += items.texts
        ids += (f"{name}/{file}" for file in names)
        labels += [label] * len(names)
    train = Split(items=Items.of_texts(texts), labels=np.array(labels, dtype=np.int64), ids=tuple(ids))
    return Dataset(name=folder.resolve().name, classes=classes, train=train)


def _content(file: Path) -> str:
    if file.stat().st_size > MOST_BYTES:
        raise UnveilError(f"{file} has {file.stat().st_size:,} bytes: an item is a text of at most {MOST_BYTES:,}")
    try:
        return file.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise UnveilError(f"{file} is not UTF-8 text ({error}); save it as UTF-8") from error
