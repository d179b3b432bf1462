"""Hard negative generation by mixing unlabelled and labelled features (Sec. 3.4), without building a mixed vector.

For ζ = μu + (1−μ)l the cosine needs only scalars:
    cos(z, ζ) = (μ z·u + (1−μ) z·l) / √(μ²|u|² + (1−μ)²|l|² + 2μ(1−μ) u·l)
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def hard_negatives(
    z: Tensor,
    queue_u: Tensor,
    queue_l: Tensor,
    *,
    k_easy: int = 400,
    k_hard: int = 400,
    rounds: int = 5,
    mixes: Sequence[float] = (1 / 3, 2 / 3),
    generator: torch.Generator | None = None,
    products: Tensor | None = None,
    unit: bool = False,
) -> Tensor:
    """η_k (Eq. 12-14): cosines (B, k_hard) of each query to its hardest mixed negatives, differentiable in z.

    z: (B, D); queue_u: (M_u, D); queue_l: (M_l, D), filled slots only. The `k_easy` queue entries least similar to a
    query are each mixed with a random labelled entry, `rounds` times and with every μ of `mixes`; the `k_hard` most
    similar mixtures are kept (fewer where fewer exist).
    `products` is queue_u @ queue_l.T where the caller keeps it up to date. `unit` says that the rows of both queues
    have length 1 already.
    """
    batch, stored_u, stored_l = len(z), len(queue_u), len(queue_l)
    k_easy = min(k_easy, stored_u)
    if batch == 0 or k_easy == 0 or stored_l == 0 or rounds == 0 or not mixes:
        return z.new_zeros(batch, 0)
    queue_u, queue_l = queue_u.detach(), queue_l.detach()
    z = F.normalize(z, dim=1)
    zu, zl = z @ queue_u.T, z @ queue_l.T  # (B, M_u), (B, M_l)
    with torch.no_grad():
        square_u = None if unit else queue_u.square().sum(dim=1)
        square_l = None if unit else queue_l.square().sum(dim=1)
        if products is None:
            products = queue_u @ queue_l.T
        cosines_u = zu if square_u is None else zu * square_u.clamp_min(1e-24).rsqrt()
        u = cosines_u.topk(k_easy, dim=1, largest=False, sorted=False).indices
        u = u.repeat(1, rounds)  # (B, rounds * k_easy)
        l = torch.randint(stored_l, u.shape, generator=generator, device=z.device)  # noqa: E741
        ul = products[u, l]  # not flattened: part of a block that is still filling would be copied
        uu, ll = (1.0, 1.0) if square_u is None or square_l is None else (square_u[u], square_l[l])
        z_u, z_l = zu.gather(1, u), zl.gather(1, l)
        lengths, cosines = [], []
        for mu in mixes:
            apart = mu**2 * uu + (1 - mu) ** 2 * ll
            square = apart + 2 * mu * (1 - mu) * ul
            # where u and l cancel, |ζ|² is rounding alone: below this floor it would make "cosines" far beyond 1
            floor = 32 * torch.finfo(z.dtype).eps * apart
            lengths.append(square.clamp_min(floor).clamp_min_(1e-24).rsqrt_())  # 1 / |ζ|
            cosines.append((mu * z_u + (1 - mu) * z_l) * lengths[-1])
        candidates = torch.cat(cosines, dim=1)  # (B, len(mixes) * rounds * k_easy)
        chosen = candidates.topk(min(k_hard, candidates.shape[1]), dim=1, sorted=False).indices
        mix, pair = chosen // u.shape[1], chosen % u.shape[1]
        # (B, k_hard); a table of the μ would be copied to the device, which every step would wait for
        chosen_mu = torch.stack([(mix == i).to(z.dtype) * mu for i, mu in enumerate(mixes)]).sum(dim=0)
        scale = torch.cat(lengths, dim=1).gather(1, chosen)
        u, l = u.gather(1, pair), l.gather(1, pair)  # noqa: E741
    return (chosen_mu * zu.gather(1, u) + (1 - chosen_mu) * zl.gather(1, l)) * scale
