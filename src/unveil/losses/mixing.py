"""Hard negative generation by mixing unlabeled and labeled features (Sec. 3.4), without building a mixed vector.

For ζ = μu + (1−μ)l the cosine needs only scalars:
    cos(z, ζ) = (μ z·u + (1−μ) z·l) / √(μ²|u|² + (1−μ)²|l|² + 2μ(1−μ) u·l)

`hard_negatives` is the equation. The rest of the file computes the same faster, from products that a training step has
at hand anyway.
"""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from unveil.losses import lengths


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
) -> Tensor:
    """η_k (Eq. 12-14): cosines (B, k_hard) of each query to its hardest mixed negatives, differentiable in z.

    z: (B, D); queue_u: (M_u, D); queue_l: (M_l, D), filled slots only. The `k_easy` queue entries least similar to a
    query are each mixed with a random labeled entry, `rounds` times and with every μ of `mixes`; the `k_hard` most
    similar mixtures are kept (fewer where fewer exist).
    """
    k_easy = min(k_easy, len(queue_u))
    if len(z) == 0 or k_easy == 0 or len(queue_l) == 0 or rounds == 0 or not mixes:
        return z.new_zeros(len(z), 0)
    z = lengths.unit(z)
    u, l = lengths.scaled_down(queue_u.detach().to(z.dtype), queue_l.detach().to(z.dtype))  # noqa: E741

    # Eq. 12: ε_k, the k_easy entries of M_u least similar to each query
    easy = (z @ lengths.unit(u).T).topk(k_easy, dim=1, largest=False, sorted=False).indices  # (B, k_easy)

    # Eq. 13: N times, each of them is mixed with a random entry of M_l: ζ = μu + (1−μ)l
    i = easy.repeat(1, rounds)  # (B, N k_easy)
    j = torch.randint(len(l), i.shape, generator=generator, device=z.device)
    zu, zl = (z @ u.T).gather(1, i), (z @ l.T).gather(1, j)
    uu, ll, ul = u.square().sum(dim=1)[i], l.square().sum(dim=1)[j], (u @ l.T)[i, j]
    eta = torch.cat(
        [(mu * zu + (1 - mu) * zl) / _squared_length(mu, uu, ll, ul).sqrt() for mu in mixes], dim=1
    )  # δ(z, ζ), (B, len(mixes) N k_easy)

    # Eq. 14: η_k, the k_hard mixtures most similar to the query
    return eta.topk(min(k_hard, eta.shape[1]), dim=1, sorted=False).values


def _squared_length(mu: float, aa: Tensor | float, bb: Tensor | float, ab: Tensor) -> Tensor:
    """|μa + (1−μ)b|² from |a|², |b|² and a·b.

    Where a and b cancel, the sum is rounding alone: below the floor it would make "cosines" far beyond 1.
    """
    squares = mu**2 * aa + (1 - mu) ** 2 * bb
    floor = 32 * torch.finfo(ab.dtype).eps * squares
    return (squares + 2 * mu * (1 - mu) * ab).clamp_min(floor).clamp_min_(1e-24)


