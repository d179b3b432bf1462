"""Contrastive neighbor embedding: neighborhood contrastive learning with the edges of a graph as positives.

Every row of the data has a place y in a few dimensions. The loss of a row is the contrastive one of the paper with the
Cauchy kernel q(a, b) = 1 / (1 + |a − b|²) in place of exp(cosine / τ):

    ℓ_i = Σ_j w_ij (−log q(y_i, y_j)) + log Σ_r q(y_i, y_r)

with w the edge weights of row i, which sum to 1, and r random other rows (Damrich et al., ICLR 2023, show that t-SNE
and UMAP minimize losses of this family). Its gradient is written out here: an iteration is three matrix products.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from unveil import rng
from unveil.numerics import Matrix, squared_distances

ITERATIONS, NEGATIVES = 100, 200
LEAST_DIMENSIONS = 3
"""Of an embedding, also for two clusters."""


def needed_dimensions(clusters: float) -> int:
    """One fewer than there are clusters: enough for all of them to be equally far from each other."""
    return max(LEAST_DIMENSIONS, round(clusters) - 1)


def spectral_start(weights: sp.csr_matrix, dimensions: int, seed: int) -> Matrix:
    """(n, dimensions): leading eigenvectors of the normalized graph, without the constant one."""
    degree = np.asarray(weights.sum(axis=1)).ravel()
    degree = degree + 0.1 * degree.mean()  # regularized: small components do not take all eigenvectors
    scale = sp.diags(1 / np.sqrt(degree))
    start = np.sqrt(degree) + 1e-3 * rng.numpy(seed, "eigenvectors").standard_normal(len(degree))
    count = max(1, min(dimensions + 1, len(degree) - 2))
    matrix = (scale @ weights @ scale).astype(np.float64)
    values, vectors = eigsh(matrix, count, which="LA", v0=start, tol=1e-3, maxiter=2000)
    ordered = vectors[:, np.argsort(-values)][:, 1:]
    coordinates: Matrix = (ordered / np.sqrt(degree)[:, None]).astype(np.float32)
    return coordinates


def embed(weights: sp.csr_matrix, dimensions: int, seed: int, iterations: int = ITERATIONS) -> Matrix:
    """(n, dimensions): places of the rows of a graph."""
    draw, n = rng.numpy(seed, "neighbor embedding"), weights.shape[0]
    y = spectral_start(weights, dimensions, seed)
    y = (y - y.mean(axis=0)) / np.maximum(y.std(axis=0), 1e-12)
    y = np.clip(y, -4, 4) + 1e-2 * draw.standard_normal(y.shape).astype(np.float32)
    shares = sp.diags(1 / np.maximum(np.asarray(weights.sum(axis=1)).ravel(), 1e-12)) @ weights
    edges = sp.triu(shares + shares.T, k=1, format="csr").astype(np.float32)  # an edge pulls both of its ends
    edges.sort_indices()
    w, i, j = edges.data.copy(), np.repeat(np.arange(n), np.diff(edges.indptr)), edges.indices
    ends, other_ends = (np.empty((len(w), y.shape[1]), dtype=np.float32) for _ in range(2))
    back = edges.T  # shares its numbers with `edges`
    mean, square = np.zeros_like(y), np.zeros((n, 1), dtype=np.float32)
    negatives = min(NEGATIVES, n)
    for step in range(iterations):
        apart = np.take(y, i, axis=0, out=ends, mode="clip")
        apart -= np.take(y, j, axis=0, out=other_ends, mode="clip")
        np.divide(w, 1 + np.einsum("ed,ed->e", apart, apart), out=edges.data)
        strength = np.bincount(i, edges.data, n) + np.bincount(j, edges.data, n)
        pull = strength.astype(np.float32)[:, None] * y - edges @ y - back @ y
        others = y[draw.choice(n, negatives, replace=False)]
        q = squared_distances(y, others)  # (n, negatives)
        q += 1
        np.reciprocal(q, out=q)
        total = q.sum(axis=1, keepdims=True)
        np.square(q, out=q)
        q /= total
        gradient = 2 * pull - 4 * (q.sum(axis=1, keepdims=True) * y - q @ others)
        mean = 0.9 * mean + 0.1 * gradient  # Adam, with one step size for each row
        square = 0.99 * square + 0.01 * np.square(gradient).mean(axis=1, keepdims=True)
        rate = 0.1 * min(1.0, 2 * (1 - step / iterations))
        corrected = np.sqrt(square / (1 - 0.99 ** (step + 1))) + 1e-3
        y = y - rate * (mean / (1 - 0.9 ** (step + 1))) / corrected
    places: Matrix = y.astype(np.float32)
    return places
