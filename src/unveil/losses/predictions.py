"""Losses on the probabilities of a head: pairwise binary cross-entropy and consistency (Sec. 3.1)."""

import math

import torch
from torch import Tensor

from unveil.losses.lengths import at_least_float32

EPS = 1e-7  # keeps log() finite where two predictions are disjoint
HALF_EPS = 2.0**-13  # the same for predictions in float16, whose gradient has to fit there too


def pairwise_bce(p: Tensor, q: Tensor, same: Tensor) -> Tensor:
    """ℓ_bce (Eq. 3), averaged over all ordered pairs of a row of `p` and a row of `q`.

    p, q: (B, C) probabilities of the two views; same: (B, B), true where a pair is assumed to share its class.
    """
    eps = _eps(p, q)
    agreement = at_least_float32(p) @ at_least_float32(q).T  # (B, B): probability that both fall into one cluster
    if agreement.numel() == 0:
        return agreement.sum()
    likelihood = agreement.where(same.bool(), (1.0 - agreement).clamp_min(0.0))  # rounding may exceed 1
    return -(likelihood + eps).log().mean()


def pairwise_kl(p: Tensor, same: Tensor, margin: float = 2.0) -> Tensor:
    """KCL: KL(p_j ‖ p_i) of pairs of one class, max(0, margin − KL) of the others, averaged over ordered pairs.

    p: (B, C) probabilities; same: (B, B). The gradient goes through p_i alone; every pair occurs in both orders.
    """
    if len(p) == 0:
        return p.sum()
    eps, p = _eps(p), at_least_float32(p)
    target = p.detach() + eps
    divergence = (target * target.log()).sum(dim=1) - (p + eps).log() @ target.T  # (B, B): row i against target j
    return divergence.where(same.bool(), (margin - divergence).clamp_min(0.0)).mean()


def consistency(p: Tensor, p_hat: Tensor) -> Tensor:
    """ℓ_mse (Eq. 4) of one head: the mean squared difference of the two views' probabilities, (B, C) each."""
    difference = (at_least_float32(p) - at_least_float32(p_hat)).square()
    return difference.mean() if difference.numel() else difference.sum()


def _eps(*predictions: Tensor) -> float:
    return HALF_EPS if any(one.dtype == torch.float16 for one in predictions) else EPS


def sigmoid_rampup(epoch: float, length: float) -> float:
    """exp(-5 (1 - t)²) with t = epoch / length clipped to [0, 1]; 1 when `length` is 0."""
    if length <= 0:
        return 1.0
    t = min(max(epoch / length, 0.0), 1.0)
    return math.exp(-5.0 * (1.0 - t) ** 2)
