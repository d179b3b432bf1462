"""Read folders of images: a folder for each class, with or without `train` and `val`; and Omniglot in its two forms."""

import difflib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unveil.data.dataset import Dataset, Split
from unveil.data.items import Items
from unveil.data.pictures import open_image
from unveil.errors import UnveilError
from unveil.files import is_text

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})


def visible_files(folder: Path) -> Iterator[Path]:
    """The files anywhere below a folder, without hidden ones (macOS writes `._x.jpg`)."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if not name.startswith("."))


def files_of(folder: Path, suffixes: Collection[str]) -> tuple[Path, ...]:
    """The files below a folder that end like this, in an order that does not depend on the file system."""
    files = [path for path in visible_files(folder) if path.suffix.lower() in suffixes]
    if (bad := next((path for path in files if not is_text(str(path.relative_to(folder)))), None)) is not None:
        raise UnveilError(f"the name {str(bad)!r} is not UTF-8, and cannot be written to a table: rename it")
    return tuple(sorted(files, key=lambda path: path.relative_to(folder).parts))


def image_files(folder: Path) -> tuple[Path, ...]:
    """The images anywhere below `folder`."""
    return files_of(folder, EXTENSIONS)


def holds(folder: Path, wanted: Collection[str], without: Collection[str]) -> bool:
    """Whether some files below a folder end in one of the `wanted` suffixes, and none in one of the others."""
    found = False
    for path in visible_files(folder):
        if (suffix := path.suffix.lower()) in without:
            return False
        found = found or suffix in wanted
    return found


def read_folder(folder: Path, name: str | None = None) -> Dataset:
    """`DIR/CLASS/*.jpg`, or `DIR/train/CLASS/*.jpg` with `DIR/val` or `DIR/test` beside it. Each folder is a class."""
    if not folder.is_dir():
        raise UnveilError(f"{folder} is not a folder; expected one with a folder of images for each class")
    name = name or folder.resolve().name
    train, test = _split_folders(folder)
    classes = tuple(class_folders(train))
    if not classes:
        raise UnveilError(
            f"{train} has no class folders; expected {train}/CLASS/*.jpg: make a folder for each class and move its "
            "images there"
        )
    return Dataset(
        name=name,
        classes=classes,
        train=_folder_split(folder, train, classes),
        test=None if test is None else _folder_split(folder, test, classes),
    )


def read_omniglot(path: Path, alphabet: str | None = None) -> Dataset:
    """All characters of the background set, then of the evaluation set, or those of one alphabet. 32x32, ink is 255.

    `path` is `omniglot32.npz` or the folder that holds the original `images_background` and `images_evaluation`. Ids
    are `ALPHABET/characterNN/DRAWER` in both.
    """
    characters = dict(_omniglot_folder(path, alphabet) if path.is_dir() else _omniglot_array(path, alphabet))
    classes = tuple(characters)
    counts = [len(images) for images in characters.values()]
    return Dataset(
        name=f"omniglot:{alphabet}" if alphabet else "omniglot",
        classes=classes,
        train=Split(
            items=Items.of(np.concatenate(list(characters.values()))[..., None]),
            labels=np.repeat(np.arange(len(classes), dtype=np.int64), counts),
            ids=tuple(f"{name}/{i:02d}" for name, count in zip(classes, counts, strict=True) for i in range(count)),
        ),
    )


def class_folders(folder: Path) -> list[str]:
    """Names of the folders in a folder, without hidden ones."""
    if not folder.is_dir():
        return []
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if (bad := next((name for name in names if not is_text(name)), None)) is not None:
        raise UnveilError(f"the name of the folder {str(folder / bad)!r} is not UTF-8: rename it")
    return names


def _split_folders(folder: Path) -> tuple[Path, Path | None]:
    """The folders of the training and the test classes. `train` beside other class folders is a class, not a split."""
    top = class_folders(folder)
    if "train" not in top or not class_folders(folder / "train"):
        return folder, None
    for name in ("test", "val"):  # ImageNet's `test` holds no class folders, so there `val` is taken
        if class_folders(folder / name):
            return folder / "train", folder / name
    return (folder / "train", None) if set(top) <= {"train", "val", "test"} else (folder, None)


def _folder_split(root: Path, folder: Path, classes: tuple[str, ...]) -> Split:
    if unknown := sorted(set(class_folders(folder)) - set(classes)):
        raise UnveilError(
            f"{folder / unknown[0]} is a class that the training folder does not have; "
            "add it there too, or take it out of the test folder"
        )
    files: list[Path] = []
    labels: list[int] = []
    for name in class_folders(folder):
        images = image_files(folder / name)
        if not images:
            kinds = " ".join(sorted(EXTENSIONS))
            raise UnveilError(f"{folder / name} holds no images ({kinds}); add some or remove the folder")
        files += images
        labels += [classes.index(name)] * len(images)
    ids = tuple(file.relative_to(root).as_posix() for file in files)
    return Split(items=Items.of(files), labels=np.array(labels, dtype=np.int64), ids=ids)


def _chosen(alphabets: Iterable[str], alphabet: str | None, path: Path) -> set[str]:
    available = set(alphabets)
    if alphabet is None:
        return available
    if alphabet not in available:
        matches = difflib.get_close_matches(alphabet, available, n=1, cutoff=0.4)
        others = f"there are {', '.join(sorted(available)) or 'none'}"
        hint = f"did you mean omniglot:{matches[0]}?" if matches else others
        raise UnveilError(f"{path} has no alphabet {alphabet!r}; {hint}")
    return {alphabet}


def _omniglot_array(path: Path, alphabet: str | None) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    subsets: list[tuple[NDArray[np.str_], NDArray[np.uint8], NDArray[np.int64]]] = []
    try:
        with np.load(path, allow_pickle=False) as file:
            for subset in ("background", "evaluation"):
                names, images, labels = (file[f"{key}_{subset}"] for key in ("characters", "images", "labels"))
                if images.dtype != np.uint8 or images.shape[1:] != (32, 32) or len(images) != len(labels):
                    raise ValueError(f"{images.dtype} images {images.shape}, labels {labels.shape}")
                if set(np.unique(labels)) != set(range(len(names))):
                    raise ValueError(f"the {subset} labels are not 0..{len(names) - 1}")
                subsets.append((names, images, labels))
    except Exception as error:  # a damaged archive can raise nearly anything
        raise UnveilError(f"{path} is not a valid omniglot32.npz ({error}); fetch it again") from error
    chosen = _chosen((str(name).split("/")[0] for names, _, _ in subsets for name in names), alphabet, path)
    for names, images, labels in subsets:
        for index, name in enumerate(names):
            if str(name).split("/")[0] in chosen:
                yield str(name), images[labels == index]


def _omniglot_folder(path: Path, alphabet: str | None) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    parts = path / "images_background", path / "images_evaluation"
    folders = [part / name for part in parts for name in class_folders(part)]
    if not folders:
        raise UnveilError(f"{path} has no images_background/ALPHABET folders; get them with `unveil data get omniglot`")
    chosen = _chosen((folder.name for folder in folders), alphabet, path)
    for folder in folders:
        if folder.name not in chosen:
            continue
        for character in class_folders(folder):
            drawings = [_omniglot_drawing(file) for file in image_files(folder / character)]
            if not drawings:
                raise UnveilError(f"{folder / character} holds no images; get them again: `unveil data get omniglot`")
            yield f"{folder.name}/{character}", np.stack(drawings)


def _omniglot_drawing(file: Path) -> NDArray[np.uint8]:
    try:
        with open_image(file) as image:
            small = image.convert("L").resize((32, 32), Image.Resampling.LANCZOS)
    except Exception as error:  # a damaged file can raise nearly anything
        raise UnveilError(f"{file} is not a readable image ({error})") from error
    return 255 - np.asarray(small, dtype=np.uint8)  # the original ink is black
