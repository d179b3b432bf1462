"""Label, id and text columns of a table, and what the others become."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unveil.data.known_new import read_new, read_task
from unveil.data.sheets import Columns, read_labeled
from unveil.errors import UnveilError


def csv(folder: Path, text: str, name: str = "own.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("column", ["label", "class", "Label"])
def test_label_and_id_columns_are_found_by_name(tmp_path: Path, column: str) -> None:
    data = read_labeled(csv(tmp_path, f"\ufeffid,x0,{column},x1\none,1.5,10,2\ntwo,-3,9,4e1\n\n"), Columns())
    assert data.classes == ("9", "10")
    assert data.train.items.array.tolist() == [[1.5, 2.0], [-3.0, 40.0]]
    assert data.train.ids == ("one", "two")
    assert data.train.labels.tolist() == [1, 0]


def test_rows_without_ids_are_numbered(tmp_path: Path) -> None:
    ids = read_labeled(csv(tmp_path, "x,label\n1,a\n2,b\n"), Columns()).train.ids
    assert ids == ("train/00000", "train/00001")


def test_columns_are_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "key;topic;x;label\n007;a;1,5;9\n8;b;2;7\n")
    data = read_labeled(path, Columns(label="topic", id="key", used=("x",)))
    assert (data.classes, data.train.ids) == (("a", "b"), ("007", "8"))
    assert data.train.items.array.tolist() == [[1.5], [2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n", "no column `label` or `class`: name the column of the labels with --label COLUMN; .* x, y"),
        ("id,label\na,b\nc,d\n", "no columns of numbers"),
        ("x,label\n1,\n", "row 0 .*empty label"),
        ("id,x,label\nk,1,a\nk,2,a\n", "the id 'k' occurs in more than one row"),
        ("x,class,label\n1,2,a\n", "both a column `class` and a column `label`: rename the one that does not hold"),
        ("words here,label\na cat sat on the mat,a\nthe dog ran home at night,b\n", 'add --text "words here"'),
    ],
)
def test_a_bad_table_says_what_to_do(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        read_labeled(csv(tmp_path, text), Columns())


def test_the_column_that_matters_is_in_the_message(tmp_path: Path) -> None:
    names = [f"x{i}" for i in range(200)]
    path = csv(tmp_path, ",".join([*names, "Kind of fruit"]) + "\n" + "".join(f"{'1,' * 200}pear\n" for _ in range(3)))
    with pytest.raises(UnveilError, match=r"its header is Kind of fruit, x0, .* and 171 more"):
        read_task(path, None)


def test_a_text_column_makes_texts(tmp_path: Path) -> None:
    known = csv(tmp_path, "message,topic,n\nmy card is lost,card,1\nwhat is the time,time,2\n")
    new = csv(tmp_path, "n,message\n3,sing a song\n", "new.csv")
    task = read_task(known, new, Columns(text="message", label="topic"))
    assert task.items.texts == ("my card is lost", "what is the time", "sing a song")
    assert (task.known, task.labels.tolist()) == (("card", "time"), [0, 1, -1])
    mixed = read_task(known, new, Columns(text="message", label="topic", used=("n",)))
    assert mixed.items.kind == "table"
    assert mixed.items.texts == task.items.texts
    assert mixed.columns == ("n",)
    with pytest.raises(UnveilError, match=r"has no column 'massage' .--text.; did you mean 'message'"):
        read_task(known, new, Columns(text="massage", label="topic"))


def test_rows_with_an_empty_label_of_one_file_are_new(tmp_path: Path) -> None:
    path = csv(tmp_path, "x,y,label\n1,2,a\n3,4,\n5,6,b\n7,9,\n")
    task = read_task(path, None)
    assert task.labels.tolist() == [0, 1, -1, -1]
    assert task.ids == ("row/00000", "row/00002", "row/00001", "row/00003")
    assert task.items.array.tolist() == [[1, 2], [5, 6], [3, 4], [7, 9]]
    with pytest.raises(UnveilError, match="no row has a label"):
        read_task(csv(tmp_path, "x,label\n1,\n2,\n"), None)


def test_parquet_with_named_vectors(tmp_path: Path) -> None:
    table = {
        "key": ["a", "b", "c"],
        "kind": ["p", "q", None],
        "vec": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "year": [1, 2, 5],
    }
    pq.write_table(pa.table(table), tmp_path / "own.parquet")
    task = read_task(tmp_path / "own.parquet", None, Columns(label="kind", id="key"))
    assert task.items.array.tolist() == table["vec"]
    assert task.notes == ("left out: year, which stands beside the vectors: --columns names what to use",)
    assert task.ids == ("a", "b", "c")


def test_new_rows_of_a_table_may_have_more_columns_when_they_are_predicted(tmp_path: Path) -> None:
    path = csv(tmp_path, "extra,b,a\nz,1,2\nz,3,4\n")
    items, _ = read_new(path, ["a", "b"], others_allowed=True)
    assert items.array.tolist() == [[2, 1], [4, 3]]
    with pytest.raises(UnveilError, match="has 'extra'"):
        read_new(path, ["a", "b"])
    with pytest.raises(UnveilError, match="the column 'extra' holds no numbers"):
        read_new(path, ["extra"], others_allowed=True)
