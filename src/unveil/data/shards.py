"""Input of any size as shards: parts that are read a piece at a time, and whose results are written as a whole.

A folder of images or texts is divided into shards of some files each; every array or table file is a shard of its own.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil import checksums
from unveil.data import arrays
from unveil.data.folders import EXTENSIONS, holds
from unveil.data.items import PIECE, Items
from unveil.data.known_new import read_new
from unveil.data.readers import item_ids
from unveil.data.table_files import SUFFIXES as TABLES
from unveil.data.table_files import is_table
from unveil.data.text_folders import SUFFIX as TEXT
from unveil.errors import UnveilError

VECTORS = ("vector", "embedding", "features")  # names that a column of vectors in a parquet file may have
SUFFIXES = (".npy", ".npz", *TABLES)
FILES_PER_SHARD = 1000  # images or texts in a shard: a minute of work, which is what is lost where a worker dies
Read = Callable[[Path], tuple[Items, tuple[str, ...]]]


@dataclass(frozen=True)
class Piece:
    """Some rows of a shard."""

    ids: Sequence[str]
    items: Items  # those that have a value
    present: NDArray[np.bool_]  # (n,): which of the ids they are

    @staticmethod
    def of(items: Items, ids: Sequence[str]) -> "Piece":
        """A piece in which every id has an item."""
        return Piece(ids, items, np.ones(len(ids), dtype=bool))


@dataclass(frozen=True)
class Shard:
    """A part of the input."""

    name: str  # the name of its result, without a suffix
    paths: tuple[Path, ...]  # images or texts, or one file of rows
    ids: tuple[str, ...] = ()  # of images or texts
    texts: bool = False

    def pieces(self, read: Read = read_new) -> Iterator[Piece]:
        """The rows in order. Vectors are read some thousands at a time; `read` reads other files as a whole."""
        path = self.paths[0]
        if self.texts:
            texts = [one.read_text(encoding="utf-8-sig", errors="replace") for one in self.paths]
            yield Piece.of(Items.of_texts(texts), self.ids)
        elif self.ids:
            yield Piece.of(Items.of(self.paths), self.ids)
        elif path.suffix.lower() == ".npy":
            array = _npy(path)
            for start in range(0, len(array), PIECE):
                rows = arrays.checked_items(np.array(array[start : start + PIECE]), f"{path}, rows from {start}")
                yield Piece.of(Items.of(rows), _numbered(self.name, start, len(rows)))
        elif (column := _vector_column(path)) is not None:
            yield from _parquet_pieces(path, column, self.name)
        else:
            items, ids = read(path)
            named = ids != item_ids("new", len(ids))  # ids that the reader made up occur in every file
            yield Piece.of(items, ids if named else _numbered(self.name, 0, len(ids)))

    def count(self) -> int:
        """The number of rows, from the file's header. An error where it does not hold vectors."""
        path = self.paths[0]
        if path.suffix.lower() == ".npy":
            return len(_npy(path))
        if _vector_column(path) is None:
            raise UnveilError(
                f"{path} does not hold vectors: give .npy files, or .parquet with a column `{VECTORS[0]}`"
            )
        return int(_parquet(path).metadata.num_rows)

    def labels(self, names: Sequence[str]) -> tuple[list[str], NDArray[np.int64]] | None:
        """The column of a parquet file that has one of the names: its texts, and which of them a row has, -1 for none.

        None where there is no such column.
        """
        path = self.paths[0]
        file = _parquet(path) if path.suffix.lower() == ".parquet" else None
        column = next((name for name in (file.schema_arrow.names if file else ()) if name.lower() in names), None)
        if file is None or column is None:
            return None
        cells = file.read(columns=[column]).column(0).cast("string").combine_chunks().dictionary_encode()
        return cells.dictionary.to_pylist(), cells.indices.fill_null(-1).to_numpy().astype(np.int64)

    def signature(self) -> str:
        """A short hash of what it consists of: names and sizes of the files."""
        digest = hashlib.sha256()
        for path in self.paths:
            digest.update(f"{path.name} {path.stat().st_size}\n".encode("utf-8", "backslashreplace"))
        return digest.hexdigest()[:16]


