"""What people would use instead, on the same vectors: scikit-learn, UMAP, HDBSCAN, EVoC at their usual settings.

They are for benchmarks alone (extra `peers`), not requirements of the product.
"""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.mixture import GaussianMixture
from sklearn.semi_supervised import LabelSpreading

from unveil.clustering.kmeans import semi_kmeans
from unveil.numerics import unit_rows

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]


def usual_scaling(x: Vectors, kind: str) -> Vectors:
    """What people would do first: embeddings at unit length, standardized columns of tables, pixels as they are."""
    if kind == "embeddings":
        return unit_rows(x)
    if kind == "table":
        return ((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)).astype(np.float32)
    return x


def kmeans(x: Vectors, clusters: int, seed: int) -> Labels:
    return KMeans(clusters, n_init=10, random_state=seed).fit_predict(x)


def hdbscan(x: Vectors, clusters: int, seed: int) -> Labels:
    """Finds its own number of clusters; items that it calls noise are a cluster of their own."""
    return HDBSCAN(min_cluster_size=max(10, len(x) // 100), copy=True).fit_predict(x)


def gaussian_mixture(x: Vectors, clusters: int, seed: int) -> Labels:
    rows = x - x.mean(axis=0)
    rows = rows @ np.linalg.svd(rows, full_matrices=False)[2][:32].T
    rows = rows / rows.std()  # so that the regularization means the same for pixels and for embeddings
    mixture = GaussianMixture(clusters, covariance_type="full", reg_covar=1e-3, n_init=2, random_state=seed)
    return mixture.fit_predict(rows)


def evoc(x: Vectors, clusters: int, seed: int) -> Labels:
    """Finds its own number of clusters."""
    from evoc import EVoC

    return EVoC(random_state=seed).fit_predict(x)


def umap_places(x: Vectors, seed: int, y: Labels | None = None) -> Vectors:
    """Five dimensions, 15 neighbors, no distance between neighbors; with y: given the known labels, and -1."""
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return UMAP(n_neighbors=15, n_components=5, min_dist=0.0, random_state=seed).fit_transform(x, y)


Cluster = Callable[[Vectors, int, int], Labels]
ON_VECTORS: dict[str, Cluster] = {
    "k-means": kmeans,
    "EVoC": evoc,
}
ON_UMAP: dict[str, Cluster] = {
    "UMAP + k-means": kmeans,
    "UMAP + Gaussian mixture": gaussian_mixture,
    "UMAP + HDBSCAN": hdbscan,
}
ON_UMAP_WITH_LABELS: dict[str, Cluster] = {"UMAP with labels + k-means": kmeans}
PEERS = ("k-means", "UMAP + k-means", "UMAP + Gaussian mixture", "UMAP with labels + k-means", "UMAP + HDBSCAN", "EVoC")
FIND_THEIR_NUMBER = ("UMAP + HDBSCAN", "EVoC")


def semi_supervised_kmeans(x: Vectors, y: Labels, novel: int, seed: int) -> Labels:
    """k-means of all rows, of which labeled ones stay in their class."""
    classes, known = np.unique(y[y >= 0], return_inverse=True)
    return semi_kmeans(x[y < 0], x[y >= 0], known, len(classes) + novel, seed).labels


def label_spreading(x: Vectors, y: Labels, novel: int, seed: int) -> Labels:
    """Labels spread over neighbors; of the unlabeled rows, as many as k-means puts into new clusters are new.

    Label spreading has no new classes. k-means with as many clusters as there are classes in all says which rows lie
    in clusters without labeled rows; these rows keep their cluster, and all others the label that spread to them.
    """
    classes, known = np.unique(y[y >= 0], return_inverse=True)
    given = np.full(len(y), -1)
    given[y >= 0] = known
    spread = LabelSpreading(kernel="knn", n_neighbors=10, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = spread.fit(x, given).transduction_[y < 0]
    clusters = KMeans(len(classes) + novel, n_init=10, random_state=seed).fit_predict(x)
    share = np.bincount(clusters, y >= 0, len(classes) + novel) / np.maximum(np.bincount(clusters), 1)
    new = np.argsort(share)[:novel]  # the clusters with the smallest share of labeled rows
    own = clusters[y < 0]
    place = np.full(len(share), -1)
    place[new] = len(classes) + np.arange(novel)
    return np.where(place[own] >= 0, place[own], labels)


GENERAL_PEERS = {"semi-supervised k-means": semi_supervised_kmeans, "label spreading + k-means": label_spreading}
