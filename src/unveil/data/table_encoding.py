"""Turn a table with numbers, dates and categories into vectors: missing values filled, columns scaled, categories as
zeros and ones. scikit-learn's ColumnTransformer learns the numbers; they are kept as plain values, so that a saved run
encodes new rows without unpickling anything."""

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from unveil.data.items import Vectors
from unveil.data.table import Column, Table, as_texts, dates_in, is_missing, kind_of, listed, number_in
from unveil.errors import UnveilError

MOST_CATEGORIES = 50  # values of a category that get a column of their own; rarer ones have none
Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ColumnCode:
    """How one column becomes numbers."""

    name: str
    kind: Literal["number", "date", "category", "vector", "text"]
    fill: float = 0.0  # takes the place of a missing number: the median
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()  # a column of zeros and ones for each
    size: int = 1  # numbers of a vector

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that it becomes; none for a text, which an encoder reads."""
        if self.kind == "category":
            return tuple(f"{self.name}={value}" for value in self.categories)
        if self.kind == "vector":
            return tuple(f"{self.name}[{place}]" for place in range(self.size))
        return () if self.kind == "text" else (self.name,)

    def shown(self, column: Column) -> Numbers:
        """(n, len(names)): as people read them, missing numbers filled in, dates as days since 1970."""
        if self.kind == "category":
            codes = {value: place for place, value in enumerate(self.categories)}
            places = np.array([codes.get(cell, -1) for cell in as_texts(column).tolist()])
            ones: Numbers = (places[:, None] == np.arange(len(codes))).astype(np.float64)
            return ones
        if self.kind == "vector":
            if column.ndim != 2 or column.shape[1] != self.size:
                raise UnveilError(f"the column '{self.name}' must hold vectors of {self.size} numbers")
            return column.astype(np.float64)
        numbers = numbers_in(column, self.name, self.kind)
        return np.where(np.isnan(numbers), self.fill, numbers)[:, None]


@dataclass(frozen=True)
class TableEncoding:
    """How a table becomes vectors."""

    columns: tuple[ColumnCode, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of `shown`."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def text(self) -> str | None:
        """The column that holds text."""
        return next((column.name for column in self.columns if column.kind == "text"), None)

    @property
    def has_numbers(self) -> bool:
        return bool(self.names)

    def shown(self, table: Table) -> Numbers:
        """(n, len(names)): numbers as they are, with missing ones filled in, and categories as zeros and ones."""
        if missing := [column.name for column in self.columns if column.name not in table.columns]:
            raise UnveilError(f"the table lacks the column {listed([repr(name) for name in missing], 5)}: add it")
        parts = [column.shown(table.columns[column.name]) for column in self.columns if column.kind != "text"]
        return np.concatenate([np.zeros((len(table), 0)), *parts], axis=1)

    def __call__(self, table: Table) -> Vectors:
        """(n, len(names)): scaled."""
        lengths = [len(column.names) for column in self.columns]  # 0 of a text
        mean, scale = (np.repeat([getattr(c, key) for c in self.columns], lengths) for key in ("mean", "scale"))
        scaled: Vectors = ((self.shown(table) - mean) / scale).astype(np.float32)
        return scaled

    def to_json(self) -> list[dict[str, Any]]:
        """For a JSON file."""
        return [asdict(column) for column in self.columns]

    @staticmethod
    def from_json(columns: Iterable[Mapping[str, Any]]) -> "TableEncoding":
        """What `to_json` gave."""
        codes = (ColumnCode(**{**column, "categories": tuple(column["categories"])}) for column in columns)
        return TableEncoding(tuple(codes))


def numbers_in(column: Column, name: str, kind: str) -> Numbers:
    """A column as numbers, NaN where they are missing; dates are days since 1970."""
    if kind == "date":
        missing = column.dtype != object or all(is_missing(cell) for cell in column.tolist())
        days = np.full(len(column), np.nan) if missing else dates_in(as_texts(column))
        if days is None:
            raise UnveilError(f"the column '{name}' held dates in the fit, and holds other texts now: give dates")
        return days
    if column.dtype != object:
        return column.astype(np.float64)
    numbers = [number_in(cell) for cell in column.tolist()]
    if None in numbers:
        bad = column[numbers.index(None)]
        raise UnveilError(f"{bad!r} in column '{name}' is not a number, as others of this column are: correct it")
    return np.array(numbers, dtype=np.float64)


def fit_table(table: Table, wanted: Collection[str] | None = None) -> tuple[TableEncoding, list[str]]:
    """How these rows become vectors, and sentences about what was left out or filled in.

    wanted: the columns to use beside that of the text; None: all that look useful.
    """
    chosen, notes = _choose(table.without({table.text}), wanted)
    codes = _learned(table, chosen, notes)
    if table.text is not None:
        codes = [ColumnCode(name=table.text, kind="text"), *codes]
    return TableEncoding(tuple(codes)), notes


def _choose(table: Table, wanted: Collection[str] | None) -> tuple[dict[str, str], list[str]]:
    """The kind of each column to use, by name, and sentences about the others."""
    chosen: dict[str, str] = {}
    left: dict[str, list[str]] = {}
    for name, column in table.columns.items():
        kind = kind_of(column)
        if wanted is not None and name in wanted and kind in ("id", "text", "constant"):
            kind = "category" if column.dtype == object else "number"
        if wanted is not None and name not in wanted:
            continue
        if kind in ("id", "constant", "empty", "text"):
            left.setdefault(kind, []).append(name)
        else:
            chosen[name] = kind
    if wanted is None and "vector" in chosen.values():  # what people call embeddings stands alone
        first = next(name for name, kind in chosen.items() if kind == "vector")
        left["beside"] = [name for name in chosen if name != first]
        chosen = {first: "vector"}
    reasons = {
        "id": "numbers or names the rows",
        "constant": "has one value in all rows",
        "empty": "has no values",
        "text": "holds text, which --text COLUMN would read",
        "beside": "stands beside the vectors: --columns names what to use",
    }
    told = [(listed(names, 5), reason) for kind, reason in reasons.items() if (names := left.get(kind))]
    return chosen, [f"left out: {names}, which {reason}" for names, reason in told]


def _learned(table: Table, chosen: Mapping[str, str], notes: list[str]) -> list[ColumnCode]:
    """Fit scikit-learn's transformers to the columns, and take the numbers from them."""
    numeric = [name for name, kind in chosen.items() if kind in ("number", "date")]
    categories = [name for name, kind in chosen.items() if kind == "category"]
    vectors = [name for name, kind in chosen.items() if kind == "vector"]
    codes = {name: ColumnCode(name=name, kind="vector", size=table.columns[name].shape[1]) for name in vectors}
    numbers = {name: numbers_in(table.columns[name], name, chosen[name]) for name in numeric}
    transformer = column_transformer(numeric, categories)
    matrix = np.empty((len(table), len(numeric) + len(categories)), dtype=object)
    for place, name in enumerate((*numeric, *categories)):
        matrix[:, place] = numbers[name] if name in numbers else as_texts(table.columns[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        transformer.fit(matrix)
    if numeric:
        imputer, scaler = transformer.named_transformers_["numbers"]
        for place, name in enumerate(numeric):
            codes[name] = ColumnCode(
                name=name,
                kind="date" if chosen[name] == "date" else "number",
                fill=float(imputer.statistics_[place]),
                mean=float(scaler.mean_[place]),
                scale=float(scaler.scale_[place]),
            )
            if missing := int(np.isnan(numbers[name]).sum()):
                notes.append(f"{missing} missing value{'s' if missing > 1 else ''} of {name} became its median")
    for place, name in enumerate(categories):
        encoder = transformer.named_transformers_["categories"]
        rare = encoder.infrequent_categories_[place]
        rare = set() if rare is None else set(rare.tolist())
        values = [value for value in encoder.categories_[place].tolist() if not is_missing(value) and value not in rare]
        codes[name] = ColumnCode(name=name, kind="category", categories=tuple(values))
        if rare:
            notes.append(f"{len(rare)} rare values of {name} are not told apart")
    return [codes[name] for name in chosen]


def column_transformer(numeric: list[str], categories: list[str]) -> ColumnTransformer:
    """Numbers: the median where one is missing, then mean 0 and spread 1. Categories: zeros and ones.

    The matrix has the columns of numbers first.
    """
    first = len(numeric)
    parts: list[tuple[str, Any, list[int]]] = []
    if numeric:
        parts.append(("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list(range(first))))
    if categories:
        encoder = OneHotEncoder(max_categories=MOST_CATEGORIES, handle_unknown="ignore", sparse_output=False)
        parts.append(("categories", encoder, list(range(first, first + len(categories)))))
    return ColumnTransformer(parts)
