"""How far a discovery step is from what the machine can do; the measuring itself is `unveil.experiments.bench`."""

from collections.abc import Iterator

import torch

from benchmarks.rows import QUICK, Sizes
from unveil.experiments.bench import Report, measure


def run(sizes: Sizes, device: torch.device, precisions: list[torch.dtype]) -> Iterator[Report]:
    """A report for each precision."""
    repeats, matrix = (1, 64) if sizes is QUICK else (sizes.network_rounds, 2048 if device.type == "cpu" else 8192)
    for precision in precisions:
        yield measure(sizes.settings(), device, precision, repeats=repeats, matrix=matrix)
