"""Read tables: CSV and TSV as people save them (semicolons, decimal commas, BOM), JSON lines, parquet, cells."""

import csv
import json
from array import array
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.cells import is_saved_dataset, read_cells, read_dataset
from unveil.data.table import Column, Table, check_size, is_missing, number_in, texts_column
from unveil.data.table_columns import arrow_table, typed_column, unique_names
from unveil.errors import UnveilError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".h5ad")
DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 1000  # rows by which columns of numbers are told from others
MOSTLY = 0.9  # a column is of numbers if at least this share of its first cells are


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name, or a folder that `datasets` saved."""
    return path.suffix.lower() in SUFFIXES or is_saved_dataset(path)


def read_table(path: Path, as_text: Collection[str] = ()) -> Table:
    """The table in a file. Columns named in `as_text` (in any case) are read as text, also where they hold numbers."""
    text = {name.lower() for name in as_text}
    if is_saved_dataset(path):
        return read_dataset(path, text)
    if not path.is_file():
        raise UnveilError(f"there is no file {path}")
    readers = {
        ".h5ad": read_cells, ".jsonl": _read_json_lines, ".ndjson": _read_json_lines, ".parquet": _read_parquet
    }  # fmt: skip
    table = readers.get(path.suffix.lower(), _read_csv)(path, text)
    if len(table) == 0:
        raise UnveilError(f"{path} has no rows below the header; expected one for each item")
    return table


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield file
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnveilError(f"{path} is not a UTF-8 table ({error}); save it as CSV in UTF-8") from error


def _delimiter(path: Path) -> str:
    """The character between cells: the one that the header has most often."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with _reading(path) as file:
        header = next(iter(file), "")
    outside = "".join(header.split('"')[::2])  # what stands in quotes is a name
    return max(DELIMITERS, key=outside.count)


def _read_csv(path: Path, as_text: Collection[str]) -> Table:
    delimiter = _delimiter(path)
    with _reading(path) as file:
        rows = csv.reader(file, delimiter=delimiter)
        header = unique_names([name.strip() for name in next(rows, [])])
        check_size(len(header), len(header), path)
        sample = [row for row in islice(rows, SAMPLE) if row]
    comma = [_decimal_comma((row[i] for row in sample if i < len(row)), delimiter) for i in range(len(header))]
    numeric = [
        i
        for i, name in enumerate(header)
        if name.lower() not in as_text and _mostly_numbers((row[i] for row in sample if i < len(row)), comma[i])
    ]
    textual = sorted(set(range(len(header))) - set(numeric))
    numbers, texts, count = array("d"), [[] for _ in textual], 0  # type: array[float], list[list[str]], int
    with _reading(path) as file:
        rows = csv.reader(file, delimiter=delimiter)
        next(rows, None)
        for row in rows:
            if not row:  # an empty line
                continue
            if len(row) != len(header):
                raise UnveilError(f"{path}, line {rows.line_num}: {len(row)} cells, the header has {len(header)}")
            count += 1
            if count % SAMPLE == 0:
                check_size(len(header), count * len(header), path)
            try:
                numbers.extend([float(row[i]) for i in numeric])
            except ValueError:
                where = f"{path}, line {rows.line_num}"
                numbers.extend([_number(row[i], comma[i], header[i], where) for i in numeric])
            for cells, i in zip(texts, textual, strict=True):
                cells.append(row[i].strip())
    columns: dict[str, Column] = dict.fromkeys(header, np.zeros(0))
    matrix = np.frombuffer(numbers, dtype=np.float64).reshape(-1, len(numeric)) if numeric else np.zeros((0, 0))
    columns |= {header[i]: matrix[:, place] for place, i in enumerate(numeric)}
    columns |= {header[i]: texts_column(cells) for cells, i in zip(texts, textual, strict=True)}
    return Table(columns)


def _decimal_comma(cells: Iterator[str], delimiter: str) -> bool:
    """Whether numbers of a column have a comma before their decimals."""
    if delimiter == ",":
        return False
    values = [cell for cell in cells if not is_missing(cell)]
    plain = sum(number_in(cell) is not None and "," not in cell for cell in values)
    return sum(number_in(cell, decimal_comma=True) is not None for cell in values) > plain


def _mostly_numbers(cells: Iterator[str], comma: bool) -> bool:
    values = [cell for cell in cells if not is_missing(cell)]
    return bool(values) and sum(number_in(c, decimal_comma=comma) is not None for c in values) >= MOSTLY * len(values)


def _number(cell: str, comma: bool, name: str, where: str) -> float:
    number = number_in(cell, decimal_comma=comma)
    if number is None:
        raise UnveilError(
            f"{where}: {cell!r} in column {name!r} is not a number, as others of this column are: correct it, or leave "
            "the column out"
        )
    return number


def _read_json_lines(path: Path, as_text: Collection[str]) -> Table:
    columns: dict[str, list[Any]] = {}
    count = 0
    with _reading(path) as file:
        for line_number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{path}, line {line_number}"
                raise UnveilError(f"{where} is not JSON ({error}): write one object a line") from None
            if not isinstance(row, dict):
                raise UnveilError(f'{path}, line {line_number}: expected an object such as {{"text": …, "label": …}}')
            names = len(columns.keys() | row.keys())
            check_size(names, names * (count + 1), path)
            for name, value in row.items():
                if name not in columns:
                    columns[name] = [None] * count
                columns[name].append(value)
            count += 1
            for cells in columns.values():
                if len(cells) < count:
                    cells.append(None)
    return Table({name: typed_column(cells, name, path, name.lower() in as_text) for name, cells in columns.items()})


def _read_parquet(path: Path, as_text: Collection[str]) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UnveilError(f"parquet needs the package pyarrow ({error}): pip install pyarrow") from None
    try:
        about = pq.read_metadata(path)
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        cells = sum(g.column(place).num_values for g in groups for place in range(about.num_columns))
        check_size(about.num_columns, cells, path)  # every number of a vector is a cell
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnveilError(f"{path} cannot be read as parquet ({reason}): write it again") from None
    return arrow_table(table, path, as_text)
