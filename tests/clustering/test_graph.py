"""The neighbor graph against literal forms."""

import numpy as np
import pytest
from blobs import blobs
from sklearn.neighbors import NearestNeighbors

from unveil.clustering import graph as graphs
from unveil.clustering.graph import NeighborGraph, edge_weights, neighbor_graph


def test_neighbors_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = blobs(4, 50)
    monkeypatch.setattr(graphs, "BLOCK", 37)
    graph = neighbor_graph(x, 7)
    distances, neighbors = NearestNeighbors(n_neighbors=7).fit(x).kneighbors()
    np.testing.assert_array_equal(graph.neighbors, neighbors)
    np.testing.assert_allclose(graph.distances, distances, atol=2e-3)
    assert graph.nearest(3).neighbors.shape == (200, 3)


def test_few_rows_have_fewer_neighbors() -> None:
    graph = neighbor_graph(np.eye(3, dtype=np.float32), 10)
    assert graph.neighbors.shape == (3, 2)
    assert not (graph.neighbors == np.arange(3)[:, None]).any()


def test_weights_of_a_row_sum_to_the_logarithm_of_its_neighbors() -> None:
    x, _ = blobs(3, 40)
    graph = neighbor_graph(x, 10)
    weights = edge_weights(graph)
    assert (weights != weights.T).nnz == 0
    assert weights.max() <= 1
    one = edge_weights(NeighborGraph(np.array([[1], [0]]), np.array([[1.0], [1.0]], dtype=np.float32)))
    np.testing.assert_allclose(one.toarray(), [[0, 1], [1, 0]])


def test_equal_rows_do_no_harm() -> None:
    weights = edge_weights(neighbor_graph(np.zeros((20, 4), dtype=np.float32), 5))
    assert np.isfinite(weights.toarray()).all()
