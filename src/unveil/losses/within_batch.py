"""Losses of SimGCD within a batch: contrastive among its rows, and the entropy of the mean prediction."""

import torch
import torch.nn.functional as F
from torch import Tensor


def batch_contrastive(z: Tensor, same: Tensor, *, temperature: float = 0.07) -> Tensor:
    """The mean of −log exp(δ_ij/τ) / Σ_{n≠i} exp(δ_in/τ) over the positives j of each row i, then over the rows.

    z: (N, D), δ are its cosines; same: (N, N) bool, true for positives; a row is never its own. With the two views of
    an item as positives this is the loss of SimCLR, with rows of one class the supervised contrastive loss. Rows
    without positives count as 0.
    """
    if len(z) < 2:
        return 0 * z.sum()
    z = F.normalize(z, dim=1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    log_shares = (z @ z.T / temperature).masked_fill(itself, float("-inf")).log_softmax(dim=1)
    positives = same & ~itself
    total = log_shares.masked_fill(~positives, 0.0).sum(dim=1)
    return -(total / positives.sum(dim=1).clamp_min(1)).mean()


def mean_entropy(p: Tensor) -> Tensor:
    """H(p̄) in nats of the mean prediction; p: (N, K) probabilities, 0 where there are no rows."""
    if len(p) == 0:
        return p.sum()
    mean = p.mean(dim=0)
    return -torch.xlogy(mean, mean).sum()
