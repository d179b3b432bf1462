"""Losses on the probabilities of a head: pairwise binary cross-entropy and consistency (Sec. 3.1)."""

from torch import Tensor

EPS = 1e-7  # keeps log() finite where two predictions are disjoint


def pairwise_bce(p: Tensor, q: Tensor, same: Tensor) -> Tensor:
    """ℓ_bce (Eq. 3), averaged over all ordered pairs of a row of `p` and a row of `q`.

    p, q: (B, C) probabilities of the two views; same: (B, B), true where a pair is assumed to share its class.
    """
    agreement = p @ q.T  # (B, B): the probability that both views fall into one cluster
    if agreement.numel() == 0:
        return agreement.sum()
    likelihood = agreement.where(same.bool(), (1.0 - agreement).clamp_min(0.0))  # rounding may exceed 1
    return -(likelihood + EPS).log().mean()


def pairwise_kl(p: Tensor, same: Tensor, margin: float = 2.0) -> Tensor:
    """KCL: KL(p_j ‖ p_i) of pairs of one class, max(0, margin − KL) of the others, averaged over ordered pairs.

    p: (B, C) probabilities; same: (B, B). The gradient goes through p_i alone; every pair occurs in both orders.
    """
    if len(p) == 0:
        return p.sum()
    target = p.detach() + EPS
    divergence = (target * target.log()).sum(dim=1) - (p + EPS).log() @ target.T  # (B, B): row i against target j
    return divergence.where(same.bool(), (margin - divergence).clamp_min(0.0)).mean()


def consistency(p: Tensor, p_hat: Tensor) -> Tensor:
    """ℓ_mse (Eq. 4) of one head: the mean squared difference of the two views' probabilities, (B, C) each."""
    difference = (p - p_hat).square()
    return difference.mean() if difference.numel() else difference.sum()
