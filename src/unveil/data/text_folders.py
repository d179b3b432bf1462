"""Folders of text files: `DIR/CLASS/*.txt` with labels, or `.txt` files anywhere below a folder."""

import os
from pathlib import Path

import numpy as np

from unveil.data.dataset import Dataset, Split
from unveil.data.folders import EXTENSIONS, class_folders
from unveil.data.items import Items
from unveil.errors import UnveilError
from unveil.files import is_text

SUFFIX = ".txt"
MOST_BYTES = 1_000_000  # a longer file is no text to be read as one item


def holds_texts(folder: Path) -> bool:
    """Whether there are `.txt` files below a folder, and no images."""
    found = False
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        suffixes = {Path(name).suffix.lower() for name in names if not name.startswith(".")}
        if suffixes & EXTENSIONS:
            return False
        found = found or SUFFIX in suffixes
    return found


def text_files(folder: Path) -> list[Path]:
    """The `.txt` files anywhere below a folder, in an order that does not depend on the file system."""
    files = [path for path in folder.rglob("*") if path.suffix.lower() == SUFFIX and path.is_file()]
    files = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if (bad := next((path for path in files if not is_text(str(path.relative_to(folder)))), None)) is not None:
        raise UnveilError(f"the name {str(bad)!r} is not UTF-8, and cannot be written to a table: rename it")
    return sorted(files, key=lambda path: path.relative_to(folder).parts)


def read_texts(folder: Path) -> tuple[Items, tuple[str, ...]]:
    """The texts of all files below a folder, and their names."""
    files = text_files(folder)
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
