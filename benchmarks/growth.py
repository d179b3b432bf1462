"""How the cost of a discovery step without its network grows with each size of the problem.

The network costs the same per image whatever these sizes are. Every point is a step of heads, losses and queues (with
the unlabeled images also its data): the median time, the memory it takes while it runs and the memory it keeps.
"""

import itertools
import math
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table

from benchmarks.memory import peak_bytes, state_bytes
from unveil import rng
from unveil.data.items import Items
from unveil.data.loader import Loader
from unveil.data.task import UNLABELED
from unveil.data.views import make_views
from unveil.experiments.peak import Call, times
from unveil.experiments.workload import Losses
from unveil.recipe import load
from unveil.settings import Settings

LIMIT = 1e9
"""Bytes that a step with ImageNet's queues may need above the model."""
AXES: dict[str, tuple[int, ...]] = {
    "queue": (500, 1000, 2000, 5000, 10_000, 20_000),
    "batch": (64, 128, 256, 512, 1024),
    "k_easy": (50, 100, 200, 400, 800),
    "rounds": (1, 2, 5, 10),
    "novel classes": (5, 10, 20, 50, 100, 200),
    "known classes": (5, 20, 100, 300, 1000),
    "features": (128, 256, 512, 1024, 2048),
    "unlabeled images": (1000, 5000, 10_000, 25_000, 50_000),
}
QUICK_AXES = {name: (2, 4) if name == "rounds" else (8, 16) for name in AXES}


@dataclass(frozen=True)
class Point:
    """One size: seconds, bytes held while the step runs, bytes kept between steps."""

    value: int
    seconds: float
    peak: int
    state: int


@dataclass(frozen=True)
class Curve:
    """How cost grows along one axis."""

    axis: str
    points: tuple[Point, ...]

    def exponent(self, what: str) -> float:
        """The slope of log(cost) over log(size), by least squares."""
        x, y = self._logs(what)
        return float(np.polyfit(x, y, 1)[0])

    def last_exponent(self, what: str) -> float:
        """The slope between the two largest sizes, where what grows fastest shows most."""
        x, y = self._logs(what)
        return float((y[-1] - y[-2]) / (x[-1] - x[-2]))

    def record(self) -> dict[str, Any]:
        slopes = {
            what: {"fitted": self.exponent(what), "last": self.last_exponent(what)}
            for what in ("seconds", "peak", "state")
        }
        return {"axis": self.axis, "points": [asdict(point) for point in self.points], "exponents": slopes}

    def _logs(self, what: str) -> tuple[list[float], list[float]]:
        costs = [max(float(getattr(point, what)), 1e-9) for point in self.points]
        return [math.log(point.value) for point in self.points], [math.log(cost) for cost in costs]


def run(device: torch.device, *, quick: bool = False, repeats: int = 9) -> Iterator[Curve]:
    """A curve for each axis."""
    config = load("cifar10")
    if quick:
        config, repeats = changed(config, 8, queue=16, k_easy=4, k_hard=4), 1
    for axis, values in (QUICK_AXES if quick else AXES).items():
        yield Curve(axis, tuple(measure(axis, value, config, device, repeats) for value in values))


def measure(axis: str, value: int, config: Settings, device: torch.device, repeats: int) -> Point:
    """One point of a curve."""
    work = losses(axis, value, config, device)
    step: Call = work.step
    kept, data = state_bytes(work.objective) - state_bytes(work.objective.model), 0
    if axis == "unlabeled images":
        step, data = with_images(value, config, work.step, device)
    seconds = statistics.median(times(step, device, repeats))
    return Point(value, seconds, peak_bytes(step, device), kept + data)


def losses(axis: str, value: int, config: Settings, device: torch.device) -> Losses:
    """Heads, losses and queues with one size changed."""
    match axis:
        case "queue":
            work = Losses(changed(config, queue=value), device)
        case "batch":
            work = Losses(changed(config, value), device)
        case "k_easy":
            work = Losses(changed(config, k_easy=value), device)
        case "rounds":
            work = Losses(changed(config, rounds=value), device)
        case "novel classes":
            work = Losses(config, device, classes=(5, value))
        case "known classes":
            work = Losses(config, device, classes=(value, 5))
        case "features":
            work = Losses(config, device, dim=value)
        case _:  # queues never hold more than there is data
            queue = config.method.queue
            work = Losses(changed(config, queue=min(queue, value), queue_labeled=queue), device)
    return work


