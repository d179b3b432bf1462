"""Find, fetch, check and load data sets: those of the catalog by name, user data by path."""

import difflib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unveil.data import table_files
from unveil.data.arrays import SUFFIXES, read_array
from unveil.data.dataset import Dataset
from unveil.data.download import Progress, download, extract
from unveil.data.entries import CATALOG, Entry, exists_or_gz
from unveil.data.folders import read_folder, read_omniglot
from unveil.data.pictures import open_image
from unveil.data.sheets import Columns, read_labeled
from unveil.errors import UnveilError

__all__ = ["CATALOG", "Entry", "Status", "check", "data_root", "get", "load", "status"]


class Status(NamedTuple):
    """One line of `unveil data list`. `path` is None for a data set that comes with an installed package."""

    entry: Entry
    present: bool
    path: Path | None


def data_root(root: Path | None = None) -> Path:
    """The argument, else $UNVEIL_DATA, else ~/.cache/unveil/data."""
    return Path(root or os.environ.get("UNVEIL_DATA") or "~/.cache/unveil/data").expanduser()


def load(name_or_path: str | Path, root: Path | None = None) -> Dataset:
    """Load a data set: a name of the catalog, `omniglot:ALPHABET`, or the path of a folder of images or an array file.

    A name of the catalog takes precedence over a path: write `./mnist` for a folder of that name.
    """
    if isinstance(name_or_path, str) and _is_name(name_or_path):
        entry, alphabet = _entry(name_or_path)
        path = _find(entry, data_root(root))
        return entry.read(path) if alphabet is None else read_omniglot(path, alphabet)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return read_folder(path)
    if not path.exists():
        raise UnveilError(f"there is no file or folder {path}, and no data set of that name ({', '.join(CATALOG)})")
    if not table_files.is_table(path):
        return read_array(path)
    data = read_labeled(path, Columns())
    if not data.train.items.are_vectors:
        raise UnveilError(f"{path} holds more than numbers: `unveil discover` reads such a table")
    return data


def status(root: Path | None = None) -> list[Status]:
    """Every data set of the catalog, whether it is present, and where it is or would be stored."""
    base = data_root(root)
    lines: list[Status] = []
    for entry in CATALOG.values():
        path = entry.find(base)
        expected = base / entry.locations[-1].path if entry.locations else None
        lines.append(Status(entry, path is not None or not entry.locations, path or expected))
    return lines


def check(name: str | Path, root: Path | None = None) -> str:
    """Read a data set completely, including every image, and describe it."""
    data = load(name, root)
    lines = [f"{data.name}: {len(data.classes):,} classes, {_shape(data)}"]
    for title, split in (("train", data.train), ("test", data.test)):
        if split is not None:
            counts = np.bincount(split.labels, minlength=len(data.classes))
            low, high = int(counts.min()), int(counts.max())
            each = f"{low:,} in every class" if low == high else f"{low:,} to {high:,} in a class"
            lines.append(f"{title}: {len(split):,} items, {each}")
    return "\n".join(lines)


def get(name: str, root: Path | None = None, *, progress: Progress | None = None) -> Path | None:
    """Download a data set to where `load` finds it. Returns its path, or None if it comes with a package."""
    entry, _ = _entry(name)
    base = data_root(root)
    if not entry.locations or (path := entry.find(base)):
        return path if entry.locations else None
    if not entry.remotes:
        raise UnveilError(f"{entry.name} cannot be downloaded: {_by_hand(entry, base)}")
    for remote in entry.remotes:
        target = base / remote.into / remote.file
        if remote.unpack:
            download(remote.url, target, checksum=remote.checksum, progress=progress)
            extract(target, base / remote.into)
            target.unlink()
        elif not exists_or_gz(target.with_suffix("")):
            download(remote.url, target, checksum=remote.checksum, progress=progress)
    return _find(entry, base)


def _is_name(text: str) -> bool:
    is_path = any(mark in text for mark in "/\\~") or text.lower().endswith((*SUFFIXES, *table_files.SUFFIXES))
    is_path = is_path or text in (".", "..") or Path(text).exists()
    return text in CATALOG or text.startswith("omniglot:") or not is_path


def _entry(name: str) -> tuple[Entry, str | None]:
    base, colon, alphabet = name.partition(":")
    if base in CATALOG and (not colon or (base == "omniglot" and alphabet)):
        return CATALOG[base], alphabet or None
    matches = difflib.get_close_matches(base.lower(), CATALOG, n=1)
    others = f"there are {', '.join(CATALOG)}; or give the path of your own data"
    raise UnveilError(f"there is no data set {name!r}; {f'did you mean {matches[0]}?' if matches else others}")


def _by_hand(entry: Entry, root: Path) -> str:
    return entry.by_hand.format(path=root / entry.locations[-1].path)


def _find(entry: Entry, root: Path) -> Path:
    if not entry.locations:
        return root
    if path := entry.find(root):
        return path
    missing = " and ".join(str(location.missing(root)) for location in entry.locations)
    remedy = f"run `unveil data get {entry.name}`" if entry.remotes else _by_hand(entry, root)
    raise UnveilError(f"{entry.name} was not found: looked for {missing}; {remedy}, or give its directory: --root DIR")


def _shape(data: Dataset) -> str:
    items = data.train.items
    if items.are_files:
        sides = _image_sides((*items.paths, *(() if data.test is None else data.test.items.paths)))
        return f"image files with a short side of {min(sides)} to {max(sides)} pixels"
    shape = items.array.shape[1:]
    if items.are_vectors:
        return f"vectors of {shape[0]:,} numbers"
    return f"images of {' x '.join(map(str, shape))}"


def _image_sides(files: tuple[Path, ...]) -> list[int]:
    """The short side of every image; each is decoded completely to check it."""
    sides: list[int] = []
    for file in files:
        try:
            with open_image(file) as image:
                image.load()
                sides.append(min(image.size))
        except Exception as error:  # a damaged file can raise nearly anything
            raise UnveilError(f"{file} is not a readable image ({error}); replace or remove it") from error
    return sides
