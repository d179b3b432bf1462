"""`python -m benchmarks step|limits|growth [--out FILE.json] [--device cpu] [--quick]`."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
import torch
from cyclopts import Parameter
from rich.console import Console

from benchmarks import growth, limits, rows, step
from unveil import __version__, files, hardware
from unveil.experiments import bench
from unveil.settings import Machine


def main(
    what: Literal["step", "limits", "growth"] = "step",
    /,
    *,
    out: Path | None = None,
    device: str = "cpu",
    quick: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Measure the speed of unveil.

    Parameters
    ----------
    what
        step: every part against the literal procedure. limits: against the machine's peak. growth: with the sizes.
    out
        A JSON file for the record; growth also writes a plot beside it.
    device
        cpu, cuda, …
    quick
        Tiny sizes, once each: shows that everything runs, measures nothing.
    """
    where = hardware.pick_device(device)
    picked = hardware.pick_precision(Machine(), where)
    record: dict[str, Any] = {
        "benchmark": what,
        "quick": quick,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "unveil": __version__,
        "commit": hardware.commit(),
        "machine": hardware.describe(where, picked),
    }
    precisions = list(dict.fromkeys([torch.float32, picked]))
    record |= measured(what, where, precisions, quick, out, Console(width=None if sys.stdout.isatty() else 170))
    if out is not None:
        files.write_json(out, record)


def measured(
    what: str, device: torch.device, precisions: list[torch.dtype], quick: bool, out: Path | None, console: Console
) -> dict[str, Any]:
    """The numbers of one benchmark, printed and for the record."""
    sizes = rows.QUICK if quick else rows.Sizes()
    match what:
        case "step":
            found = []
            for row in step.run(sizes, device, precisions):
                console.print(f"{row.name}, {row.precision}: {row.value:.2f} {row.unit}")
                found.append(row)
            console.print(rows.table(found))
            return {"rows": [row.record() for row in found]}
        case "limits":
            reports = list(limits.run(sizes, device, precisions))
            for report in reports:
                for shown in bench.tables(report):
                    console.print(shown)
                console.print(report.goals())
            return {"reports": [report.record() for report in reports]}
    curves = []
    for curve in growth.run(device, quick=quick):
        console.print(f"{curve.axis}: time grows with exponent {curve.exponent('seconds'):.2f}")
        curves.append(curve)
    console.print(growth.table(curves))
    large = growth.imagenet(device, quick=quick)
    console.print(f"ImageNet's queues: {large['extra'] / 1e6:.0f} MB above the model, {large['seconds']:.2f} s")
    if out is not None and not growth.plot(curves, out.with_suffix(".png")):
        console.print("no plot: matplotlib is not installed")
    return {"curves": [curve.record() for curve in curves], "imagenet": large}


if __name__ == "__main__":
    cyclopts.run(main)
