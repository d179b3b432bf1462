"""ω(t), the weight of the consistency loss over time (Sec. 3.1)."""

import math


def sigmoid_rampup(epoch: float, length: float) -> float:
    """exp(-5 (1 - t)²) with t = epoch / length clipped to [0, 1]; 1 when `length` is 0."""
    if length <= 0:
        return 1.0
    t = min(max(epoch / length, 0.0), 1.0)
    return math.exp(-5.0 * (1.0 - t) ** 2)
