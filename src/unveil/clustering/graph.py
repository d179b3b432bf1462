"""The neighbor graph of vectors: who is nearest to whom, and how much each edge counts."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from unveil.numerics import Matrix

BLOCK = 1024
"""Rows whose distances to all others are computed together."""


@dataclass(frozen=True)
class NeighborGraph:
    """The nearest neighbors of each row, nearest first, without the row itself."""

    neighbors: NDArray[np.int64]
    """(n, k)"""
    distances: Matrix
    """(n, k)"""

    def __len__(self) -> int:
        return len(self.neighbors)

    def nearest(self, k: int) -> "NeighborGraph":
        """The graph of the k nearest neighbors alone."""
        return NeighborGraph(self.neighbors[:, :k], self.distances[:, :k])


def neighbor_graph(x: Matrix, k: int) -> NeighborGraph:
    """The exact graph by Euclidean distance, a block of matrix products at a time."""
    points = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
    n, k = len(points), min(k, len(points) - 1)
    squares = points.square().sum(dim=1)
    neighbors, distances = np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=np.float32)
    for start in range(0, n, BLOCK):
        here = slice(start, start + BLOCK)
        rows = points[here]
        apart = torch.addmm(squares[None], rows, points.T, alpha=-2)  # squared distances without the row's own square
        own = torch.arange(len(rows))
        apart[own, own + start] = torch.inf
        values, indices = apart.topk(k, dim=1, largest=False)
        neighbors[here] = indices.numpy()
        distances[here] = (values + squares[here, None]).clamp_(min=0).sqrt_().numpy()
    return NeighborGraph(neighbors, distances)


def edge_weights(graph: NeighborGraph, steps: int = 40) -> sp.csr_matrix:
    """(n, n), symmetric: the fuzzy union of UMAP (McInnes et al., 2018).

    An edge weighs exp(−(d − d₁) / σ) with d₁ the distance to the nearest neighbor and σ such that the weights of a row
    sum to log₂(k + 1); w of both directions become w + wᵀ − w·wᵀ.
    """
    n, k = graph.neighbors.shape
    apart = np.maximum(graph.distances - graph.distances[:, :1], 0).astype(np.float64)
    target = np.log2(k + 1)
    low, high = np.zeros((n, 1)), np.full((n, 1), np.inf)
    sigma = np.maximum(apart.mean(axis=1, keepdims=True), 1e-9)
    for _ in range(steps):  # bisection
        too_large = np.exp(-apart / sigma).sum(axis=1, keepdims=True) > target
        high, low = np.where(too_large, sigma, high), np.where(too_large, low, sigma)
        sigma = np.where(np.isinf(high), 2 * sigma, (low + high) / 2)
    floor = 1e-3 * max(float(graph.distances.mean()), 1e-9)
    weights = np.exp(-apart / np.maximum(sigma, floor))
    rows = np.repeat(np.arange(n), k)
    directed = sp.csr_matrix((weights.ravel(), (rows, graph.neighbors.ravel())), shape=(n, n))
    transposed = directed.T.tocsr()
    return (directed + transposed - directed.multiply(transposed)).tocsr()