def _hard_negatives(
    cosines_u: Tensor,
    cosines_l: Tensor,
    queues: tuple[Tensor, Tensor],
    *,
    k_easy: int,
    k_hard: int,
    rounds: int,
    mixes: Sequence[float],
    generator: torch.Generator | None = None,
    distinct: bool = False,
    products: Tensor | None = None,
    squares: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """`hard_negatives` for queues of unit vectors, from the cosines of the queries with them.

    cosines_u: (B, M_u); cosines_l: (B, M_l); products: queue_u @ queue_l.T, or None.
    The published code needs two things more. `distinct`: no labeled entry is drawn twice in a round. `squares`: u·u
    (M_u,) and l·l (M_l,) of vectors that have not quite length 1; the mixtures alone are brought to length 1.
    """
    (batch, stored_u), stored_l = cosines_u.shape, cosines_l.shape[1]
    k_easy = min(k_easy, stored_u)
    if batch == 0 or k_easy == 0 or stored_l == 0:
        return cosines_u.new_zeros(batch, 0)
    with torch.no_grad():
        u = cosines_u.topk(k_easy, dim=1, largest=False, sorted=distinct).indices  # the easiest gets the first partner
        u = u.repeat(1, rounds)  # (B, rounds * k_easy)
        if distinct:  # a round is the beginning of a permutation, which is repeated where it is too short
            order = torch.rand(batch, rounds, stored_l, generator=generator, device=u.device).argsort(dim=2)
            l = order.repeat(1, 1, -(-k_easy // stored_l))[:, :, :k_easy].flatten(1)  # noqa: E741
        else:
            l = torch.randint(stored_l, u.shape, generator=generator, device=u.device)  # noqa: E741
        ul = pair_products(*queues, u, l) if products is None else _at(products, u, l)
        uu, ll = (1.0, 1.0) if squares is None else (squares[0][u], squares[1][l])
    return hardest_mixtures(cosines_u, cosines_l, u, l, ul, mixes=mixes, k_hard=k_hard, squares=(uu, ll))


def hardest_mixtures(
    za: Tensor,
    zb: Tensor,
    a: Tensor,
    b: Tensor,
    ab: Tensor,
    *,
    mixes: Sequence[float],
    k_hard: int,
    squares: tuple[Tensor | float, Tensor | float] = (1.0, 1.0),
) -> Tensor:
    """Cosines (B, k_hard) of each query to the most similar of its mixtures μa + (1−μ)b.

    za: (B, M_a), zb: (B, M_b) products with the two memories, through which the gradient goes; a, b: (B, P) the
    entries that are mixed; ab: (B, P) their products; squares: |a|² and |b|² of each pair.
    """
    with torch.no_grad():
        z_a, z_b = za.gather(1, a), zb.gather(1, b)
        inverse_lengths, mixed = [], []
        for mu in mixes:
            inverse_lengths.append(_squared_length(mu, *squares, ab).rsqrt_())  # 1 / |ζ|
            mixed.append((mu * z_a + (1 - mu) * z_b) * inverse_lengths[-1])
        candidates = torch.cat(mixed, dim=1)  # (B, len(mixes) * P)
        chosen = candidates.topk(min(k_hard, candidates.shape[1]), dim=1, sorted=False).indices
        # The pair and the μ of each chosen mixture, (B, k_hard). Comparisons are cheaper than integer division, and a
        # tensor of the μ would have to be copied to the device in every step.
        pair, chosen_mu = chosen, torch.full_like(za[:, :1], mixes[0])
        for i, (previous, mu) in enumerate(itertools.pairwise(mixes), start=1):
            later = chosen >= i * a.shape[1]
            pair = pair - later * a.shape[1]
            chosen_mu = chosen_mu + later.to(za.dtype) * (mu - previous)
        scale = torch.cat(inverse_lengths, dim=1).gather(1, chosen)
        a, b = a.gather(1, pair), b.gather(1, pair)
    return (chosen_mu * za.gather(1, a) + (1 - chosen_mu) * zb.gather(1, b)) * scale


def _at(products: Tensor, u: Tensor, l: Tensor) -> Tensor:  # noqa: E741
    """products[u, l] by a flat index: `products` may be a view of a larger block, which is not copied."""
    rows, columns = products.shape
    stride = products.stride(0)
    flat = products.as_strided(((rows - 1) * stride + columns,), (1,))
    return flat.index_select(0, (u * stride + l).flatten()).view(u.shape)


def pair_products(queue_u: Tensor, queue_l: Tensor, u: Tensor, l: Tensor) -> Tensor:  # noqa: E741
    """u·l of the drawn pairs (B, P).

    With short queues all products are computed; with long ones only those of the pairs, in pieces, so that memory does
    not grow with the product of the queue lengths.
    """
    if len(queue_u) * len(queue_l) <= 64 * u.numel():
        return _at(queue_u @ queue_l.T, u, l)
    products = torch.empty(u.numel(), dtype=queue_u.dtype, device=u.device)
    pieces = max(1, u.numel() * queue_u.shape[1] // 2**23)
    for piece, us, ls in zip(products.chunk(pieces), u.flatten().chunk(pieces), l.flatten().chunk(pieces), strict=True):
        torch.linalg.vecdot(queue_u.index_select(0, us), queue_l.index_select(0, ls), out=piece)
    return products.view(u.shape)
