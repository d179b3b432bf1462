"""Tables as people save them."""

import contextlib
import json
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unveil.data.table_files import read_table
from unveil.errors import UnveilError


def saved(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "\ufeffname,height,weight\nann,1.5,2\nbob,,1e1\n\n"),
        ("a.csv", "name;height;weight\nann;1,5;2\nbob;;10,0\n"),
        ("a.csv", 'name|height|weight\n"ann"|1.5|2\nbob|n/a|10\n'),
        ("a.tsv", "name\theight\tweight\nann\t1,5\t2\nbob\tNaN\t10\n"),
        ("a.jsonl", '{"name": "ann", "height": 1.5, "weight": 2}\n{"name": "bob", "height": null, "weight": 10}\n'),
        ("a.jsonl", '{"name": "ann", "height": 1.5, "weight": 2}\n\n{"name": "bob", "weight": 10}\n'),
    ],
)
def test_every_way_to_save_a_table_is_read_alike(tmp_path: Path, name: str, text: str) -> None:
    table = read_table(saved(tmp_path / name, text))
    assert table.names == ("name", "height", "weight")
    assert table.columns["name"].tolist() == ["ann", "bob"]
    np.testing.assert_array_equal(table.columns["height"], [1.5, np.nan])
    np.testing.assert_array_equal(table.columns["weight"], [2, 10])


def test_thousands_have_a_comma_or_a_point(tmp_path: Path) -> None:
    english = read_table(saved(tmp_path / "a.csv", 'x,y\n"1,234",1\n"12,345,678.5",2\n'))
    german = read_table(saved(tmp_path / "a.csv", "x;y\n1.234,0;1\n12.345.678,5;2\n"))
    assert english.columns["x"].tolist() == german.columns["x"].tolist() == [1234, 12345678.5]


def test_parquet_has_numbers_texts_dates_and_vectors(tmp_path: Path) -> None:
    columns = {
        "n": pa.array([1, None], pa.int32()),
        "word": pa.array(["a", None]).dictionary_encode(),
        "flag": pa.array([True, False]),
        "day": pa.array([date(2024, 1, 2), None]),
        "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "list": pa.array([[1.0, 2.0], [3.0, 4.0]]),
        "label": pa.array([10, 11]),
        "__index_level_0__": pa.array([0, 1]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", as_text=("Label",))
    np.testing.assert_array_equal(table.columns["n"], [1, np.nan])
    assert [table.columns[name].tolist() for name in ("word", "flag")] == [["a", ""], ["true", "false"]]
    assert table.columns["day"].tolist() == ["2024-01-02", ""]
    assert table.columns["vector"].tolist() == table.columns["list"].tolist() == [[1, 2], [3, 4]]
    assert table.columns["label"].tolist() == ["10", "11"]
    assert "__index_level_0__" not in table.names


def test_names_are_unique_and_never_empty(tmp_path: Path) -> None:
    table = read_table(saved(tmp_path / "a.csv", ",x,x,\n1,2,3,4\n"))
    assert table.names == ("column 1", "x", "x (2)", "column 4")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "x,label\n", "no rows below the header"),
        ("a.csv", "", "no rows below the header"),
        ("a.csv", "x,label\n1,a\n2\n", "line 3: 1 cells, the header has 2"),
        (
            "a.csv",
            "x\n" + "1\n" * 20 + "tall\n",
            "line 22: 'tall' in column 'x' is not a number, as others .* leave the column out",
        ),
        ("a.jsonl", "{}\n[1]\n", "line 2: expected an object"),
        ("a.jsonl", '{"x": 1}\n{"x"\n', "line 2 is not JSON"),
        ("a.jsonl", '{"x": {"y": 1}}\n', "'x' holds an object"),
        ("a.jsonl", '{"x": [1, 2]}\n{"x": [1]}\n', "'x' holds lists of 1, 2 values; expected vectors"),
        ("a.parquet", "no parquet", "cannot be read as parquet"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        read_table(saved(tmp_path / name, text))


def test_a_csv_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(b"x,label\n\xff\xfe,a\n")
    with pytest.raises(UnveilError, match="not a UTF-8 table"):
        read_table(tmp_path / "own.csv")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_damaged_tables_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"own.{kind}"
    rows = [{"id": "x", "label": "1", "a": 0.5, "b": 1e3}, {"id": "y", "label": "2", "a": -1.0, "b": 0.0}]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("id,label,a,b\nx,1,0.5,1e3\ny,2,-1,0\n")
    content, draw = path.read_bytes(), np.random.default_rng(0)
    for _ in range(150):
        copy = bytearray(content)
        for place in draw.integers(0, len(copy), size=3).tolist():
            copy[place] = int(draw.integers(256))
        path.write_bytes(copy)
        with contextlib.suppress(UnveilError):
            read_table(path)
