"""The map of a run: each item as a point in two dimensions, by t-SNE. Report and review page show the same map.

`python -m unveil.runs.map RUN` makes it and stores it in the run directory.
"""

import contextlib
import importlib.util
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil import files, rng
from unveil.data.items import Items
from unveil.errors import UnveilError
from unveil.numerics import principal_directions, unit_rows
from unveil.runs.reader import Run, load

MOST = 5000  # most items that t-SNE is fitted to; every other item is placed among its neighbors
DIMENSIONS = 50
"""Principal components in which t-SNE looks for neighbors: with more it is slower and the map looks the same."""
NEIGHBORS = 10
NEW_SHARE = 0.75  # share of new items among those that t-SNE places, where there are more than `MOST` items
ONE_THREAD_ROWS = 1000  # with so few items, threads would wait for each other most of the time
PIECE = 8192  # rows that are read at a time: features are memory-mapped and may be many
DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A point for every item."""

    xy: NDArray[np.float32]  # (n, 2): 0 to 1 from left to right and from top to bottom, as on a screen
    sample: NDArray[np.int64]  # rows that t-SNE placed, in rising order; the report shows these


def layout_of(run: Run, most: int = MOST, seed: int = 0) -> Layout:
    """The stored layout of a run, or a new one, which is stored."""
    if (stored := stored_layout(run, most, seed)) is not None:
        return stored
    layout = _by_tsne(run, most, seed)
    with contextlib.suppress(UnveilError):  # a run on a read-only disk can still be shown
        key = np.array(_key(run))
        files.write_with(_path(run), lambda file: np.savez(file, xy=layout.xy, sample=layout.sample, key=key))
    return layout


def stored_layout(run: Run, most: int = MOST, seed: int = 0) -> Layout | None:
    """The layout in map.npz; None where there is none or it belongs to other features."""
    with contextlib.suppress(*DAMAGED), np.load(_path(run), allow_pickle=False) as stored:
        xy, sample = stored["xy"], stored["sample"]
        same = len(xy) == len(run.ids) and str(stored["key"]) == _key(run)
        if same and np.array_equal(sample, _sample(run.new, most, seed)):
            return Layout(xy=xy.astype(np.float32), sample=sample)
    return None


def quick_layout(run: Run) -> Layout:
    """A layout by the two principal directions of the new items, to be shown until t-SNE is ready."""
    rows = np.flatnonzero(run.new) if run.new.any() else np.arange(len(run.ids))
    return Layout(xy=_to_square(projected(run.features, rows, 2)), sample=np.arange(len(run.ids)))


def can_use_tsne() -> bool:
    """Whether openTSNE is installed."""
    return "openTSNE" in sys.modules or importlib.util.find_spec("openTSNE") is not None


def threads(rows: int) -> int:
    """Threads for t-SNE of so many items, at most what OMP_NUM_THREADS says."""
    if rows <= ONE_THREAD_ROWS:
        return 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(asked) if asked.isdecimal() and int(asked) > 0 else os.cpu_count() or 1


def projected(features: NDArray[np.float32], rows: NDArray[np.int64], dimensions: int) -> NDArray[np.float32]:
    """(n, dimensions): all items, at unit length, projected on the principal directions of the given rows.

    The projection never increases a distance. Features with fewer dimensions are padded with zeros.
    """
    n, d = features.shape
    total, squares = np.zeros(d), np.zeros((d, d))
    for start in range(0, len(rows), PIECE):
        x = _unit(features[rows[start : start + PIECE]])
        total += x.sum(axis=0)
        squares += x.T @ x
    mean = total / max(1, len(rows))
    directions = principal_directions(squares / max(1, len(rows)) - np.outer(mean, mean), dimensions)
    points = np.zeros((n, dimensions), dtype=np.float32)
    for start in range(0, n, PIECE):
        x = _unit(features[start : start + PIECE])
        points[start : start + PIECE, : directions.shape[1]] = (x - mean) @ directions
    return points


def _unit(x: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.nan_to_num(unit_rows(np.asarray(x, dtype=np.float64)))


def _path(run: Run) -> Path:
    return run.folder / "map.npz"


def _key(run: Run) -> str:
    return f"{run.features.shape} {Items.of(run.features).fingerprint()}"


def _sample(new: NDArray[np.bool_], most: int, seed: int) -> NDArray[np.int64]:
    if len(new) <= most:
        return np.arange(len(new))
    draw = rng.numpy(seed, "map")
    new_rows, others = draw.permutation(np.flatnonzero(new)), draw.permutation(np.flatnonzero(~new))
    room = max(round(NEW_SHARE * most), most - len(others))
    chosen = new_rows[:room]
    return np.sort(np.concatenate([chosen, others[: most - len(chosen)]]))


def _by_tsne(run: Run, most: int, seed: int) -> Layout:
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise UnveilError(
            f"the map needs openTSNE ({error}): pip install unveil[review], or leave the map out with --without-map"
        ) from None
    sample = _sample(run.new, most, seed)
    points = projected(run.features, sample, max(2, min(DIMENSIONS, run.features.shape[1]))).astype(np.float64)
    xy = points[:, :2].astype(np.float32)
    if len(sample) < 4:  # t-SNE needs neighbors
        return Layout(xy=_to_square(xy), sample=sample)
    sampled = points[sample]
    start = sampled[:, :2] / max(float(sampled[:, 0].std()), 1e-12)
    start = 1e-4 * (start + 1e-3 * rng.numpy(seed, "map start").standard_normal(start.shape))  # no two at one point
    fitted = TSNE(
        perplexity=min(30.0, (len(sampled) - 1) / 3),
        initialization=start,
        n_jobs=threads(len(sampled)),
        random_state=rng.number(seed, "map") % 2**31,
    ).fit(sampled)
    xy[sample] = np.nan_to_num(np.asarray(fitted, dtype=np.float32))
    others = np.setdiff1d(np.arange(len(xy)), sample)
    if len(others):
        placed = fitted.prepare_partial(points[others], initialization="median", k=min(NEIGHBORS, len(sample) - 1))
        xy[others] = np.nan_to_num(np.asarray(placed, dtype=np.float32))
    return Layout(xy=_to_square(xy), sample=sample)


def _to_square(xy: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale the points into the middle of the square from 0 to 1, with y = 0 at the top as on a screen."""
    if len(xy) == 0:
        return xy
    low, high = xy.min(axis=0), xy.max(axis=0)
    scale = max(float((high - low).max()), 1e-12)
    square: NDArray[np.float32] = ((xy - (low + high) / 2) / scale * [1, -1] + 0.5).astype(np.float32)
    return np.clip(square, 0, 1)  # rounding


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # the review page needs the processor more
    layout_of(load(Path(sys.argv[1])))
