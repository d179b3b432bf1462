"""Check the inputs of the estimator: a matrix of numbers, images, or paths to image files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from unveil.data.arrays import checked_items
from unveil.data.items import Items
from unveil.errors import UnveilError
from unveil.numerics import loses_in_float32

PIECE = 65_536


def read_items(estimator: Any, X: Any, *, reset: bool) -> Items:
    """X as items: images, image files, or vectors (n, d) or (n, views, d)."""
    images = images_of(X)
    return images if images is not None else Items.of(matrix_of(estimator, X, reset=reset))


def images_of(X: Any) -> Items | None:
    """Images or image files, or None where X is a matrix of numbers."""
    if isinstance(X, np.ndarray) and X.dtype == np.uint8 and X.ndim in (3, 4):
        images = checked_items(X, "X")
        return Items.of(images) if images.shape[-1] in (1, 3) else None
    if isinstance(X, list | tuple) and X and all(isinstance(path, str | Path) for path in X):
        return _existing([Path(path) for path in X])
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "UO" and all(isinstance(p, str | Path) for p in X):
        return _existing([Path(path) for path in X.tolist()])
    return None


def _existing(paths: list[Path]) -> Items:
    if missing := [path for path in paths if not path.is_file()]:
        raise UnveilError(f"{len(missing)} of {len(paths)} image files do not exist, the first is {missing[0]}")
    return Items.of(paths)


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
