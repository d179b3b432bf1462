"""A table in memory: named columns of numbers, texts or vectors, and what kind of thing each column holds."""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError, suggest

Column = NDArray[Any]
"""float64 (n,) with NaN where a number is missing, float32 (n, d), or an object array (n,) of str, "" where missing."""
Kind = Literal["number", "date", "category", "text", "vector", "id", "constant", "empty"]
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "nil", "?", "-", "--", "#n/a", "<na>", "nat", "missing"})
"""Texts that stand for a missing value, in lower case."""
LEAST_ROWS = 20  # with fewer rows, nothing is taken for an id
WORDS, LETTERS = 4, 30  # cells of a text column have at least so many words or letters in the mean
DISTINCT = 0.9  # above this share of different values, short texts are ids
SHOWN = 30
DATE_FORMATS = ("%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y", "%b %d, %Y")
TIMES = ("", " %H:%M", " %H:%M:%S")


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns with the same number of rows."""

    columns: Mapping[str, Column]
    text: str | None = None  # the column that an encoder reads

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, rows: Any) -> "Table":
        return Table({name: column[rows] for name, column in self.columns.items()}, self.text)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def only(self, names: Iterable[str]) -> "Table":
        """These columns, in this order."""
        return Table({name: self.columns[name] for name in names}, self.text)

    def without(self, names: Collection[str | None]) -> "Table":
        """All columns but these."""
        return Table({name: column for name, column in self.columns.items() if name not in names})

    def and_then(self, other: "Table") -> "Table":
        """These rows followed by those of a table with the same columns; numbers beside texts become texts."""
        joined = {}
        for name, first in self.columns.items():
            second = other.columns[name]
            if first.dtype == object or second.dtype == object:
                first, second = as_texts(first), as_texts(second)
            if first.shape[1:] != second.shape[1:]:
                raise UnveilError(
                    f"the column '{name}' has {first.shape[1:] or 'single'} numbers in known rows and "
                    f"{second.shape[1:] or 'single'} in new ones: give the same to both"
                )
            joined[name] = np.concatenate([first, second])
        return Table(joined, self.text)

    def texts(self, name: str) -> list[str]:
        """The cells of a column as texts."""
        return [str(cell) for cell in as_texts(self.columns[name]).tolist()]

    def find(self, name: str, option: str, where: object) -> str:
        """The column of this name, also in other case; an error names the option that asked for it."""
        if name in self.columns:
            return name
        same = [column for column in self.columns if column.lower() == name.lower()]
        if len(same) == 1:
            return same[0]
        raise UnveilError(f"{where} has no column '{name}' ({option}){suggest(name, self.names)}")

    def fingerprint(self) -> str:
        """A short hash of the content."""
        digest = hashlib.sha256()
        for name, column in self.columns.items():
            digest.update(f"{name!r} {column.dtype} {column.shape}".encode("utf-8", "backslashreplace"))
            if column.dtype == object:
                digest.update(repr(column.tolist()).encode("utf-8", "backslashreplace"))
            else:
                digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()[:20]


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """Names for an error message."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def texts_column(cells: Iterable[str]) -> Column:
    """Texts as a column."""
    values = list(cells)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def as_texts(column: Column) -> Column:
    """A column as texts; whole numbers have no point."""
    if column.dtype == object:
        return column
    if column.ndim > 1:
        raise UnveilError("a column of vectors was given where text is expected: name another column")
    return texts_column("" if np.isnan(value) else f"{value:.15g}" for value in column.tolist())


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing value."""
    return cell.strip().lower() in MISSING


_COMMA = re.compile(r"[+-]?(\d{1,3}([. \u00a0\u202f']\d{3})+|\d*)(,\d+)?(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


def number_in(cell: str, *, decimal_comma: bool = False) -> float | None:
    """The number in a cell; None where there is none. NaN where it stands for a missing value."""
    if is_missing(cell):
        return float("nan")
    with suppress(ValueError):
        return float(cell)
    text = cell.strip()
    if not decimal_comma:
        return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else None
    with suppress(ValueError):
        if _COMMA.fullmatch(text):
            return float(re.sub(r"[. \u00a0\u202f']", "", text).replace(",", "."))
    return None


def kind_of(column: Column) -> Kind:
    """What a column holds."""
    if column.ndim > 1:
        return "vector"
    if column.dtype != object:
        return _kind_of_numbers(column)
    cells = [cell for cell in column.tolist() if not is_missing(cell)]
    different = set(cells)
    if len(different) < 2:
        return "constant" if different and len(cells) == len(column) else "empty" if not different else "category"
    if dates_in(column) is not None:
        return "date"
    words = sum(len(cell.split()) for cell in cells) / len(cells)
    letters = sum(map(len, cells)) / len(cells)
    many = len(different) > len(cells) / 2
    if many and words >= 2 and (words >= WORDS or letters >= LETTERS):
        return "text"
    if len(cells) >= LEAST_ROWS and len(different) > DISTINCT * len(cells):
        return "id"
    return "category"


def _kind_of_numbers(column: Column) -> Kind:
    there = column[~np.isnan(column)]
    if len(there) == 0:
        return "empty"
    if (there == there[0]).all() and len(column) > 1:
        return "constant"
    if len(column) < LEAST_ROWS or not (column == np.round(column)).all():
        return "number"
    values, counts = np.unique(column, return_counts=True)  # they count the rows, perhaps of two files
    return "id" if values[-1] - values[0] + 1 == len(values) and counts.max() <= 2 else "number"


def dates_in(column: Column) -> NDArray[np.float64] | None:
    """Days since 1970 of a column of dates, NaN where one is missing; None where other texts are among them."""
    cells = column.tolist()
    there = [cell.strip() for cell in cells if not is_missing(cell)]
    if not there or not any(mark in there[0] for mark in "-./ "):
        return None
    formats: list[str | None] = [None, *(day + time for day in DATE_FORMATS for time in TIMES)]
    fitting = next((form for form in formats if all(_day(cell, form) is not None for cell in there[:50])), "no")
    if fitting == "no":
        return None
    days = [float("nan") if is_missing(cell) else _day(cell.strip(), fitting) for cell in cells]
    return None if None in days else np.array(days, dtype=np.float64)


def _day(text: str, form: str | None) -> float | None:
    try:
        moment = datetime.fromisoformat(text) if form is None else datetime.strptime(text, form)
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() / 86400


MOST_COLUMNS = 1_000_000
MOST_CELLS = 1_000_000_000  # 8 GB of numbers


def check_size(columns: int, cells: int, where: object) -> None:
    """Raise an error for a table of more columns or cells than are read (UNVEIL_MOST_COLUMNS, UNVEIL_MOST_CELLS)."""
    for count, what, name, usual in (
        (columns, "columns", "UNVEIL_MOST_COLUMNS", MOST_COLUMNS),
        (cells, "cells", "UNVEIL_MOST_CELLS", MOST_CELLS),
    ):
        if count > (most := _most(name, usual)):
            raise UnveilError(
                f"{where} has {count:,} {what}, and at most {most:,} are read: split the file, or raise the limit with "
                f"{name}={count}"
            )


def _most(name: str, usual: int) -> int:
    given = os.environ.get(name, "").replace("_", "")
    if not given:
        return usual
    if not given.isdecimal():
        raise UnveilError(f"{name}={given} is not a number: give one such as {usual}")
    return int(given)
