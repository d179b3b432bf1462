"""What there is to say about each cluster: typical and doubtful items, the nearest known class, telling columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.runs.reader import Look

ROOM = 1600
"""Pictures in the whole gallery, about: with many clusters each shows fewer."""
TELLING = 5


@dataclass(frozen=True, kw_only=True)
class Telling:
    """A column of the input in which a cluster differs from all items."""

    column: str
    difference: float
    """Of the means, in standard deviations over all items."""
    mean: float


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Rows are rows of the look."""

    index: int
    name: str
    size: int
    confidence: float
    """The mean over its items; 0 where it has none."""
    typical: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()
    nearest: str | None = None
    """The known class whose mean points most in the same direction."""
    cosine: float = 0.0
    near: tuple[int, ...] = ()
    """Items of that class, the nearest first."""
    telling: tuple[Telling, ...] = ()


def describe(look: Look) -> list[Cluster]:
    """All clusters, surest first, empty ones last."""
    each = max(4, min(12, 3 * ROOM // max(1, 7 * (len(look.classes) - look.n_known))))
    known = [np.flatnonzero(~look.new & (look.labels == index)) for index in range(look.n_known)]
    means = [_mean(look, rows) for rows in known]
    found = [_describe(look, index, each, known, means) for index in range(look.n_known, len(look.classes))]
    return sorted(found, key=lambda cluster: (cluster.size == 0, -cluster.confidence, cluster.index))


def _describe(
    look: Look, index: int, each: int, known: list[NDArray[np.int64]], means: list[NDArray[np.float32]]
) -> Cluster:
    rows = np.flatnonzero(look.labels == index)
    if len(rows) == 0:
        return Cluster(index=index, name=look.classes[index], size=0, confidence=0.0)
    typical = rows[np.argsort(-look.typicality[rows], kind="stable")][:each]
    others = np.setdiff1d(rows, typical)
    doubtful = others[np.lexsort((look.typicality[others], look.confidence[others]))][: 2 * each // 3]
    mean = _mean(look, rows)
    nearest, cosine, near = None, 0.0, np.array([], dtype=np.int64)
    if cosines := {c: _cosine(mean, means[c]) for c in range(look.n_known) if len(known[c])}:
        best = max(cosines, key=lambda c: cosines[c])
        order = np.argsort(-(_unit(look, known[best]) @ mean), kind="stable")
        nearest, cosine, near = look.classes[best], cosines[best], known[best][order][: 2 * each // 3]
    return Cluster(
        index=index,
        name=look.classes[index],
        size=len(rows),
        confidence=float(look.confidence[rows].mean()),
        typical=tuple(typical.tolist()),
        doubtful=tuple(doubtful.tolist()),
        nearest=nearest,
        cosine=cosine,
        near=tuple(near.tolist()),
        telling=() if look.has_pictures else telling(look, rows),
    )


def telling(look: Look, rows: NDArray[np.int64]) -> tuple[Telling, ...]:
    """The columns whose mean in these rows is furthest from that of all rows, in units of spread."""
    inputs = look.inputs
    if inputs is None or inputs.ndim != 2:
        return ()
    spread = inputs.std(axis=0, dtype=np.float64)
    mean = inputs[rows].mean(axis=0, dtype=np.float64)
    away = mean - inputs.mean(axis=0, dtype=np.float64)
    units = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0)
    best = np.argsort(-np.abs(units), kind="stable")[:TELLING]
    return tuple(Telling(column=look.column(int(i)), difference=float(units[i]), mean=float(mean[i])) for i in best)


def _unit(look: Look, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    features = np.asarray(look.features[rows], dtype=np.float32)
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return np.asarray(features / np.maximum(length, 1e-12), dtype=np.float32)


def _mean(look: Look, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    if len(rows) == 0:
        return np.zeros(look.features.shape[1], dtype=np.float32)
    return np.asarray(_unit(look, rows).mean(axis=0), dtype=np.float32)


def _cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12))
