"""Clustering without training."""

import numpy as np
import pytest
from blobs import blobs

from unveil.clustering import kmeans as cluster
from unveil.metrics import clustering_accuracy


def test_kmeans_finds_blobs_also_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = blobs(4, 50)
    assert clustering_accuracy(y, cluster.kmeans(x, 4, 0).labels) == 1.0
    monkeypatch.setattr(cluster, "SAMPLE", 40)
    monkeypatch.setattr(cluster, "PIECE", 33)
    found = cluster.kmeans(x, 4, 0)
    assert clustering_accuracy(y, found.labels) == 1.0
    expected = np.square(x - found.centers[found.labels]).sum(axis=1).mean()
    assert found.inertia == pytest.approx(expected, rel=1e-3)


def test_labeled_rows_keep_their_class_and_new_ones_follow() -> None:
    x, y = blobs(6, 40)
    known = y < 3
    labeled = known & (np.arange(len(y)) % 2 == 0)
    found = cluster.semi_kmeans(x[~labeled], x[labeled], y[labeled], 6, 0)
    assert clustering_accuracy(y[~labeled], found.labels) == 1.0
    old = y[~labeled] < 3
    assert np.array_equal(found.labels[old], y[~labeled][old])  # the first clusters are the known classes


def test_labels_decide_where_the_data_alone_do_not() -> None:
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, size=(400, 2)).astype(np.float32)  # one square, no blobs
    y = (x[:, 0] > 0).astype(np.int64)
    found = cluster.semi_kmeans(x[200:], x[:200], y[:200], 2, 0)
    assert (found.labels == y[200:]).mean() > 0.85


@pytest.mark.parametrize("clusters", [2, 3, 50])
def test_few_rows_and_many_clusters(clusters: int) -> None:
    x, y = blobs(2, 3)
    found = cluster.semi_kmeans(x, x[:3], y[:3] * 0, clusters, 0)
    assert len(found.labels) == 6
    assert np.isfinite(found.centers).all()
    same = np.ones((5, 3), dtype=np.float32)
    assert cluster.semi_kmeans(same, same, np.zeros(5, dtype=np.int64), clusters, 0).inertia == pytest.approx(0)
