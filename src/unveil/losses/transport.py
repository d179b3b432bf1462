"""Pseudo-labels by optimal transport, and the loss in which each view predicts those of the other (SwAV, UNO)."""

from torch import Tensor

from unveil.losses.lengths import at_least_float32

LARGEST = 1e25  # larger logits count as this: their differences and sums would not fit float32


def sinkhorn(cosines: Tensor, *, epsilon: float = 0.05, iterations: int = 3) -> Tensor:
    """Soft assignments (B, K) of samples to clusters of about equal size, by Sinkhorn-Knopp.

    Q ∝ exp(cosines / ε); an iteration scales every column to the sum B/K, then every row to the sum 1. The rows sum to
    1 exactly, the columns to B/K in the limit. Computed with logarithms: a small ε does not overflow.
    """
    log_q = (cosines.detach().float() / epsilon).clamp(-LARGEST, LARGEST)
    for _ in range(iterations):
        log_q = log_q - log_q.logsumexp(dim=0, keepdim=True)  # B/K is the same for all, and the rows undo it
        log_q = log_q - log_q.logsumexp(dim=1, keepdim=True)
    return log_q.exp()


def swapped_prediction(logits: Tensor, logits_hat: Tensor, targets: Tensor, targets_hat: Tensor) -> Tensor:
    """Cross-entropy of each view's prediction with the targets of the other view, (B, K) each; 0 of an empty batch."""
    first = -(targets_hat * _log_softmax(logits)).sum()
    second = -(targets * _log_softmax(logits_hat)).sum()
    return (first + second) / (2 * max(len(logits), 1))


def _log_softmax(logits: Tensor) -> Tensor:
    return at_least_float32(logits).clamp(-LARGEST, LARGEST).log_softmax(dim=1)
