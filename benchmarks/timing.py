"""Measuring things side by side in one process."""

import gc
import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from unveil.experiments.peak import Call, synchronize


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, once for each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Ratio:
    """How many times faster: the median over rounds and the range of its middle half."""

    median: float
    low: float
    high: float


def alternate(
    steps: Mapping[str, Call], device: torch.device, *, rounds: int, warmup: int = 1, at_least: float = 0.05
) -> dict[str, Timing]:
    """Time A, B, C, A, B, C, …: what else happens on the machine then hits all of them alike.

    A step that is short is repeated within its turn until `at_least` seconds are filled, after one call that does not
    count: in training each step follows another of its kind, not one that has just handed its memory back.
    """
    repeats, short = {}, set()
    for name, step in steps.items():
        seconds = min(_timed(step, device) for _ in range(max(warmup, 1)))
        repeats[name] = 1 if warmup == 0 else max(1, math.ceil(at_least / max(seconds, 1e-6)))
        short |= {name} if warmup and seconds < 0.5 else set()
    found: dict[str, list[float]] = {name: [] for name in steps}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, step in steps.items():
                if name in short:
                    step()
                found[name].append(_timed(step, device, repeats[name]))
    finally:
        gc.enable()
    return {name: Timing(tuple(seconds)) for name, seconds in found.items()}


def ratio(slow: Timing, fast: Timing) -> Ratio:
    """slow / fast, from the rounds in which both were measured."""
    each = [a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)]
    if len(each) == 1:
        return Ratio(each[0], each[0], each[0])
    low, middle, high = statistics.quantiles(each, n=4, method="inclusive")
    return Ratio(middle, low, high)


def _timed(step: Call, device: torch.device, repeats: int = 1) -> float:
    synchronize(device)
    begun = time.perf_counter()
    for _ in range(repeats):
        step()
    synchronize(device)
    return (time.perf_counter() - begun) / repeats