def is_sharded(path: Path) -> bool:
    """Whether a path is a folder of array or table files, without images or texts."""
    return path.is_dir() and not is_table(path) and holds(path, SUFFIXES, without=(*EXTENSIONS, TEXT))


def find_shards(path: Path, files_per_shard: int = FILES_PER_SHARD) -> list[Shard]:
    """The shards of a file or folder, in an order that does not depend on the file system."""
    if not path.is_dir():
        if path.suffix.lower() not in SUFFIXES:
            raise UnveilError(f"{path} is no folder and no {', '.join(SUFFIXES)} file: give one of them")
        if not path.is_file():
            raise UnveilError(f"there is no file or folder {path}")
        return [Shard(path.stem, (path,))]
    visible = (file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    rows = sorted(file for file in visible if file.suffix.lower() in SUFFIXES)
    if not rows:
        items, ids = read_new(path)  # images or texts
        texts = items.read_as == "texts"
        files = tuple(path / name for name in ids) if texts else items.paths
        kind = "texts" if texts else "images"
        parts = [slice(start, start + files_per_shard) for start in range(0, len(files), files_per_shard)]
        return [Shard(f"{kind}-{number:06d}", files[part], ids[part], texts) for number, part in enumerate(parts)]
    names = [file.relative_to(path).with_suffix("").as_posix().replace("/", "-") for file in rows]
    if len(set(names)) < len(names):
        raise UnveilError(f"two files in {path} would have results of the same name: rename one")
    return [Shard(name, (file,)) for name, file in zip(names, rows, strict=True)]


def _npy(path: Path) -> NDArray[Any]:
    return checksums.read_array(path, "replace or remove the file")


def _vector_column(path: Path) -> str | None:
    """The column of vectors of a parquet file; None where it has none, or is no parquet file."""
    if path.suffix.lower() != ".parquet":
        return None
    fields = {field.name: str(field.type) for field in _parquet(path).schema_arrow}
    return next((name for name in VECTORS if "list<" in fields.get(name, "")), None)


def _parquet_pieces(path: Path, column: str, name: str) -> Iterator[Piece]:
    file, start = _parquet(path), 0
    with_ids = "id" in file.schema_arrow.names
    for batch in file.iter_batches(batch_size=PIECE, columns=["id", column] if with_ids else [column]):
        count, where = batch.num_rows, f"{path}, rows from {start}"
        ids = [str(one) for one in batch.column("id").to_pylist()] if with_ids else _numbered(name, start, count)
        start += count
        given = batch.column(column)
        vectors = given.drop_null()
        if len(vectors):
            items = Items.of(arrays.checked_items(_matrix(vectors, where), where))
            yield Piece(ids, items, np.asarray(given.is_valid()))
        elif count:
            yield Piece(ids, Items.of(np.zeros((0, 1), dtype=np.float32)), np.zeros(count, dtype=bool))


def _matrix(lists: Any, where: str) -> NDArray[Any]:
    """(n, d): a column of lists of equal length."""
    values: NDArray[Any] = lists.flatten().to_numpy(zero_copy_only=False)
    import pyarrow.compute

    equal = len(pyarrow.compute.list_value_length(lists).unique()) == 1
    if not equal or values.dtype.kind not in "fiu":
        raise UnveilError(f"{where}: the vectors are not numbers, or not all of one length")
    return values.reshape(len(lists), -1).astype(np.float64 if values.dtype == np.float64 else np.float32, copy=False)


def _parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise UnveilError("parquet files need pyarrow: pip install pyarrow") from None
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise UnveilError(f"{path} is not a parquet file ({error}): replace or remove it") from None


def _numbered(name: str, start: int, count: int) -> list[str]:
    return [f"{name}/{row:08d}" for row in range(start, start + count)]
