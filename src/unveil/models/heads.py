"""Linear classifiers on top of the features."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear_head(dim: int, classes: int, generator: torch.Generator) -> nn.Linear:
    """A head with PyTorch's usual initial spread, drawn from the given generator."""
    head = nn.Linear(dim, classes)
    bound = dim**-0.5
    with torch.no_grad():
        head.weight.uniform_(-bound, bound, generator=generator)
        head.bias.uniform_(-bound, bound, generator=generator)
    return head


@torch.no_grad()
def start_from_clusters(head: nn.Linear, z: Tensor, labels: Tensor, spread: float = 10.0) -> None:
    """Set the head so that its argmax is the cluster whose mean of the normalised features `z` is nearest.

    |z − c|² is smallest where z·c − |c|²/2 is largest; the scale makes the logits of a sample differ by about
    `spread`, so that the first predictions are neither uniform nor saturated.
    """
    unit = F.normalize(z.float(), dim=1)
    member = F.one_hot(labels.long(), head.out_features).to(unit)  # (n, C)
    centers = member.T @ unit / member.sum(dim=0)[:, None].clamp_min(1)
    logits = unit @ centers.T - centers.square().sum(dim=1) / 2
    scale = spread / (logits.amax(dim=1) - logits.amin(dim=1)).mean().clamp_min(1e-6)
    head.weight.copy_(centers * scale / z.norm(dim=1).mean().clamp_min(1e-6))  # z itself is not normalised
    head.bias.copy_(-centers.square().sum(dim=1) / 2 * scale)
