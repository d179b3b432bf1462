"""Contrastive losses against a queue: neighborhood (unlabeled) and supervised (labeled), Sec. 3.2-3.3.

Both are of the form  log Σ exp(s/τ) − (weighted mean of the positives' s/τ)  with s the cosines to the second
view, to the queue and, where given, to generated hard negatives.
"""

import torch
from torch import Tensor

from unveil.losses import lengths


def neighborhood_contrastive(
    z: Tensor,
    z_hat: Tensor,
    queue: Tensor,
    *,
    k: int,
    alpha: float = 0.2,
    temperature: float = 0.05,
    hard: Tensor | None = None,
    view_among_neighbors: bool = False,
) -> Tensor:
    """ℓ_ncl = α ℓ(z, ẑ) + (1 − α) ℓ(z, ρ_k)  (Eq. 6-9), averaged over the batch.

    z, z_hat: (B, D) two views; queue: (M, D) filled slots only; hard: (B, m) cosines that join the denominator.
    ρ_k are the `k` most similar queue entries. With no neighbors (k = 0 or an empty queue) the second view takes
    all the weight, which is the plain contrastive loss.
    `view_among_neighbors` lets ẑ compete for a place in ρ_k, as the published code does: it then displaces one
    neighbor, whose weight is lost.
    """
    return _neighborhood_contrastive(
        z,
        z_hat,
        _cosines(z, queue),
        k=k,
        alpha=alpha,
        temperature=temperature,
        hard=hard,
        view_among_neighbors=view_among_neighbors,
    )


def supervised_contrastive(
    z: Tensor, z_hat: Tensor, y: Tensor, queue: Tensor, queue_y: Tensor, *, temperature: float = 0.05
) -> Tensor:
    """ℓ_scl (Eq. 10-11): the positives are the second view and every queue entry of the same class.

    z, z_hat: (B, D); y: (B,); queue: (M, D) filled slots only; queue_y: (M,).
    """
    return _supervised_contrastive(z, z_hat, y, lengths.unit(queue.detach()), queue_y, temperature=temperature)


def _neighborhood_contrastive(
    z: Tensor,
    z_hat: Tensor,
    stored: Tensor,
    *,
    k: int,
    alpha: float,
    temperature: float,
    hard: Tensor | None,
    view_among_neighbors: bool,
) -> Tensor:
    """`neighborhood_contrastive` from the cosines of z with the queue: stored, (B, M)."""
    if len(z) == 0:
        return z.sum()
    z = lengths.unit(z)
    view, stored = _to_view(z, z_hat), stored.to(z.dtype)  # (B,), (B, M)
    hard = None if hard is None else hard.to(z.dtype)
    k = min(k, stored.shape[1])
    logits = torch.cat([view[:, None], stored] + ([] if hard is None else [hard]), dim=1) / temperature
    partition = logits.logsumexp(dim=1)  # (B,)
    if k < 1:
        return (partition - view / temperature).mean()
    if not view_among_neighbors:
        neighbors = stored.topk(k, dim=1, sorted=False).values.mean(dim=1)
        return (partition - (alpha * view + (1.0 - alpha) * neighbors) / temperature).mean()
    nearest = stored.topk(k, dim=1).values  # (B, k), descending
    displaced = (view >= nearest[:, -1]).to(nearest.dtype)  # (B,): ẑ is among the k most similar
    total = nearest.sum(dim=1) - displaced * nearest[:, -1]
    mass = alpha + (1.0 - alpha) * (k - displaced) / k
    return (mass * partition - (alpha * view + (1.0 - alpha) * total / k) / temperature).mean()


def _supervised_contrastive(
    z: Tensor, z_hat: Tensor, y: Tensor, queue: Tensor, queue_y: Tensor, *, temperature: float
) -> Tensor:
    """`supervised_contrastive` for a queue of unit vectors."""
    if len(z) == 0:
        return z.sum()
    z = lengths.unit(z) / temperature
    view, stored = _to_view(z, z_hat), z @ queue.to(z.dtype).T  # (B,), (B, M): cosines / τ
    partition = torch.logaddexp(view, stored.logsumexp(dim=1))
    same = (y[:, None] == queue_y[None, :]).to(stored.dtype)  # (B, M)
    positives = (view + (stored * same).sum(dim=1)) / (1.0 + same.sum(dim=1))
    return (partition - positives).mean()


def _to_view(z: Tensor, z_hat: Tensor) -> Tensor:
    """Product of each query with its own second view at unit length, (B,)."""
    return (z * lengths.unit(z_hat.detach()).to(z.dtype)).sum(dim=1)


def _cosines(z: Tensor, queue: Tensor) -> Tensor:
    """Cosines of each query with every queue entry, (B, M)."""
    z = lengths.unit(z)
    return z @ lengths.unit(queue.detach()).to(z.dtype).T
