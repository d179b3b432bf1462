"""Clusters against the true classes, where RUN/truth.csv (columns id and label) has them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil import rng
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy, clustering_scores, contingency
from unveil.numerics import match_clusters
from unveil.runs.reader import Run, read_truth

EXAMPLES = 24  # misplaced items that are shown


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Clusters against classes, for the new items whose true class is known."""

    items: int
    rejected: int  # items whose true class is known and which a person rejected: they are not counted
    unknown_ids: int  # ids in truth.csv that no new item has
    scores: dict[str, float]
    kmeans: float  # accuracy of k-means on the same items
    clusters: tuple[str, ...]
    classes: tuple[str, ...]
    counts: NDArray[np.int64]  # (clusters, classes), ordered so that matched pairs stand on the diagonal
    matched: int  # number of matched pairs: min(clusters, classes)
    misplaced: tuple[tuple[int, str, str], ...]
    """(row, its class, the class that its cluster is matched to): a random sample."""


def compare(run: Run) -> Comparison | None:
    """Compare the clusters with truth.csv; None where there is none."""
    if (truth := read_truth(run)) is None:
        return None
    new = np.flatnonzero(run.new)
    rows = np.array([row for row in new.tolist() if run.ids[row] in truth and run.labels[row] >= 0], dtype=np.int64)
    rejected = sum(run.ids[row] in truth for row in new[run.labels[new] < 0].tolist())
    if len(rows) == 0 and rejected:
        return None
    if len(rows) == 0:
        file = run.folder / "truth.csv"
        raise UnveilError(f"{file} has no id of a new item: its column id must hold ids as in predictions.csv")
    y, labels = np.array([truth[run.ids[row]] for row in rows]), run.labels[rows]
    classes, clusters = np.unique(y), np.unique(labels)
    counts = contingency(y, labels)
    class_of = match_clusters(counts)
    matched = np.flatnonzero(class_of >= 0)
    matched = matched[np.argsort(-counts[matched, class_of[matched]], kind="stable")]
    cluster_order = np.concatenate([matched, np.flatnonzero(class_of < 0)])
    class_order = np.concatenate([class_of[matched], np.setdiff1d(np.arange(len(classes)), class_of)])
    name_of = {int(clusters[i]): str(classes[class_of[i]]) for i in matched}
    wrong = [number for number in range(len(rows)) if name_of.get(int(labels[number])) != y[number]]
    sample = [wrong[i] for i in rng.numpy(0, "misplaced").permutation(len(wrong))[:EXAMPLES]]
    return Comparison(
        items=len(rows),
        rejected=rejected,
        unknown_ids=len(set(truth) - {run.ids[row] for row in new.tolist()}),
        scores=clustering_scores(y, labels),
        kmeans=clustering_accuracy(y, run.kmeans[rows]),
        clusters=tuple(run.classes[clusters[i]] for i in cluster_order),
        classes=tuple(str(classes[j]) for j in class_order),
        counts=counts[np.ix_(cluster_order, class_order)],
        matched=len(matched),
        misplaced=tuple(
            (int(rows[number]), str(y[number]), name_of.get(int(labels[number]), "no class"))
            for number in sorted(sample, key=lambda number: (int(labels[number]), number))
        ),
    )
