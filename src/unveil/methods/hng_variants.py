"""The six variants of hard negative generation that the paper compares with (Sec. 4.2)."""

import torch
from torch import Tensor

from unveil.losses.mixing import _hard_negatives, hardest_mixtures, pair_products
from unveil.methods.ncl_settings import HNGSettings


def variant(
    z: Tensor,
    cosines: Tensor,
    queue_u: Tensor,
    queue_l: Tensor,
    config: HNGSettings,
    k1: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor | None]:
    """The cosines to the queue that take part in the loss, and the extra negatives.

    z: (B, D) and both queues at unit length; cosines: (B, M_u). Entries that are left out have cosine −∞.
    """
    k = config.easy_negatives(len(queue_u), k1)
    if k < 1 or len(queue_l) == 0:
        return cosines, None
    easy = cosines.detach().topk(k, dim=1, largest=False, sorted=False).indices
    zl = z @ queue_l.T

    def drawn(count: int) -> Tensor:
        return torch.randint(len(queue_l), (len(z), count), generator=generator, device=z.device)

    def mixed(za: Tensor, zb: Tensor, a: Tensor, b: Tensor, memories: tuple[Tensor, Tensor]) -> Tensor:
        ab = pair_products(*memories, a, b)
        return hardest_mixtures(za, zb, a, b, ab, mixes=config.mixes, k_hard=config.k_hard)

    rounds, width = config.rounds, easy.shape[1]
    match config.variant:
        case "v1":  # the easiest negatives are removed
            return cosines.scatter(1, easy, float("-inf")), None
        case "v2":  # the easiest negatives are replaced by generated ones
            hard = _hard_negatives(cosines, zl, (queue_u, queue_l), **config.mixing(k), generator=generator)
            return cosines.scatter(1, easy, float("-inf")), hard
        case "v3":  # labeled features, not mixed
            return cosines, zl.gather(1, drawn(k))
        case "v4":  # mixtures of k drawn labeled features with each other
            labeled = drawn(k)
            partners = torch.randint(k, (len(z), k * rounds), generator=generator, device=z.device)
            return cosines, mixed(zl, zl, labeled.repeat(1, rounds), labeled.gather(1, partners), (queue_l, queue_l))
        case "v5":  # mixtures of the easiest negatives with each other
            partners = torch.randint(width, (len(z), width * rounds), generator=generator, device=z.device)
            other = easy.gather(1, partners)
            return cosines, mixed(cosines, cosines, easy.repeat(1, rounds), other, (queue_u, queue_u))
        case "v6":  # mixtures of the easiest negatives with the nearest labeled features
            nearest = zl.detach().topk(min(k, len(queue_l)), dim=1, sorted=False).indices
            partners = torch.randint(nearest.shape[1], (len(z), width * rounds), generator=generator, device=z.device)
            return cosines, mixed(cosines, zl, easy.repeat(1, rounds), nearest.gather(1, partners), (queue_u, queue_l))
    raise AssertionError(config.variant)
