"""KNOWN and NEW as people have them, as one task."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unveil.data.known_new import column_order, read_new, read_task
from unveil.errors import UnveilError


def table(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return path


def test_known_items_come_first_and_columns_are_put_in_their_order(tmp_path: Path) -> None:
    known = table(tmp_path / "known.csv", "id,width,height,label", "a,1,2,cat", "b,3,4,ant")
    new = table(tmp_path / "new.csv", "height,id,width", "6,b,5", "8,c,7")
    task = read_task(known, new)
    assert (task.name, task.known, task.columns) == ("known-new", ("ant", "cat"), ("width", "height"))
    assert task.items.array.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert task.labels.tolist() == [1, 0, -1, -1]
    assert task.ids == ("a", "b", "new/b", "c")  # ids differ, also where both files use one
    assert task.n_novel is None
    assert read_task(known, None).labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("width,length", "1,2", r"lacks 'height' and has 'length', which known items do not have"),
        ("width", "1", "lacks 'height': give the same columns"),
        ("id,width,height", "k,1,2\nk,1,2", "the id 'k' occurs in more than one row"),
    ],
)
def test_tables_that_do_not_fit_together(tmp_path: Path, header: str, row: str, message: str) -> None:
    known = table(tmp_path / "known.csv", "width,height,label", "1,2,cat")
    with pytest.raises(UnveilError, match=message):
        read_task(known, table(tmp_path / "new.csv", header, row))


def test_a_label_and_a_class_column_are_asked_about(tmp_path: Path) -> None:
    known = table(tmp_path / "known.csv", "width,class,label", "1,2,cat")
    new = table(tmp_path / "new.csv", "width,class", "1,2")
    with pytest.raises(UnveilError, match="both a column `class` and a column `label`: rename the one"):
        read_task(known, new)
    table(known, "width,klass,label", "1,2,cat")  # as the message advises
    assert read_task(known, table(new, "width,klass", "2,3")).columns == ("width", "klass")


def test_folders_nest_and_single_images_are_read(tmp_path: Path) -> None:
    for name in ("known/cat/1.png", "known/dog/1.png", "new/deep/er/2.png", "new/1.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    task = read_task(tmp_path / "known", tmp_path / "new")
    assert task.items.kind == "files"
    assert task.ids == ("cat/1.png", "dog/1.png", "1.png", "deep/er/2.png")
    assert task.labels.tolist() == [0, 1, -1, -1]
    assert read_new(tmp_path / "new" / "1.png")[1] == ("1.png",)


def test_both_sides_are_of_one_kind(tmp_path: Path) -> None:
    np.savez(tmp_path / "known.npz", X=np.ones((2, 3), dtype=np.float32), y=["a", "b"])
    np.save(tmp_path / "wide.npy", np.ones((2, 4), dtype=np.float32))
    np.save(tmp_path / "images.npy", np.ones((2, 4, 4), dtype=np.uint8))
    (tmp_path / "folder").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "folder" / "1.png")
    for name in ("wide.npy", "images.npy"):
        with pytest.raises(UnveilError, match="give items of one kind and size"):
            read_task(tmp_path / "known.npz", tmp_path / name)
    with pytest.raises(
        UnveilError, match=r"known.npz is an array and .*folder is a folder of images: give two of one kind"
    ):
        read_task(tmp_path / "known.npz", tmp_path / "folder")
    with pytest.raises(UnveilError, match="there is no file or folder"):
        read_task(tmp_path / "known.npz", tmp_path / "gone")


def test_ids_stay_unique_also_beside_those_that_are_made(tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("id,label,a\n1,x,0\nnew/1,y,1\n")
    (tmp_path / "new.csv").write_text("id,a\n1,0\nnew/new/1,2\n2,3\n")
    ids = read_task(tmp_path / "known.csv", tmp_path / "new.csv").ids
    assert ids is not None
    assert len(set(ids)) == 5
    assert ids[2:] == ("new/new/new/1", "new/new/1", "2")


def test_very_many_columns_are_matched() -> None:
    """Comparing every name with every other would take hours."""
    names = [f"column {number}" for number in range(100_000)]
    assert column_order(names[::-1], names, Path("new.csv")) == list(range(99_999, -1, -1))
