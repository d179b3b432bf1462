"""Tables of people: which column is the label, which the id, which the text, and what the others become."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.arrays import checked_items, encode
from unveil.data.dataset import Dataset, Split
from unveil.data.items import Items
from unveil.data.readers import item_ids
from unveil.data.table import Table, kind_of, listed
from unveil.data.table_encoding import fit_table
from unveil.data.table_files import read_table
from unveil.errors import UnveilError

LABELS, IDS = ("label", "class"), ("id",)  # usual names of these columns, in lower case


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of a table are what. None: found by their usual names (`label` or `class`, `id`)."""

    label: str | None = None
    id: str | None = None
    text: str | None = None  # the column that holds texts; it is used alone unless `used` names others
    used: tuple[str, ...] | None = None  # the columns to use. None: the text alone, or all that look useful.

    def to_json(self) -> dict[str, Any]:
        """The columns that were named."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @staticmethod
    def from_json(values: dict[str, Any]) -> "Columns":
        """What `to_json` gave."""
        used = values.get("used")
        return Columns(**{**values, "used": None if used is None else tuple(used)})

    @property
    def any_named(self) -> bool:
        return bool(self.to_json())


@dataclass(frozen=True)
class Sheet:
    """A table without its label and id."""

    table: Table
    labels: list[str] | None  # "" where a row has none; None: there is no such column
    ids: tuple[str, ...]  # empty where there is no such column

    def __getitem__(self, rows: Any) -> "Sheet":
        labels = None if self.labels is None else [self.labels[row] for row in rows]
        return Sheet(self.table[rows], labels, tuple(self.ids[row] for row in rows) if self.ids else ())


def read_sheet(path: Path, columns: Columns, *, labeled: bool) -> Sheet:
    """The table in a file; `labeled`: it must have a column of labels."""
    named = [name for name in (columns.label, columns.id, columns.text) if name is not None]
    return split_sheet(read_table(path, as_text=(*LABELS, *IDS, *named)), columns, path, labeled=labeled)


def split_sheet(table: Table, columns: Columns, path: Path, *, labeled: bool) -> Sheet:
    """A table without its label and id, and with the columns that were asked for alone."""
    label = _column(table, columns.label, LABELS, "--label", path, labeled)
    key = _column(table, columns.id, IDS, "--id", path, False)
    labels = None if label is None else [text.strip() for text in table.texts(label)]
    ids = () if key is None else tuple(table.texts(key))
    if len(set(ids)) < len(ids):
        repeated = Counter(ids).most_common(1)[0][0]
        raise UnveilError(f"{path}: the id {repeated!r} occurs in more than one row; ids must be unique")
    rest = table.without({label, key})
    if columns.text is not None:
        text = rest.find(columns.text, "--text", path)
        rest = replace(rest.only([text]) if columns.used is None else rest, text=text)
    if columns.used is not None:
        used = [rest.find(name, "--columns", path) for name in columns.used]
        rest = rest.only(dict.fromkeys([*([rest.text] if rest.text else []), *used]))
    return Sheet(rest, labels, ids)


def _column(table: Table, given: str | None, usual: Sequence[str], option: str, path: Path, needed: bool) -> str | None:
    """The column of a role: the one that was named, or the one with a usual name."""
    if given is not None:
        if not needed and given.lower() not in {name.lower() for name in table.names}:
            return None
        return table.find(given, option, path)
    found = [name for name in table.names if name.lower() in usual]
    if needed and len(found) > 1:
        raise UnveilError(
            f"{path} has both a column `{found[0]}` and a column `{found[1]}`: rename the one that does not hold the "
            f"labels, or name the one that does: {option} COLUMN"
        )
    if needed and not found:
        names = list(table.names)
        if len(names) > 20:  # those first that could be labels
            names.sort(key=lambda name: table.columns[name].dtype != object)
        raise UnveilError(
            f"{path} has no column {' or '.join(f'`{name}`' for name in usual)}: name the column of the labels with "
            f"{option} COLUMN; its header is {listed(names) or 'empty'}"
        )
    return next((name for word in usual for name in found if name.lower() == word), None)


def read_labeled(path: Path, columns: Columns) -> Dataset:
    """A table in which every row has a label, as a data set."""
    sheet = read_sheet(path, columns, labeled=True)
    assert sheet.labels is not None
    classes, labels = encode(sheet.labels, str(path))
    items, names, _ = items_of(sheet.table, columns, path)
    train = Split(items=items, labels=labels, ids=sheet.ids or item_ids("train", len(items)))
    return Dataset(name=path.stem, classes=classes, train=train, columns=names)


def items_of(table: Table, columns: Columns, path: Path) -> tuple[Items, tuple[str, ...], list[str]]:
    """The rows as items, the names of the columns that are shown, and sentences about what was left out.

    A text alone becomes texts; numbers alone become vectors, just as they are; anything else stays a table.
    """
    if table.text is not None and len(table.names) == 1:
        texts = table.texts(table.text)
        empty = sum(not text.strip() for text in texts)
        if empty == len(texts):
            raise UnveilError(f"{path}: every text in the column '{table.text}' is empty: name another column")
        return Items.of_texts(texts), (), [f"{empty} texts are empty"] if empty else []
    encoding, notes = fit_table(table, columns.used)
    if not encoding.has_numbers:
        raise UnveilError(_nothing_to_use(table, path))
    if len(encoding.columns) == 1 and encoding.columns[0].kind == "vector":
        name = encoding.columns[0].name
        return Items.of(checked_items(table.columns[name], f"{name} in {path}")), (), notes
    numeric = {column.kind for column in encoding.columns} == {"number"}
    if numeric and not any(np.isnan(table.columns[name]).any() for name in encoding.names):
        return Items.of(matrix_of(table, encoding.names, path)), encoding.names, notes
    used = table.only(column.name for column in encoding.columns)
    return Items("table", used), encoding.names, notes


def matrix_of(table: Table, names: Sequence[str], path: Path) -> Any:
    """Columns of numbers as vectors."""
    for name in names:
        column = table.columns[name]
        if column.dtype == object or column.ndim > 1:
            raise UnveilError(f"{path}: the column '{name}' holds no numbers, as that of the known items: correct it")
    return checked_items(np.stack([table.columns[name] for name in names], axis=1), str(path))


def _nothing_to_use(table: Table, path: Path) -> str:
    columns = {name: column for name, column in table.columns.items() if column.dtype == object}
    if texts := [name for name, column in columns.items() if kind_of(column) in ("text", "id")]:
        example = max(texts, key=lambda name: sum(map(len, table.texts(name))))
        example = f'"{example}"' if " " in example else example
        shown = listed([repr(text) for text in texts], 5)
        return f"{path} has no columns of numbers, but text in {shown}: add --text {example}"
    return f"{path} has no columns of numbers beside label and id: add some, or a text column (--text COLUMN)"
