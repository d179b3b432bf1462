"""The equations once more, word for word: one scalar at a time, in Python loops, with autograd through every step.

`agree` holds a fast loss against its slow double, in value and in gradient.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import torch
from torch import Tensor


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def agree(fast: Callable[[Tensor], Tensor], slow: Callable[[Tensor], Tensor], z: Tensor) -> None:
    """Equal values and equal gradients in `z`, to 1e-9 in float64 and to 1e-5 in float32 (against float64)."""
    tolerance = 1e-9 if z.dtype == torch.float64 else 1e-5
    quick, exact = z.clone().requires_grad_(), z.double().requires_grad_()
    value, expected = fast(quick), slow(exact) + 0 * exact.sum()  # an empty batch has no graph of its own
    torch.testing.assert_close(value.double(), expected.double(), rtol=tolerance, atol=tolerance)
    (gradient,) = torch.autograd.grad(value, quick)
    (expected_gradient,) = torch.autograd.grad(expected, exact)
    scale = max(1.0, float(expected_gradient.abs().max()) if len(z) else 1.0)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=0, atol=tolerance * scale)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """δ(a, b); 0 where one of them is zero."""
    return sum((x * y for x, y in zip(a, b, strict=True)), a.new_zeros(())) / (
        a.norm().clamp_min(1e-12) * b.norm().clamp_min(1e-12)
    )


def cosine_pairs(z: Tensor, threshold: float) -> list[list[bool]]:
    size = len(z)
    return [[i == j or cosine(z[i], z[j]).item() >= threshold for j in range(size)] for i in range(size)]


def ranking_pairs(z: Tensor, top: int) -> list[list[bool]]:
    best = [set(sorted(range(len(row)), key=lambda d: -row[d])[:top]) for row in z.tolist()]
    return [[a == b for b in best] for a in best]


def nearest_pairs(z: Tensor, k: int) -> list[list[bool]]:
    size = len(z)
    near = []
    for i in range(size):
        others = [j for j in range(size) if j != i]
        near.append({i, *sorted(others, key=lambda j: -cosine(z[i], z[j]).item())[:k]})
    return [[j in near[i] or i in near[j] for j in range(size)] for i in range(size)]


def f1(same: Sequence[bool], taken: Sequence[bool]) -> Fraction:
    """F1 of the pairs that are taken as positive."""
    hits = sum(s and t for s, t in zip(same, taken, strict=True))
    return Fraction(2 * hits, max(sum(taken) + sum(same), 1))


def calibrated_threshold(z: Tensor, y: Tensor, default: float) -> float:
    """Try every cosine as the threshold; of several best ones the highest."""
    pairs = [(i, j) for i in range(len(z)) for j in range(i)]
    same = [bool(y[i] == y[j]) for i, j in pairs]
    if not any(same):
        return default
    cosines = [cosine(z[i], z[j]).item() for i, j in pairs]
    return max(cosines, key=lambda threshold: (f1(same, [c >= threshold for c in cosines]), threshold))


def pairwise_bce(p: Tensor, q: Tensor, same: Tensor) -> Tensor:
    total, count = p.new_zeros(()), 0
    for i in range(len(p)):
        for j in range(len(q)):
            agreement = sum((p[i, c] * q[j, c] for c in range(p.shape[1])), p.new_zeros(()))
            y = float(same[i, j])
            total = total - y * torch.log(agreement + 1e-7) - (1 - y) * torch.log(1 - agreement + 1e-7)
            count += 1
    return total / max(count, 1)


def consistency(p: Tensor, p_hat: Tensor) -> Tensor:
    total = p.new_zeros(())
    for a, b in zip(p, p_hat, strict=True):
        total = total + sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / len(a)
    return total / max(len(p), 1)


def neighborhood_contrastive(
    z: Tensor,
    z_hat: Tensor,
    queue: Tensor,
    *,
    k: int,
    alpha: float,
    temperature: float,
    hard: Tensor | None = None,
    view_among_neighbors: bool = False,
) -> Tensor:
    """Eq. 6-9 and 15. The published targets: the first k of all sorted logits, then the view's own overwritten."""
    total = z.new_zeros(())
    for i in range(len(z)):
        view = cosine(z[i], z_hat[i])
        stored = [cosine(z[i], entry) for entry in queue]
        extra = [] if hard is None else list(hard[i])
        denominator = sum(torch.exp(s / temperature) for s in [view, *stored, *extra])

        def loss(s: Tensor, denominator: Tensor = denominator) -> Tensor:
            return -torch.log(torch.exp(s / temperature) / denominator)

        count = min(k, len(stored))
        if count == 0:
            total = total + loss(view)
        elif view_among_neighbors:
            entries = [view, *stored]
            target = [0.0] * len(entries)
            for j in sorted(range(len(entries)), key=lambda j: -entries[j].item())[:count]:
                target[j] = (1 - alpha) / count
            target[0] = alpha
            total = total + sum(t * loss(s) for t, s in zip(target, entries, strict=True))
        else:
            neighbors = sorted(stored, key=Tensor.item, reverse=True)[:count]
            total = total + alpha * loss(view) + (1 - alpha) / count * sum(loss(s) for s in neighbors)
    return total / max(len(z), 1)


