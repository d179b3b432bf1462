"""What a benchmark of the step measures, and the lines of its table."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.table import Table

from benchmarks.timing import Timing, ratio
from unveil import settings
from unveil.recipe import load

KNOWN = NOVEL = 5
SIDE = 32


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What is measured, and how often."""

    batch: int = 128
    queue: int = 2000
    k_easy: int = 400
    width: int = 64
    compact_width: int = 32
    items: int = 1024
    rounds: int = 9
    network_rounds: int = 7
    pretraining_rounds: int = 3

    def settings(self) -> settings.Settings:
        """The paper's recipe at this size."""
        shape = {"encoder.width": self.width, "encoder.blocks": [2, 2, 2, 2], "encoder.space_to_depth": 1}
        network = {"encoder.name": "resnet18"} if self.width == 64 else {"encoder.name": "compact", **shape}
        sizes = {"discovery.batch": self.batch, "method.queue": self.queue, "method.k_easy": self.k_easy}
        return load("cifar10", {**network, **sizes})


QUICK = Sizes(
    batch=8,
    queue=40,
    k_easy=10,
    width=8,
    compact_width=4,
    items=64,
    rounds=1,
    network_rounds=1,
    pretraining_rounds=1,
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table. `value` has the unit × (times faster), images/s or % of the step."""

    name: str
    precision: str
    value: float
    low: float
    high: float
    unit: str = "×"
    target: float | None = None
    literal_seconds: float | None = None
    seconds: float

    @property
    def holds(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        if self.target is None:
            return None
        return self.value <= self.target if self.unit == "%" else self.value >= self.target

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}


def against(name: str, times: dict[str, Timing], key: str, target: float | None, *, precision: str = "float32") -> Row:
    """The row that compares times["literal"] with times[key]."""
    found = ratio(times["literal"], times[key])
    return Row(
        name=name,
        precision=precision,
        value=found.median,
        low=found.low,
        high=found.high,
        target=target,
        literal_seconds=times["literal"].median,
        seconds=times[key].median,
    )


def throughput(name: str, timing: Timing, images: int, target: float | None, precision: str) -> Row:
    """A row in images/s."""
    rates = sorted(images / seconds for seconds in timing.seconds)
    return Row(
        name=name,
        precision=precision,
        value=images / timing.median,
        low=rates[0],
        high=rates[-1],
        unit="images/s",
        target=target,
        seconds=timing.median,
    )


def overhead(name: str, step: Timing, network: Timing, target: float | None, precision: str) -> Row:
    """The share of a step that is not trunk and tail, in %."""
    each = ratio(network, step)
    value, low, high = (100 * (1 - share) for share in (each.median, each.high, each.low))
    return Row(
        name=name,
        precision=precision,
        value=value,
        low=low,
        high=high,
        unit="%",
        target=target,
        seconds=step.median,
    )


def name_of(precision: torch.dtype) -> str:
    """float32, bfloat16."""
    return str(precision).removeprefix("torch.")


def table(rows: list[Row]) -> Table:
    """For people."""
    columns = ("what", "precision", "literal ms", "unveil ms", "reached", "middle half", "wanted", "")
    shown = Table(*columns, title="against the literal procedure in float32")
    for row in rows:
        digits = 0 if row.unit == "images/s" else 1
        wanted = "" if row.target is None else f"{'≤' if row.unit == '%' else '≥'} {row.target:g} {row.unit}"
        shown.add_row(
            row.name,
            row.precision,
            "" if row.literal_seconds is None else f"{1000 * row.literal_seconds:.1f}",
            f"{1000 * row.seconds:.1f}",
            f"{row.value:.{digits}f} {row.unit}",
            f"{row.low:.{digits}f} – {row.high:.{digits}f}",
            wanted,
            {True: "holds", False: "missed", None: ""}[row.holds],
        )
    return shown
