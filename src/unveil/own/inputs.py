"""Check the inputs of the estimator: a matrix of numbers, a data frame, images, paths to image files, or texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from unveil.data.arrays import checked_items
from unveil.data.folders import EXTENSIONS
from unveil.data.items import Items
from unveil.data.table import Table, texts_column
from unveil.data.table_encoding import fit_table
from unveil.errors import UnveilError
from unveil.numerics import loses_in_float32

PIECE = 65_536


def read_items(estimator: Any, X: Any, *, reset: bool) -> Items:
    """X as items: images, image files, texts, rows of a table, or vectors (n, d) or (n, views, d)."""
    X, left_out = as_usual(X)
    items = _read_items(estimator, X, reset=reset)
    if reset and left_out:
        estimator._input_notes = [f"left out: {', '.join(left_out)} (class labels)", *estimator._input_notes]
    return items


def as_usual(X: Any) -> tuple[Any, list[str]]:
    """A data set of Hugging Face's `datasets` as a data frame, without its class labels, and the names of these. A
    column of one as a list. Anything else as it is."""
    if all(hasattr(X, name) for name in ("features", "column_names", "to_pandas")):
        kinds = {name: type(kind).__name__ for name, kind in X.features.items()}
        if pictures := [name for name, kind in kinds.items() if kind in ("Image", "Video", "Audio")]:
            raise UnveilError(
                f"the column '{pictures[0]}' of X holds {kinds[pictures[0]].lower()} data: give images as an array "
                "(n, height, width, 3) or as paths, and other items as vectors"
            )
        labels = [name for name, kind in kinds.items() if kind == "ClassLabel"]
        return X.to_pandas().drop(columns=labels), labels
    if isinstance(X, Sequence) and not isinstance(X, list | tuple | str | bytes):
        return list(X), []
    return X, []


def _read_items(estimator: Any, X: Any, *, reset: bool) -> Items:
    for read in (images_of, texts_of):
        items = read(X)
        if items is not None:
            if estimator.text is not None:
                raise UnveilError("text names a column of a data frame, and X is none: leave text out")
            return items
    if is_mixed(X) or (is_frame(X) and estimator.text is not None):
        return _table_items(estimator, X, reset=reset)
    if estimator.text is not None:
        raise UnveilError("text names a column of a data frame, and X is none: leave text out")
    return Items.of(matrix_of(estimator, X, reset=reset))


def check_kind(X: Any, fitted: str | None) -> None:
    """Raise an error where the fit was on images or texts, and X is a matrix or a table."""
    X, _ = as_usual(X)
    if fitted in ("images", "texts") and images_of(X) is None and texts_of(X) is None:
        what = "a data frame" if is_frame(X) else "vectors"
        raise UnveilError(f"the fit was on {fitted}, and X holds {what}: give {fitted}")


def images_of(X: Any) -> Items | None:
    """Images or image files, or None where X is something else."""
    if isinstance(X, np.ndarray) and X.dtype == np.uint8 and X.ndim in (3, 4):
        images = checked_items(X, "X")
        return Items.of(images) if images.shape[-1] in (1, 3) else None
    names = _strings(X)
    if names is None or not _are_paths(names):
        return None
    return _existing([Path(name) for name in names])


def texts_of(X: Any) -> Items | None:
    """Texts, or None where X is something else."""
    texts = _strings(X)
    if texts is None:
        return None
    if not any(str(text).strip() for text in texts):
        raise UnveilError("every text of X is empty: give sentences")
    return Items.of_texts([str(text) for text in texts])


def _strings(X: Any) -> list[str | Path] | None:
    """A list, array or series of texts or paths as a list; None where X is none."""
    if isinstance(X, np.ndarray) or (hasattr(X, "to_numpy") and hasattr(X, "name")):  # a series has a name
        values = np.asarray(X)
        if values.ndim != 1 or values.dtype.kind not in "UOT":
            return None
        X = values.tolist()
    if not isinstance(X, list | tuple) or not X:
        return None
    strings = sum(isinstance(value, str | Path) for value in X)
    if 0 < strings < len(X):
        row = next(row for row, value in enumerate(X) if not isinstance(value, str | Path))
        raise UnveilError(
            f"X holds texts, but row {row} is {X[row]!r}: give a text for every item, or take the row out"
        )
    return list(X) if strings else None


def _are_paths(names: list[str | Path]) -> bool:
    """Whether most of them look like image files."""
    looks = sum(isinstance(name, Path) or Path(name[-300:]).suffix.lower() in EXTENSIONS for name in names)
    return looks > len(names) / 2


def _existing(paths: list[Path]) -> Items:
    if missing := [path for path in paths if not path.is_file()]:
        raise UnveilError(
            f"{len(missing)} of {len(paths)} image files do not exist, the first is {missing[0]}: correct the paths"
        )
    return Items.of(paths)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def is_mixed(X: Any) -> bool:
    """Whether X is a data frame with more than numbers, or with missing ones."""
    if not is_frame(X):
        return False
    columns = [np.asarray(X[name]) for name in X.columns]
    return any(c.dtype.kind not in "fiub" or (c.dtype.kind == "f" and np.isnan(c).any()) for c in columns)


def _table_items(estimator: Any, X: Any, *, reset: bool) -> Items:
    table = frame_table(X, estimator.text)
    if reset:
        encoding, notes = fit_table(table, None if estimator.text is None else table.without({table.text}).names)
        if not encoding.has_numbers and encoding.text is None:
            raise UnveilError("X has no columns of numbers: name the column of texts with text='COLUMN'")
        estimator.feature_names_in_ = np.array([column.name for column in encoding.columns], dtype=object)
        estimator.n_features_in_ = len(encoding.columns)
        estimator._input_notes = notes
    wanted = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if missing := [name for name in wanted if name not in table.columns]:
        raise UnveilError(f"X lacks the column {missing[0]!r}, which the fit had: give the same columns")
    return Items("table", table.only(wanted))


def frame_table(X: Any, text: str | None = None) -> Table:
    """A data frame as a table."""
    columns: dict[str, NDArray[Any]] = {}
    for name in X.columns:
        values = np.asarray(X[name])
        if values.dtype.kind in "fiu":
            columns[str(name)] = values.astype(np.float64)
        elif all(_absent(value) or _is_number(value) for value in values.tolist()) and values.dtype.kind == "O":
            numbers = [np.nan if _absent(value) else float(value) for value in values.tolist()]
            columns[str(name)] = np.array(numbers, dtype=np.float64)
        elif values.dtype.kind == "O" and (vectors := _vectors(values)) is not None:
            columns[str(name)] = vectors
        else:
            columns[str(name)] = texts_column("" if _absent(value) else str(value) for value in values.tolist())
    table = Table(columns)
    return table if text is None else Table(columns, table.find(text, "text", "X"))


def _vectors(values: NDArray[Any]) -> NDArray[np.float32] | None:
    """A column of lists or arrays of numbers, as many in every row, as a matrix; None where it is none."""
    if not all(isinstance(value, list | tuple | np.ndarray) for value in values):
        return None
    try:
        matrix = np.array([np.asarray(value, dtype=np.float32) for value in values])
    except (TypeError, ValueError):
        return None
    return matrix if matrix.ndim == 2 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _absent(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def matrix_of(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.floating]:
    """X (n, d) or (n, views, d), checked; a memory-mapped file is not loaded."""
    if isinstance(X, np.memmap) and X.dtype.kind == "f" and X.ndim == 2:
        _check_finite(X)
        if reset:
            estimator.n_features_in_ = X.shape[1]
        elif estimator.n_features_in_ != X.shape[1]:
            raise UnveilError(f"X has {X.shape[1]} features, but the fit had {estimator.n_features_in_}: give the same")
        return X
    if isinstance(X, np.ndarray) and X.ndim == 3:
        n, views, d = X.shape
        if views == 0:
            raise UnveilError(f"X has shape {X.shape}: give at least one view of each item")
        flat: NDArray[np.floating] = validate_data(estimator, X.reshape(n * views, d), reset=reset, dtype=np.float32)
        return flat.reshape(n, views, d) if views > 1 else flat
    least = 2 if reset else 1
    checked: NDArray[np.floating] = validate_data(
        estimator, X, reset=reset, dtype=[np.float32, np.float64], ensure_min_samples=least
    )
    with np.errstate(over="ignore"):
        small = checked.astype(np.float32, copy=False)
    if not np.isfinite(small).all():
        raise UnveilError("X has numbers too large for float32: scale them down")
    return checked if loses_in_float32(checked) else small


def _check_finite(X: NDArray[np.floating]) -> None:
    for start in range(0, len(X), PIECE):
        if not np.isfinite(X[start : start + PIECE]).all():
            raise UnveilError(f"X has NaN or infinite numbers from row {start} on: remove or repair such rows")


def check_readable(readable: NDArray[np.bool_], items: Items) -> None:
    """Raise an error for files that are not images: the estimator returns a label for every row."""
    if (bad := np.flatnonzero(~readable)).size:
        raise UnveilError(
            f"{len(bad)} files cannot be read as images, the first is {items.paths[bad[0]]}: take them out of X"
        )


def row_ids(X: Any) -> tuple[str, ...] | None:
    """The index of a data frame or series as names of its rows; None where it only counts them, or repeats."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or len(index) == 0:  # a list has a method of that name
        return None
    names = tuple(str(name) for name in index)
    counted = all(name == str(row) for row, name in enumerate(names))
    return None if counted or len(set(names)) < len(names) else names
