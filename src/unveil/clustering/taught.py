"""A linear map that known classes teach: supervised contrast on labeled rows, neighbor contrast on all rows.

Two rows of one class, and a row and one of its neighbors in the graph, are positives; the other rows of the batch are
negatives. The map starts as the identity, so that few known classes change little.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unveil import rng
from unveil.clustering.graph import neighbor_graph
from unveil.numerics import Labels, Matrix, unit_rows

STEPS, BATCH = 60, 128
RATE, TEMPERATURE = 0.01, 0.1
NEIGHBORS = 10
DIMENSIONS = 128
"""Most columns of the map; the others hold little of the variance."""


def taught(z: Matrix, labels: Labels, seed: int, steps: int = STEPS) -> Matrix:
    """(n, d) of unit length: the rows of z after the map; labels (n,) are -1 where the class is not known."""
    z = np.ascontiguousarray(z[:, :DIMENSIONS])
    z = (z / max(float(np.sqrt(np.square(z).sum(axis=1).mean())), 1e-12)).astype(np.float32)
    neighbors = neighbor_graph(z, NEIGHBORS).neighbors
    batches = _draws(labels, neighbors, seed, steps)
    x, y = torch.from_numpy(z), torch.from_numpy(labels)
    weights = torch.eye(z.shape[1], requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=RATE)
    for step, (rows, partners, known) in enumerate(batches):
        every = torch.cat([rows, partners, known])
        images = F.normalize(x[every] @ weights, dim=1)  # (2 B + b, d)
        first, second = images[: len(rows)], images[len(rows) : 2 * len(rows)]
        of_known = images[2 * len(rows) :]
        loss = F.cross_entropy(first @ second.T / TEMPERATURE, torch.arange(len(rows)))
        if len(known):
            loss = loss + _supervised(of_known, y[known])
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / steps)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    mapped: Matrix = z @ weights.detach().numpy()
    return unit_rows(mapped)


def _draws(labels: Labels, neighbors: Labels, seed: int, steps: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each step: rows (B,), a neighbor of each (B,), and rows of known classes (B,) or none."""
    draw, known = rng.numpy(seed, "taught map"), np.flatnonzero(labels >= 0)
    several = len(known) > 1 and len(np.unique(labels[known])) < len(known)
    batches = []
    for _ in range(steps):
        rows = draw.integers(len(labels), size=min(BATCH, len(labels)))
        partners = neighbors[rows, draw.integers(neighbors.shape[1], size=len(rows))]
        of_known = known[draw.integers(len(known), size=min(BATCH, len(known)))] if several else known[:0]
        batches.append((torch.from_numpy(rows), torch.from_numpy(partners), torch.from_numpy(of_known)))
    return batches


def _supervised(z: Tensor, y: Tensor) -> Tensor:
    """Supervised contrast of rows of unit length: the mean log-probability of the rows of the same class."""
    own = torch.eye(len(z), dtype=torch.bool)
    logits = (z @ z.T / TEMPERATURE).masked_fill(own, -1e4)
    same = ((y[:, None] == y) & ~own).float()  # (b, b)
    log_shares = logits - logits.logsumexp(dim=1, keepdim=True)
    count = same.sum(dim=1)
    of_rows = -(log_shares * same).sum(dim=1) / count.clamp_min(1)
    return of_rows.sum() / (count > 0).sum().clamp_min(1)
