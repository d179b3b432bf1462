"""Which pairs of unlabeled samples are assumed to share a class. Every rule returns a symmetric bool (B, B) matrix.

A sample always pairs with itself: the pair is its two views.
"""

import torch
from torch import Tensor

from unveil.losses.lengths import unit


def cosine_pairs(z: Tensor, threshold: float | Tensor = 0.95) -> Tensor:
    """Eq. 2: pairs whose cosine reaches the threshold λ."""
    return _with_diagonal(_cosines(z) >= threshold)


def ranking_pairs(z: Tensor, top: int = 5) -> Tensor:
    """Ranking statistics: pairs whose `top` largest features are the same set of dimensions."""
    top = min(top, z.shape[1])
    hot = torch.zeros_like(z, dtype=torch.float32).scatter_(1, z.detach().topk(top, dim=1).indices, 1.0)
    return _with_diagonal(hot @ hot.T >= top - 0.5)


def nearest_pairs(z: Tensor, k: int) -> Tensor:
    """Each sample with its `k` nearest others in the batch, made symmetric by union.

    Adapts to the spread of the features: among weak features a fixed cosine threshold may find no pair at all.
    """
    cosines = _cosines(z).fill_diagonal_(-2.0)
    k = min(k, len(z) - 1)
    if k < 1:
        return _with_diagonal(torch.zeros_like(cosines, dtype=torch.bool))
    nearest = torch.zeros_like(cosines, dtype=torch.bool).scatter_(1, cosines.topk(k, dim=1).indices, True)
    return _with_diagonal(nearest | nearest.T)


def calibrated_threshold(z: Tensor, y: Tensor, default: float = 0.95) -> Tensor:
    """The cosine that best separates pairs of the same known class from other pairs, by F1 over labeled pairs.

    z: (B, D) labeled features; y: (B,) their classes. `default` where the batch holds no pair of one class.
    """
    if len(z) < 2:
        return z.new_full((), default)
    i, j = torch.triu_indices(len(z), len(z), offset=1, device=z.device)
    cosines, order = _cosines(z)[i, j].sort(descending=True)
    hits = (y[i] == y[j])[order].float().cumsum(0)  # true positives with the threshold at each pair
    selected = torch.arange(1, len(hits) + 1, device=z.device)
    f1 = 2.0 * hits / (selected + hits[-1])
    f1[:-1].masked_fill_(cosines[:-1] == cosines[1:], -1.0)  # a threshold selects all pairs of equal cosine or none
    best = cosines.gather(0, f1.argmax(dim=0, keepdim=True))[0]  # indexing by a tensor would wait for the device
    return torch.where(hits[-1] > 0, best, default)


def _cosines(z: Tensor) -> Tensor:
    z = unit(z.detach().to(torch.promote_types(z.dtype, torch.float32)))
    return z @ z.T


def _with_diagonal(same: Tensor) -> Tensor:
    return same.fill_diagonal_(True)
