"""How close a discovery step comes to what this machine can do: `unveil bench`.

The limit is the machine's own: the rate of a large matrix product and of the network's convolutions run alone. Images
are random, so no data set is needed.
"""

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

from unveil.experiments.peak import Call, convolutions, flops, matrix_rate, times
from unveil.experiments.workload import Losses, Workload
from unveil.models import frozen
from unveil.settings import Settings


@dataclass(frozen=True)
class Part:
    """A part of the step: its median time, its work, and the time of its convolutions alone where it has any."""

    name: str
    seconds: float
    flops: float
    convolutions: float | None = None


@dataclass(frozen=True)
class Report:
    """The measurements. Rates are in FLOP/s."""

    precision: str
    rates: dict[str, float]
    parts: tuple[Part, ...]

    @property
    def peak(self) -> float:
        """The highest rate that anything reached."""
        return max(self.rates.values())

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def record(self) -> dict[str, Any]:
        """For JSON, with the limit of each part and the fraction reached."""
        parts = [{**asdict(part), "limit": self.limit(part), "fraction": self.fraction(part)} for part in self.parts]
        return {"precision": self.precision, "rates": self.rates, "parts": parts, "goals": self.goals()}

    def limit(self, part: Part) -> float | None:
        """Seconds at the peak rate; None for a part that only moves memory."""
        return part.flops / self.peak if part.flops else None

    def fraction(self, part: Part) -> float | None:
        return part.flops / self.peak / part.seconds if part.flops else None

    def goals(self) -> dict[str, float]:
        """Ratios: the first should be at most 1.15, the second at least 0.9. The peak is the highest rate."""
        trunk, tail = self.part("trunk, both views"), self.part("tail, forward + backward")
        return {
            "cached step / tail": self.part("step, trunk cached").seconds / tail.seconds,
            "trunk, fraction of its convolutions alone": (trunk.convolutions or 0.0) / trunk.seconds,
            "trunk, fraction of the peak": trunk.flops / self.peak / trunk.seconds,
        }


def measure(
    settings: Settings, device: torch.device, precision: torch.dtype, *, repeats: int = 7, matrix: int = 2048
) -> Report:
    """Measure peak, parts and whole steps of a recipe's discovery stage."""
    work = Workload(settings, device, precision)
    model, batch = work.model, next(work.batches)
    x = torch.cat(batch.views)
    h = model.trunk(x)
    tail = list(model.encoder.tail.parameters())
    losses = Losses(settings, device, dim=model.encoder.dim)

    def through_tail() -> None:
        with model.autocast():
            z: Tensor = model.encoder.tail(h).float()
        torch.autograd.grad(z.sum(), tail)

    rates = {f"matrix product {matrix}": matrix_rate(matrix, device, precision, repeats)}
    alone = {}
    for name, part, inputs in (
        ("trunk, both views", frozen(model.encoder.trunk), x),
        ("tail, forward + backward", model.encoder.tail, h),
    ):
        layers = convolutions(part, inputs, precision, repeats, backward=part is model.encoder.tail)
        rates.update({layer.name: layer.rate for layer in layers})
        alone[name] = sum(layer.seconds for layer in layers)
    work.step()  # leaves the gradients that the optimizer needs
    calls: dict[str, Call] = {
        "data, both views": lambda: next(work.batches),
        "trunk, both views": lambda: model.trunk(x),
        "tail, forward + backward": through_tail,
        "heads, losses, queues": losses.step,
        "optimizer": work.optimizer.step,
        "step, nothing cached": work.step,
    }
    parts = [timed(name, call, device, repeats, alone.get(name)) for name, call in calls.items()]
    with tempfile.TemporaryDirectory() as folder:
        fast = Workload(settings, device, precision, cache=Path(folder))
        parts.append(timed("step, trunk cached", fast.step, device, repeats))
        del fast
    return Report(str(precision).removeprefix("torch."), rates, tuple(parts))


def timed(name: str, call: Call, device: torch.device, repeats: int, alone: float | None = None) -> Part:
    """Measure a part of the step; `call` performs it once."""
    return Part(name, statistics.median(times(call, device, repeats)), flops(call), alone)


def tables(report: Report) -> Iterator[Table]:
    """Two tables: the rates of the machine, and the parts of the step compared with them."""
    rates = Table("alone", "GFLOP/s", title=f"What this machine reaches, {report.precision}")
    for name, rate in report.rates.items():
        rates.add_row(name, f"{rate / 1e9:.0f}")
    yield rates
    columns = ("part", "GFLOP", "ms", "limit ms", "reached", "convolutions alone ms")
    parts = Table(*columns, title=f"The discovery step, {report.precision}")
    for part in report.parts:
        times = [part.seconds, report.limit(part), part.convolutions]
        took, limit, alone = ("" if seconds is None else f"{1000 * seconds:.1f}" for seconds in times)
        reached = "" if (fraction := report.fraction(part)) is None else f"{100 * fraction:.0f} %"
        parts.add_row(part.name, f"{part.flops / 1e9:.1f}", took, limit, reached, alone)
    yield parts