def changed(config: Settings, batch: int | None = None, labeled: int | None = None, **method: int) -> Settings:
    """The settings with another size of batches, or other settings of the method."""
    stage = config.discovery
    stage = replace(stage, batch=batch or stage.batch, labeled_per_batch=labeled or stage.labeled_per_batch)
    return replace(config, discovery=stage, method=replace(config.method, **method))


def with_images(count: int, config: Settings, rest: Call, device: torch.device) -> tuple[Call, int]:
    """A step with its data, from as many unlabeled images and a thousand labeled ones; and the images' bytes."""
    settings = load("cifar10")
    draw, labeled = rng.numpy(0, "pictures"), 1000
    pictures = draw.integers(0, 256, (labeled + count, 32, 32, 3), dtype=np.uint8)
    labels = np.where(np.arange(len(pictures)) < labeled, 0, UNLABELED)
    views = make_views(Items.of(pictures), settings.data, settings.augment, device, workers=0)
    loader = Loader(
        views=views, labels=labels, rows=np.arange(len(pictures)), batch=config.discovery.batch, seed=0, device=device
    )
    batches = itertools.chain.from_iterable(loader.epoch(epoch) for epoch in itertools.count())

    def step() -> None:
        next(batches)
        rest()

    return step, pictures.nbytes


def imagenet(device: torch.device, *, quick: bool = False, repeats: int = 5) -> dict[str, Any]:
    """A step with ImageNet's queues, 3,000 and 30,000, at batch 512: its time, and its memory above the model."""
    config = load("imagenet-reference-code")
    if quick:
        config = changed(config, 8, 6, queue=16, queue_labeled=32, k_easy=4, k_hard=4)
    work = Losses(config, device, classes=(882, 30))
    state = state_bytes(work.objective) - state_bytes(work.objective.model)
    seconds = statistics.median(times(work.step, device, 1 if quick else repeats))
    peak = peak_bytes(work.step, device)
    queues = {"queue": config.method.queue, "queue_labeled": config.method.queue_labeled}
    sizes = {"batch": config.discovery.batch, **queues}
    extra = state + peak
    return {**sizes, "seconds": seconds, "state": state, "peak": peak, "extra": extra, "holds": extra < LIMIT}


def table(curves: list[Curve]) -> Table:
    """For people: the first and last point of every axis and the exponents."""
    shown = Table("what grows", "from – to", "ms", "exponent", "at the end", "MB while it runs", "MB kept", "exponent")
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        shown.add_row(
            curve.axis,
            f"{first.value:,} – {last.value:,}",
            f"{1000 * first.seconds:.1f} – {1000 * last.seconds:.1f}",
            f"{curve.exponent('seconds'):.2f}",
            f"{curve.last_exponent('seconds'):.2f}",
            f"{first.peak / 1e6:.1f} – {last.peak / 1e6:.1f}",
            f"{first.state / 1e6:.1f} – {last.state / 1e6:.1f}",
            f"{curve.exponent('state'):.2f}",
        )
    return shown


def plot(curves: list[Curve], path: Path) -> bool:
    """A picture of all curves beside the record; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(14, 7), layout="constrained")
    for axes, curve in zip(figure.subplots(2, 4).flat, curves, strict=True):
        sizes = [point.value for point in curve.points]
        axes.loglog(sizes, [1000 * point.seconds for point in curve.points], "o-", label="ms")
        axes.loglog(sizes, [point.peak / 1e6 for point in curve.points], "s--", label="MB while it runs")
        axes.loglog(sizes, [point.state / 1e6 for point in curve.points], "^:", label="MB kept")
        axes.set(xlabel=curve.axis, title=f"time ~ size^{curve.exponent('seconds'):.2f}")
        axes.grid(visible=True, which="both", alpha=0.3)
    figure.axes[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return True
