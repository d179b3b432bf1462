"""Image folders, and Omniglot as an array and as folders."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from unveil.data.folders import read_folder, read_omniglot
from unveil.errors import UnveilError

Array = NDArray[Any]


def draw(path: Path, *, size: int = 8, value: int = 200, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (size, size), value if mode == "L" else (value, 0, 0)).save(path)


def test_classes_and_files_come_sorted_with_relative_ids(tmp_path: Path) -> None:
    for name in ("dog/b.jpg", "cat/z.png", "dog/a.JPG", "cat/deep/er/x.TiFF", "cat/a.webp", "cat/c.bmp", "cat/d.jpeg"):
        draw(tmp_path / name)
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "cat" / "._a.webp").write_text("what macOS leaves")
    draw(tmp_path / ".thumbnails" / "a.jpg")
    (tmp_path / "classes.txt").write_text("cat house cat\ndog hound\n")
    data = read_folder(tmp_path, "pets")
    assert data.train.items.kind == "files"
    assert (data.name, data.classes) == ("pets", ("cat", "dog"))
    assert data.train.ids == (
        "cat/a.webp",
        "cat/c.bmp",
        "cat/d.jpeg",
        "cat/deep/er/x.TiFF",
        "cat/z.png",
        "dog/a.JPG",
        "dog/b.jpg",
    )
    assert data.train.items.paths == tuple(tmp_path / key for key in data.train.ids)
    assert data.train.labels.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert data.test is None


@pytest.mark.parametrize("held_out", ["val", "test"])
def test_train_and_a_held_out_folder_make_a_split(tmp_path: Path, held_out: str) -> None:
    for name in ("train/a/1.png", "train/b/2.png", f"{held_out}/b/3.png"):
        draw(tmp_path / name)
    data = read_folder(tmp_path)
    assert data.classes == ("a", "b")
    assert data.train.ids == ("train/a/1.png", "train/b/2.png")
    assert data.test is not None
    assert data.test.ids == (f"{held_out}/b/3.png",)
    assert data.test.labels.tolist() == [1]


def test_val_is_taken_where_test_has_no_labels(tmp_path: Path) -> None:
    for name in ("train/a/1.png", "val/a/2.png", "test/3.png"):
        draw(tmp_path / name)
    data = read_folder(tmp_path)
    assert data.test is not None
    assert data.test.ids == ("val/a/2.png",)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    for name in ("bus/1.png", "train/steam/2.png", "train/3.png"):
        draw(tmp_path / name)
    assert read_folder(tmp_path).classes == ("bus", "train")


def test_an_empty_class_folder_is_named(tmp_path: Path) -> None:
    draw(tmp_path / "full" / "1.png")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(UnveilError, match="hollow holds no images"):
        read_folder(tmp_path)


def test_a_folder_without_class_folders_is_an_error(tmp_path: Path) -> None:
    draw(tmp_path / "1.png")
    with pytest.raises(UnveilError, match="no class folders; expected"):
        read_folder(tmp_path)


def test_a_test_class_that_training_lacks_is_named(tmp_path: Path) -> None:
    for name in ("train/a/1.png", "val/a/2.png", "val/zebra/3.png"):
        draw(tmp_path / name)
    with pytest.raises(UnveilError, match="zebra is a class that the training folder does not have"):
        read_folder(tmp_path)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(UnveilError, match="is not a folder"):
        read_folder(tmp_path / "x")


def write_omniglot(path: Path, **changes: Array) -> Path:
    arrays = {
        "images_background": np.arange(4, dtype=np.uint8)[:, None, None] * np.ones((4, 32, 32), dtype=np.uint8),
        "labels_background": np.array([0, 0, 1, 1], dtype=np.int16),
        "characters_background": np.array(["Greek/character01", "Latin/character01"]),
        "images_evaluation": np.full((2, 32, 32), 9, dtype=np.uint8),
        "labels_evaluation": np.array([0, 0], dtype=np.int16),
        "characters_evaluation": np.array(["Angelic/character01"]),
    }
    np.savez(path, **(arrays | changes))  # type: ignore[arg-type]
    return path


def test_omniglot_array_lists_background_then_evaluation(tmp_path: Path) -> None:
    data = read_omniglot(write_omniglot(tmp_path / "omniglot32.npz"))
    assert data.classes == ("Greek/character01", "Latin/character01", "Angelic/character01")
    assert data.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.train.items.array[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 9, 9]
    assert data.train.items.array.shape == (6, 32, 32, 1)
    assert data.train.ids[:3] == ("Greek/character01/00", "Greek/character01/01", "Latin/character01/00")


def test_one_alphabet_keeps_its_ids(tmp_path: Path) -> None:
    data = read_omniglot(write_omniglot(tmp_path / "omniglot32.npz"), "Latin")
    assert (data.name, data.classes) == ("omniglot:Latin", ("Latin/character01",))
    assert data.train.labels.tolist() == [0, 0]
    assert data.train.items.array[:, 0, 0, 0].tolist() == [2, 3]
    assert data.train.ids == ("Latin/character01/00", "Latin/character01/01")


def test_an_unknown_alphabet_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="did you mean omniglot:Greek"):
        read_omniglot(write_omniglot(tmp_path / "omniglot32.npz"), "Grek")


@pytest.mark.parametrize(
    "changes",
    [
        {"images_background": np.zeros((4, 28, 28), dtype=np.uint8)},
        {"images_background": np.zeros((4, 32, 32))},
        {"labels_background": np.array([0, 0, 1])},
        {"labels_background": np.array([0, 0, 1, 2])},
        {"characters_background": np.array([{}, {}], dtype=object)},
    ],
)
def test_an_unsound_omniglot_array_is_refused(tmp_path: Path, changes: dict[str, Array]) -> None:
    with pytest.raises(UnveilError, match=r"omniglot32\.npz is not a valid"):
        read_omniglot(write_omniglot(tmp_path / "omniglot32.npz", **changes))


def test_a_truncated_omniglot_array_is_refused(tmp_path: Path) -> None:
    path = write_omniglot(tmp_path / "omniglot32.npz")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UnveilError, match="is not a valid"):
        read_omniglot(path)


def test_the_original_omniglot_folders_become_small_bright_ink(tmp_path: Path) -> None:
    for part, name in (("background", "Greek"), ("evaluation", "Angelic")):
        for drawer in (1, 2):
            draw(tmp_path / f"images_{part}/{name}/character01/09_{drawer}.png", size=105, value=0, mode="L")
    data = read_omniglot(tmp_path)
    assert data.classes == ("Greek/character01", "Angelic/character01")
    assert data.train.items.array.shape == (4, 32, 32, 1)
    assert (data.train.items.array == 255).all()
    assert data.train.ids[1] == "Greek/character01/01"
    assert read_omniglot(tmp_path, "Angelic").classes == ("Angelic/character01",)


def test_a_broken_omniglot_drawing_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "images_background/Greek/character01/1.png"
    draw(broken)
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.raises(UnveilError, match=r"1\.png is not a readable image"):
        read_omniglot(tmp_path)


def test_a_folder_without_omniglot_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="unveil data get omniglot"):
        read_omniglot(tmp_path)


@pytest.mark.parametrize("name", [b"caf\xe9/a.png", b"cat/caf\xe9.png", b"cat/\xff/a.png"])
def test_names_that_are_not_utf8_are_told_at_once(tmp_path: Path, name: bytes) -> None:
    draw(tmp_path / "cat" / "b.png")
    draw(tmp_path / os.fsdecode(name))
    with pytest.raises(UnveilError, match=r"is not UTF-8.*rename it"):
        read_folder(tmp_path)
