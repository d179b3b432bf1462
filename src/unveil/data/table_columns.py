"""Columns of a table from values as Python or pyarrow have them, with names that do not repeat."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.table import Column, Table, listed, texts_column
from unveil.errors import UnveilError


def unique_names(header: Sequence[str]) -> list[str]:
    """Names of columns: those without one are numbered, and a repeated one gets a number."""
    names: dict[str, int] = {}
    for place, name in enumerate(header, start=1):
        free = first = name or f"column {place}"
        while free in names:
            names[first] += 1
            free = f"{name or 'column'} ({names[first]})"
        names[free] = 1
    return list(names)


def typed_column(cells: list[Any], name: str, path: Path, as_text: bool = False) -> Column:
    """Values as Python knows them as a column."""
    there = [cell for cell in cells if cell is not None]
    if there and all(isinstance(cell, list | tuple) for cell in there):
        return _vectors(cells, name, path)
    if (bad := next((cell for cell in there if isinstance(cell, dict | list | tuple)), None)) is not None:
        kind = "a list" if isinstance(bad, list | tuple) else "an object"
        raise UnveilError(f"{path}: the column '{name}' holds {kind}; expected a text or a number in every row")
    numbers = all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in there)
    if there and numbers and not as_text:
        try:
            return np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
        except OverflowError:
            raise UnveilError(f"{path}: the column '{name}' has numbers that are too large") from None
    return texts_column("" if cell is None else _text(cell) for cell in cells)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.15g}"
    return str(value).strip()


def _vectors(cells: list[Any], name: str, path: Path) -> Column:
    lengths = {len(cell) if cell is not None else 0 for cell in cells}
    try:
        vectors = np.array(cells, dtype=np.float32) if len(lengths) == 1 else None
    except (TypeError, ValueError):
        vectors = None
    if vectors is None or vectors.ndim != 2:
        sizes = listed(sorted(map(str, lengths)), 5)
        raise UnveilError(
            f"{path}: the column '{name}' holds lists of {sizes} values; expected vectors: as many numbers in every row"
        )
    return vectors


def arrow_table(table: Any, path: Path, as_text: Collection[str] = ()) -> Table:
    """A table of pyarrow; columns named `__…__`, which hold the index of a data frame, are left out."""
    import pyarrow as pa

    columns: dict[str, Column] = {}
    for name, column in zip(unique_names(table.column_names), table.columns, strict=True):
        kind = column.type
        if name.startswith("__") and name.endswith("__"):
            continue
        if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and name.lower() not in as_text:
            values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            columns[name] = np.asarray(values, dtype=np.float64)
        elif pa.types.is_fixed_size_list(kind) and column.null_count == 0 and pa.types.is_floating(kind.value_type):
            flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
            columns[name] = np.asarray(flat, dtype=np.float32).reshape(len(column), kind.list_size)
        else:
            cells = [float(c) if pa.types.is_decimal(kind) and c is not None else c for c in column.to_pylist()]
            columns[name] = typed_column(cells, name, path, name.lower() in as_text)
    return Table(columns)
