"""What people would use instead, on the same vectors: scikit-learn, UMAP, HDBSCAN, EVoC at their usual settings.

They are for benchmarks alone (extra `peers`), not requirements of the product.
"""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from unveil.numerics import unit_rows

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]
MOST_SPECTRAL = 10_000
"""Rows above which spectral clustering is left out."""


def kmeans(x: Vectors, y: Labels, clusters: int, seed: int) -> Labels:
    return KMeans(clusters, n_init=10, random_state=seed).fit_predict(x[y < 0])


def umap_places(x: Vectors, seed: int, y: Labels | None = None) -> Vectors:
    """Five dimensions, 15 neighbors, no distance between neighbors."""
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return UMAP(n_neighbors=15, n_components=5, min_dist=0.0, random_state=seed).fit_transform(x, y)


def umap_kmeans(x: Vectors, y: Labels, clusters: int, seed: int) -> Labels:
    return KMeans(clusters, n_init=10, random_state=seed).fit_predict(umap_places(x[y < 0], seed))


def umap_labels_kmeans(x: Vectors, y: Labels, clusters: int, seed: int) -> Labels:
    """UMAP of all rows that is given the known labels, and -1 for the others."""
    return KMeans(clusters, n_init=10, random_state=seed).fit_predict(umap_places(x, seed, y)[y < 0])


def umap_hdbscan(x: Vectors, y: Labels, clusters: int, seed: int) -> Labels:
    """Finds its own number of clusters; items that it calls noise are a cluster of their own."""
    places = umap_places(x[y < 0], seed)
    return HDBSCAN(min_cluster_size=max(10, len(places) // 100), copy=True).fit_predict(places)


def gaussian_mixture(x: Vectors, y: Labels, clusters: int, seed: int) -> Labels:
    rows = x[y < 0]
    rows = (rows - rows.mean(axis=0)) @ np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:32].T
    rows = rows / rows.std()  # so that the regularisation means the same for pixels and for embeddings
    mixture = GaussianMixture(clusters, covariance_type="full", reg_covar=1e-3, n_init=2, random_state=seed)
    return mixture.fit_predict(rows)


def spectral(x: Vectors, y: Labels, clusters: int, seed: int) -> Labels | None:
    rows = x[y < 0]
    if len(rows) > MOST_SPECTRAL:
        return None
    fitted = SpectralClustering(clusters, affinity="nearest_neighbors", n_neighbors=15, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted.fit_predict(rows)


def evoc(x: Vectors, y: Labels, clusters: int, seed: int) -> Labels:
    """Finds its own number of clusters."""
    from evoc import EVoC

    return EVoC(random_state=seed).fit_predict(x[y < 0])


PEERS: dict[str, Callable[[Vectors, Labels, int, int], Labels | None]] = {
    "k-means": kmeans,
    "UMAP + k-means": umap_kmeans,
    "UMAP + HDBSCAN": umap_hdbscan,
    "UMAP with labels + k-means": umap_labels_kmeans,
    "Gaussian mixture": gaussian_mixture,
    "spectral": spectral,
    "EVoC": evoc,
}


def usual_scaling(x: Vectors, kind: str) -> Vectors:
    """What people would do first: embeddings at unit length, standardised columns of tables, pixels as they are."""
    if kind == "embeddings":
        return unit_rows(x)
    if kind == "table":
        return ((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)).astype(np.float32)
    return x
