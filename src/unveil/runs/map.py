"""Where each item lies in two dimensions, by t-SNE: the map of the report and of the review page.

`python -m unveil.runs.map RUN` makes it and keeps it in the run directory.
"""

import contextlib
import importlib.util
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unveil import files, rng
from unveil.errors import UnveilError
from unveil.runs.reader import Look, load
from unveil.storage import fingerprint

MOST = 5000
"""Items that t-SNE places; the others are put among their neighbours."""
DIMENSIONS = 50
"""Principal components that neighbours are looked for in: fewer are faster, and the map does not change to the eye."""
NEIGHBOURS = 10
NEW_SHARE = 0.75
"""New items are what people come for: so much of the map is theirs where not all items fit."""
PIECE = 8192
DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


@dataclass(frozen=True)
class Places:
    """A place for every item."""

    xy: NDArray[np.float32]
    """(n, 2)"""
    rows: NDArray[np.int64]
    """Items that t-SNE placed, in rising order."""


def places(look: Look, most: int = MOST, seed: int = 0) -> Places:
    """Those kept in the run, or new ones."""
    if (found := kept(look, most, seed)) is not None:
        return found
    made = _made(look, most, seed)
    with contextlib.suppress(UnveilError):  # a run that cannot be written to can still be looked at
        key = np.array(_key(look))
        files.write_with(_path(look), lambda file: np.savez(file, rows=made.rows, xy=made.xy, key=key))
    return made


def kept(look: Look, most: int = MOST, seed: int = 0) -> Places | None:
    """What an earlier call left, if it is of the same items."""
    with contextlib.suppress(*DAMAGED), np.load(_path(look), allow_pickle=False) as stored:
        rows, xy = stored["rows"], stored["xy"]
        same = len(xy) == len(look.ids) and str(stored["key"]) == _key(look)
        if same and np.array_equal(rows, _sample(look.new, most, seed)):
            return Places(xy.astype(np.float32), rows)
    return None


def possible() -> bool:
    """Whether what it needs is installed."""
    return "openTSNE" in sys.modules or importlib.util.find_spec("openTSNE") is not None


def _path(look: Look) -> Path:
    return look.run / "map.npz"


def _key(look: Look) -> str:
    return f"{look.features.shape} {fingerprint(look.features)}"


def _sample(new: NDArray[np.bool_], most: int, seed: int) -> NDArray[np.int64]:
    if len(new) <= most:
        return np.arange(len(new))
    draw = rng.numpy(seed, "map")
    theirs, others = draw.permutation(np.flatnonzero(new)), draw.permutation(np.flatnonzero(~new))
    room = max(round(NEW_SHARE * most), most - len(others))
    chosen = theirs[:room]
    return np.sort(np.concatenate([chosen, others[: most - len(chosen)]]))


def _made(look: Look, most: int, seed: int) -> Places:
    tsne = _tsne()
    rows = _sample(look.new, most, seed)
    components = _principal(look.features, rows)  # (n, d), d >= 2
    xy = components[:, :2].astype(np.float32)
    if len(rows) < 4:  # too few to have neighbours
        return Places(xy, rows)
    some = components[rows]
    start = some[:, :2] / max(float(some[:, 0].std()), 1e-12)
    start = 1e-4 * (start + 1e-3 * rng.numpy(seed, "map start").standard_normal(start.shape))  # no two on one spot
    fitted = tsne(
        perplexity=min(30.0, (len(some) - 1) / 3),
        initialization=start,
        n_jobs=torch.get_num_threads(),
        random_state=rng.number(seed, "map") % 2**31,
    ).fit(some)
    xy[rows] = np.nan_to_num(np.asarray(fitted, dtype=np.float32))
    rest = np.setdiff1d(np.arange(len(xy)), rows)
    if len(rest):
        among = fitted.prepare_partial(components[rest], initialization="median", k=min(NEIGHBOURS, len(rows) - 1))
        xy[rest] = np.nan_to_num(np.asarray(among, dtype=np.float32))
    return Places(xy, rows)


def _principal(features: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """All items of length one on the principal directions of some."""
    some = _unit(features[rows])
    mean = some.mean(axis=0)
    _, vectors = np.linalg.eigh((some - mean).T @ (some - mean))
    axes = vectors[:, ::-1][:, :DIMENSIONS]
    found = np.zeros((len(features), max(2, axes.shape[1])))
    for start in range(0, len(features), PIECE):
        found[start : start + PIECE, : axes.shape[1]] = (_unit(features[start : start + PIECE]) - mean) @ axes
    return found


def _unit(x: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = np.asarray(x, dtype=np.float64)
    found: NDArray[np.float64] = np.nan_to_num(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12))
    return found


def _tsne() -> Any:
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise UnveilError(
            f"the map needs openTSNE ({error}): pip install unveil[review], or leave the map out with --without-map"
        ) from None
    return TSNE


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # whoever waits for something else comes first
    places(load(Path(sys.argv[1])))
