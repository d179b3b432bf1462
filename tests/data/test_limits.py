"""Tables that are too large are refused before they fill the memory."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unveil.data.table import check_size
from unveil.data.table_files import read_table
from unveil.errors import UnveilError


def write(folder: Path, kind: str, rows: int, columns: int) -> Path:
    """A table of ones."""
    path, names = folder / f"table{kind}", [f"c{number}" for number in range(columns)]
    if kind == ".parquet":
        pq.write_table(pa.table({name: np.ones(rows) for name in names}), path)
    elif kind == ".jsonl":
        path.write_text("".join(json.dumps(dict.fromkeys(names, 1)) + "\n" for _ in range(rows)))
    else:
        path.write_text("\n".join([",".join(names), *[",".join(["1"] * columns)] * rows]) + "\n")
    return path


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_more_cells_than_the_limit_are_an_error_that_says_how_to_raise_it(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, kind, 2000, 3)
    monkeypatch.setenv("UNVEIL_MOST_CELLS", "2_999")
    with pytest.raises(UnveilError, match=r"at most 2,999 are read.*UNVEIL_MOST_CELLS="):
        read_table(path)
    monkeypatch.setenv("UNVEIL_MOST_CELLS", "6000")
    assert len(read_table(path)) == 2000


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_more_columns_than_the_limit_are_an_error(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, kind, 2, 12)
    monkeypatch.setenv("UNVEIL_MOST_COLUMNS", "11")
    with pytest.raises(UnveilError, match="12 columns, and at most 11 are read"):
        read_table(path)


def test_rows_that_each_bring_a_column_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wide.jsonl"
    path.write_text("".join(f'{{"c{row}": 1}}\n' for row in range(2000)))  # 2,000 lines, 4 million cells
    monkeypatch.setenv("UNVEIL_MOST_CELLS", "100000")
    with pytest.raises(UnveilError, match="cells"):
        read_table(path)


def test_numbers_of_vectors_count_as_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(1000, np.float32)), 100)
    pq.write_table(pa.table({"vector": vectors}), tmp_path / "vectors.parquet")
    monkeypatch.setenv("UNVEIL_MOST_CELLS", "999")
    with pytest.raises(UnveilError, match="1,000 cells"):
        read_table(tmp_path / "vectors.parquet")


def test_a_limit_that_is_no_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNVEIL_MOST_CELLS", "many")
    with pytest.raises(UnveilError, match="UNVEIL_MOST_CELLS=many is not a number"):
        check_size(1, 1, "a table")


def test_many_columns_of_the_same_name_take_no_time(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    path.write_text(",".join(["a"] * 50_000) + "\n" + ",".join(["1"] * 50_000) + "\n")
    assert read_table(path).names[-1] == "a (50000)"
