"""Where each item lies in two dimensions, for the report and the review page."""

import contextlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unveil import files, rng
from unveil.errors import UnveilError
from unveil.look import Look
from unveil.store import fingerprint

DIMENSIONS = 50
"""Principal components that neighbours are looked for in: fewer are faster, and the map does not change to the eye."""
NEW_SHARE = 0.75
"""New items are what people come for: so much of the map is theirs where not all items fit."""


def coordinates(look: Look, most: int = 5000, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rows (in rising order) and their places (len(rows), 2), by t-SNE; kept in map.npz of the run."""
    path, key = look.run / "map.npz", f"{look.features.shape} {fingerprint(look.features)}"
    rows = _sample(look.new, most, seed)
    with contextlib.suppress(OSError, ValueError, KeyError), np.load(path, allow_pickle=False) as kept:
        if str(kept["key"]) == key and np.array_equal(kept["rows"], rows):
            return rows, kept["xy"].astype(np.float32)
    xy = _flatten(np.asarray(look.features[rows], dtype=np.float64), seed)
    with contextlib.suppress(UnveilError):  # a run that cannot be written to can still be looked at
        files.write_with(path, lambda file: np.savez(file, rows=rows, xy=xy, key=np.array(key)))
    return rows, xy


def _sample(new: NDArray[np.bool_], most: int, seed: int) -> NDArray[np.int64]:
    if len(new) <= most:
        return np.arange(len(new))
    draw = rng.numpy(seed, "map")
    theirs, others = draw.permutation(np.flatnonzero(new)), draw.permutation(np.flatnonzero(~new))
    room = max(round(NEW_SHARE * most), most - len(others))
    chosen = theirs[:room]
    return np.sort(np.concatenate([chosen, others[: most - len(chosen)]]))


def _flatten(features: NDArray[np.float64], seed: int) -> NDArray[np.float32]:
    tsne = _tsne()
    length = np.linalg.norm(features, axis=1, keepdims=True)
    unit = np.nan_to_num(features / np.maximum(length, 1e-12))  # (n, D): distances order as cosines do
    components = _principal(unit)  # (n, d), d >= 2
    if len(unit) < 4:  # too few to have neighbours
        return components[:, :2].astype(np.float32)
    draw = rng.numpy(seed, "map start")
    start = components[:, :2] / max(float(components[:, 0].std()), 1e-12)
    start = 1e-4 * (start + 1e-3 * draw.standard_normal(start.shape))  # equal items must not stand on one spot
    fit = tsne(
        perplexity=min(30.0, (len(unit) - 1) / 3),
        initialization=start,
        n_jobs=torch.get_num_threads(),
        random_state=rng.number(seed, "map") % 2**31,
    )
    return np.nan_to_num(np.asarray(fit.fit(components), dtype=np.float32))


def _principal(unit: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = unit - unit.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    found = centred @ vectors[:, ::-1][:, :DIMENSIONS]
    return np.pad(found, ((0, 0), (0, max(0, 2 - found.shape[1]))))


def _tsne() -> Any:
    try:
        from openTSNE import TSNE
    except ImportError as error:
        raise UnveilError(
            f"the map needs openTSNE ({error}): pip install unveil[paper], or leave the map out with --without-map"
        ) from None
    return TSNE