def supervised_contrastive(
    z: Tensor, z_hat: Tensor, y: Tensor, queue: Tensor, queue_y: Tensor, *, temperature: float
) -> Tensor:
    """Eq. 10-11."""
    total = z.new_zeros(())
    for i in range(len(z)):
        view = cosine(z[i], z_hat[i])
        stored = [cosine(z[i], entry) for entry in queue]
        denominator = sum(torch.exp(s / temperature) for s in [view, *stored])
        positives = [view] + [s for s, label in zip(stored, queue_y, strict=True) if label == y[i]]
        total = total - sum(torch.log(torch.exp(s / temperature) / denominator) for s in positives) / len(positives)
    return total / max(len(z), 1)


def easiest(z: Tensor, queue: Tensor, k: int) -> list[list[int]]:
    """ε_k (Eq. 12) of each query."""
    return [sorted(range(len(queue)), key=lambda m: cosine(row, queue[m]).item())[:k] for row in z]


def hard_negatives(
    z: Tensor,
    queue_u: Tensor,
    queue_l: Tensor,
    *,
    easy: Sequence[Sequence[int]],
    drawn: Sequence[Sequence[int]],
    k_hard: int,
    mixes: Sequence[float],
) -> Tensor:
    """Eq. 13-14 with every mixed vector built: (B, k_hard) cosines, hardest first.

    `easy` are the rows of queue_u for each query; `drawn` the rows of queue_l, gone through round after round.
    """
    rows = []
    for i in range(len(z)):
        cosines = []
        for position, labeled in enumerate(drawn[i]):
            u, l = queue_u[easy[i][position % len(easy[i])]], queue_l[labeled]  # noqa: E741
            for mu in mixes:
                mixed = mu * u + (1 - mu) * l
                cosines.append(cosine(z[i], mixed / mixed.norm().clamp_min(1e-12)))
        rows.append(torch.stack(sorted(cosines, key=Tensor.item, reverse=True)[:k_hard]))
    return torch.stack(rows)


def sigmoid_rampup(epoch: float, length: float) -> float:
    if epoch >= length:
        return 1.0
    return math.exp(-5 * (1 - max(epoch, 0) / length) ** 2)


def sinkhorn(cosines: Tensor, epsilon: float, iterations: int) -> list[list[float]]:
    """Sinkhorn-Knopp as published: every column scaled to 1/K, every row to 1/B, at the end times B."""
    rows, columns = cosines.shape
    q = [[math.exp(float(cosines[i, k]) / epsilon) for k in range(columns)] for i in range(rows)]
    total = sum(map(sum, q))
    q = [[value / total for value in row] for row in q]
    for _ in range(iterations):
        for k in range(columns):
            size = sum(q[i][k] for i in range(rows))
            for i in range(rows):
                q[i][k] /= size * columns
        for i in range(rows):
            size = sum(q[i])
            q[i] = [value / size / rows for value in q[i]]
    return [[value * rows for value in row] for row in q]


def swapped_prediction(logits: Tensor, logits_hat: Tensor, targets: Tensor, targets_hat: Tensor) -> Tensor:
    total = logits.new_zeros(())
    for i in range(len(logits)):
        for view, target in ((logits[i], targets_hat[i]), (logits_hat[i], targets[i])):
            denominator = sum(value.exp() for value in view)
            total = total - sum(t * (value.exp() / denominator).log() for t, value in zip(target, view, strict=True))
    return total / (2 * max(len(logits), 1))


def batch_contrastive(z: Tensor, same: list[list[bool]], temperature: float) -> Tensor:
    total = z.new_zeros(())
    for i in range(len(z)):
        others = {n: torch.exp(cosine(z[i], z[n]) / temperature) for n in range(len(z)) if n != i}
        positives = [n for n in others if same[i][n]]
        denominator = sum(others.values())
        for j in positives:
            total = total - torch.log(others[j] / denominator) / len(positives)
    return total / max(len(z), 1)


def mean_entropy(p: Tensor) -> Tensor:
    total = p.new_zeros(())
    for k in range(p.shape[1]):
        mean = sum(p[i, k] for i in range(len(p))) / len(p)
        total = total - mean * torch.log(mean)  # type: ignore[call-overload]
    return total
