"""What the report says about each novel class: typical and doubtful items, nearest known class, unusual columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import Labels, Matrix, mean_direction, unit_rows
from unveil.runs.reader import Run

MOST_PICTURES = 1600  # approximate number of pictures on all cards together: with many clusters each card has fewer
UNUSUAL_COLUMNS = 5


@dataclass(frozen=True, kw_only=True)
class UnusualColumn:
    """A column of the input in which a cluster differs from all items."""

    column: str
    difference: float  # difference of the means, in standard deviations over all items
    mean: float


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A novel class. Items are rows of the run."""

    index: int
    name: str
    size: int
    confidence: float  # mean over its items; 0 where it has none
    typical: tuple[int, ...] = ()  # items of highest typicality, best first
    doubtful: tuple[int, ...] = ()  # items of lowest confidence, worst first
    nearest: str | None = None  # the known class whose mean direction has the largest cosine to that of the cluster
    cosine: float = 0.0
    neighbors: tuple[int, ...] = ()  # items of that known class, nearest to the cluster first
    columns: tuple[UnusualColumn, ...] = ()


def describe(run: Run) -> list[Cluster]:
    """All novel classes, most confident first, empty ones last."""
    count = max(4, min(12, 3 * MOST_PICTURES // max(1, 7 * run.n_novel)))
    known = [np.flatnonzero(~run.new & (run.labels == index)) for index in range(run.n_known)]
    means = [mean_direction(_features(run, rows)) for rows in known]
    clusters = [_describe(run, index, count, known, means) for index in run.novel]
    return sorted(clusters, key=lambda cluster: (cluster.size == 0, -cluster.confidence, cluster.index))


def _describe(run: Run, index: int, count: int, known: list[Labels], means: list[Matrix]) -> Cluster:
    rows = np.flatnonzero(run.labels == index)
    if len(rows) == 0:
        return Cluster(index=index, name=run.classes[index], size=0, confidence=0.0)
    typical = rows[np.argsort(-run.typicality[rows], kind="stable")][:count]
    others = np.setdiff1d(rows, typical)
    doubtful = others[np.lexsort((run.typicality[others], run.confidence[others]))][: 2 * count // 3]
    mean = mean_direction(_features(run, rows))
    nearest, cosine, neighbors = None, 0.0, np.array([], dtype=np.int64)
    if cosines := {c: float(mean @ means[c]) for c in range(run.n_known) if len(known[c])}:
        best = max(cosines, key=lambda c: cosines[c])
        order = np.argsort(-(unit_rows(_features(run, known[best])) @ mean), kind="stable")
        nearest, cosine, neighbors = run.classes[best], cosines[best], known[best][order][: 2 * count // 3]
    return Cluster(
        index=index,
        name=run.classes[index],
        size=len(rows),
        confidence=float(run.confidence[rows].mean()),
        typical=tuple(typical.tolist()),
        doubtful=tuple(doubtful.tolist()),
        nearest=nearest,
        cosine=cosine,
        neighbors=tuple(neighbors.tolist()),
        columns=() if run.has_pictures else unusual_columns(run, rows),
    )


def unusual_columns(run: Run, rows: NDArray[np.int64]) -> tuple[UnusualColumn, ...]:
    """The columns whose mean in these rows is farthest from that of all rows, in standard deviations."""
    if run.column_statistics is None:
        return ()
    mean, units = run.column_differences(rows, run.column_statistics[0])
    best = np.argsort(-np.abs(units), kind="stable")[:UNUSUAL_COLUMNS]
    found = ((run.column(int(i)), float(units[i]), float(mean[i])) for i in best)
    return tuple(UnusualColumn(column=name, difference=apart, mean=here) for name, apart, here in found)


def _features(run: Run, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.asarray(run.features[rows], dtype=np.float32)
