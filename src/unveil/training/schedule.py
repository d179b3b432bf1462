"""The learning rate as a function of time in epochs."""

import math

from unveil.settings import Stage


def learning_rate(config: Stage, time: float) -> float:
    """The rate at `time` (epochs, with fractions): warm-up, then steps, a cosine to zero, or constant."""
    rate = config.lr
    if time < config.warmup:
        return rate * time / config.warmup
    match config.schedule:
        case "step":
            return rate * config.decay ** sum(time >= milestone for milestone in config.milestones)
        case "cosine":
            progress = (time - config.warmup) / max(config.epochs - config.warmup, 1e-9)
            return rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        case "constant":
            return rate
