"""Clustering without training: k-means that scales, and k-means that keeps labeled items in their class."""

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from unveil.clustering.clusterer import Clusterer, Clustering, nearest_center
from unveil.data.task import UNLABELED
from unveil.numerics import Labels, Matrix, spread_rows, squared_distances, sums_by_label

SAMPLE = 50_000
"""Rows to which centers are fitted; the others are only assigned."""
PIECE = 20_000


@dataclass(frozen=True)
class Clusters:
    """Centers (k, d), the cluster of each row, and the mean squared distance of the rows to their centers."""

    centers: Matrix
    labels: Labels
    inertia: float

    def confidence(self, x: Matrix) -> Matrix:
        """From 0.5 (half way between two centers) to 1 (at a center), by the distances to the nearest two."""
        return relative_distance(x, self.centers)


def kmeans(x: Matrix, clusters: int, seed: int, *, n_init: int = 10, rows: int = SAMPLE) -> Clusters:
    """Plain k-means; centers come from a sample where there are very many rows."""
    sample = np.ascontiguousarray(x[spread_rows(len(x), rows)], dtype=np.float32)
    fitted = KMeans(min(clusters, len(sample)), n_init=n_init, random_state=seed % 2**32).fit(sample)
    return assigned(x, fitted.cluster_centers_.astype(np.float32))


def semi_kmeans(
    x: Matrix, labeled: Matrix, y: Labels, clusters: int, seed: int, *, n_init: int = 5, iterations: int = 60
) -> Clusters:
    """k-means of `x` with `clusters` clusters, the first of which are the classes of the labeled rows.

    Labeled rows stay in their class and count in its center; the other centers start from k-means++ on `x`.
    """
    rows = spread_rows(len(x), SAMPLE)
    sample, classes = np.ascontiguousarray(x[rows], dtype=np.float32), int(y.max()) + 1 if len(y) else 0
    sums = sums_by_label(labeled, y, classes)
    counts = np.bincount(y, minlength=classes).astype(np.float64)
    known = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
    best: tuple[float, Matrix] | None = None
    for trial in range(n_init):
        centers = np.concatenate([known, _seeded(sample, known, clusters - classes, seed + trial)])
        for _ in range(iterations):
            labels, distances = _nearest(sample, centers)
            total = sums_by_label(sample, labels, len(centers))
            size = np.bincount(labels, minlength=len(centers)).astype(np.float64)
            total[:classes] += sums
            size[:classes] += counts
            new = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], centers).astype(np.float32)
            moved = float(np.square(new - centers).sum())
            centers = new
            if moved < 1e-6 * float(np.square(centers).sum() + 1e-12):
                break
        score = float(distances.mean())
        if best is None or score < best[0]:
            best = score, centers
    assert best is not None
    return assigned(x, best[1])


def relative_distance(x: Matrix, centers: Matrix) -> Matrix:
    """d2 / (d1 + d2) of the distances to the nearest and the second nearest center; 1 where there is one center."""
    confidence = np.ones(len(x), dtype=np.float32)
    if len(centers) < 2:
        return confidence
    for start in range(0, len(x), PIECE):
        distances = np.sqrt(squared_distances(x[start : start + PIECE], centers))
        first, second = np.partition(distances, 1, axis=1)[:, :2].T
        confidence[start : start + PIECE] = second / np.maximum(first + second, 1e-12)
    return confidence


def _seeded(x: Matrix, known: Matrix, count: int, seed: int) -> Matrix:
    """`count` k-means++ centers in addition to the known ones."""
    if count <= 0:
        return np.empty((0, x.shape[1]), dtype=np.float32)
    if len(known) == 0:
        centers: Matrix = kmeans_plusplus(x, min(count, len(x)), random_state=seed % 2**32)[0]
        return centers
    draw = np.random.default_rng(seed)
    distances = _nearest(x, known)[1].astype(np.float64)
    chosen: list[int] = []
    for _ in range(min(count, len(x))):
        weight = distances / distances.sum() if distances.sum() > 0 else np.full(len(x), 1 / len(x))
        chosen.append(int(draw.choice(len(x), p=weight)))
        distances = np.minimum(distances, np.square(x - x[chosen[-1]]).sum(axis=1))
    return x[chosen]


def _nearest(x: Matrix, centers: Matrix) -> tuple[Labels, Matrix]:
    """The nearest center of each row and the squared distance to it."""
    half = np.square(centers).sum(axis=1) / 2
    labels, distances = np.empty(len(x), dtype=np.int64), np.empty(len(x), dtype=np.float32)
    for start in range(0, len(x), PIECE):
        piece = np.asarray(x[start : start + PIECE], dtype=np.float32)
        score = piece @ centers.T - half
        best = score.argmax(axis=1)
        labels[start : start + PIECE] = best
        gap = np.square(piece).sum(axis=1) - 2 * score[np.arange(len(piece)), best]
        distances[start : start + PIECE] = np.maximum(gap, 0)
    return labels, distances


def assigned(x: Matrix, centers: Matrix) -> Clusters:
    """Assign every row to the cluster of its nearest center."""
    labels, distances = _nearest(x, centers)
    return Clusters(centers, labels, float(distances.mean()) if len(distances) else 0.0)


class KMeansClusterer(Clusterer):
    """k-means on the vectors as they are."""

    title = "k-means on the features as they are"
    description = "k-means on the vectors"

    def fit(self, z: Matrix, labels: Labels, n_novel: int, seed: int) -> Clustering:
        x = z[labels == UNLABELED]
        fitted = KMeans(n_novel, n_init=10, random_state=seed).fit(x)
        return Clustering(
            labels=fitted.labels_.astype(np.int64),
            certainty=relative_distance(x, fitted.cluster_centers_),
            head=nearest_center(fitted.cluster_centers_),
        )
