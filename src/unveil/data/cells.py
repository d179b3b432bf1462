"""Cells (`.h5ad`, by anndata) and data sets that Hugging Face's `datasets` saved, as tables."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.table import Column, Table, texts_column
from unveil.data.table_columns import arrow_table
from unveil.errors import UnveilError

FIRST = ("X_pca", "X_scVI", "X_scvi", "X_harmony", "X_emb")  # usual names of vectors of cells, the best known first
MOST_VALUES = 400_000_000  # a larger matrix of genes is not read as a whole
INSTALL = "pip install 'unveil[cells]'"


def read_cells(path: Path, as_text: Collection[str] = ()) -> Table:
    """The observations of an `.h5ad` file: their columns, the names of the cells as `id`, and vectors: those of `obsm`,
    or the matrix of genes (`X`) where there are none."""
    cells = open_cells(path)
    columns: dict[str, Column] = {}
    if not any(str(name).lower() == "id" for name in cells.obs.columns):
        columns["id"] = texts_column(map(str, cells.obs_names))
    for name in cells.obs.columns:
        values = cells.obs[name]
        numeric = values.dtype.kind in "fiu" and str(name).lower() not in as_text
        texts = ("" if _absent(value) else str(value) for value in values)
        columns[str(name)] = values.to_numpy(np.float64) if numeric else texts_column(texts)
    names = sorted(cells.obsm.keys(), key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    vectors = {name: np.asarray(cells.obsm[name]) for name in names if getattr(cells.obsm[name], "ndim", 0) == 2}
    vectors = {name: array.astype(np.float32) for name, array in vectors.items() if array.shape[1] > 3}  # no maps
    return Table({**columns, **(vectors or {"X": _genes(cells, path)})})


def open_cells(path: Path) -> Any:
    """The file as anndata reads it."""
    try:
        import anndata
    except ImportError as error:
        raise UnveilError(f"{path} needs the package anndata ({error}): {INSTALL}") from None
    try:
        return anndata.read_h5ad(path)
    except Exception as error:  # a damaged file can raise nearly anything
        reason = " ".join(str(error).split())[:200]
        raise UnveilError(f"{path} cannot be read as h5ad ({reason}): write it again with anndata") from None


def write_cells(cells: Any, path: Path) -> None:
    """Write an `.h5ad` file. Texts are plain objects first: not every anndata writes the newer ones of pandas."""
    import pandas as pd

    for frame in (cells.obs, cells.var):
        frame.index = pd.Index(frame.index, dtype=object)
        for name in frame.columns:
            column = frame[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                names = pd.Index(column.cat.categories, dtype=object)
                frame[name] = pd.Categorical.from_codes(column.cat.codes, categories=names)
            elif pd.api.types.is_string_dtype(column.dtype):
                frame[name] = column.astype(object)
    cells.write_h5ad(path)


def _genes(cells: Any, path: Path) -> Column:
    if cells.X is None:
        raise UnveilError(f"{path} has neither X nor vectors in obsm: add some, for example with scanpy's pp.pca")
    if cells.X.shape[0] * cells.X.shape[1] > MOST_VALUES:
        raise UnveilError(
            f"{path} has {cells.X.shape[0]:,} cells of {cells.X.shape[1]:,} genes and no vectors in obsm: reduce them "
            "first, for example with scanpy's pp.pca, which writes X_pca"
        )
    dense = cells.X.toarray() if hasattr(cells.X, "toarray") else cells.X
    return np.asarray(dense, dtype=np.float32)


def _absent(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def is_saved_dataset(path: Path) -> bool:
    """Whether a folder is what `Dataset.save_to_disk` writes."""
    return path.is_dir() and (path / "dataset_info.json").is_file() and (path / "state.json").is_file()


def check_one_split(path: Path) -> None:
    """Raise an error for a folder that `DatasetDict.save_to_disk` wrote: it holds several data sets."""
    if (path / "dataset_dict.json").is_file():
        splits = sorted(folder.name for folder in path.iterdir() if is_saved_dataset(folder))
        raise UnveilError(f"{path} holds the data sets {', '.join(splits)}: give one of them, as {path}/NAME")


def read_dataset(path: Path, as_text: Collection[str] = ()) -> Table:
    """A data set of Hugging Face's `datasets`; labels have the names of its classes, and -1 means none."""
    try:
        import pyarrow as pa

        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        info = json.loads((path / "dataset_info.json").read_text(encoding="utf-8"))
        parts = [_arrow(path / str(file["filename"])) for file in state["_data_files"]]
        table = arrow_table(pa.concat_tables(parts), path, as_text)
    except ImportError as error:
        raise UnveilError(f"{path} needs the package pyarrow ({error}): pip install pyarrow") from None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        if isinstance(error, UnveilError):
            raise
        raise UnveilError(f"{path} cannot be read as a data set ({error}): save it again") from None
    columns = dict(table.columns)
    for name, feature in (info.get("features") or {}).items():
        names = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
        if names and name in columns:
            numbers = [int(float(cell)) if str(cell) not in ("", "nan") else -1 for cell in columns[name].tolist()]
            columns[name] = texts_column(str(names[n]) if 0 <= n < len(names) else "" for n in numbers)
    return Table(columns)


def _arrow(file: Path) -> Any:
    """One file of a saved data set: a stream, or a file, of Arrow."""
    import pyarrow as pa

    with pa.memory_map(str(file)) as source:
        try:
            return pa.ipc.open_stream(source).read_all()
        except pa.ArrowInvalid:
            return pa.ipc.open_file(source).read_all()
