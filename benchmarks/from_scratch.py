"""What training from scratch on two cores reaches, from docs/from-scratch.toml and records."""

import csv
import json
import statistics
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = ("ACC %", "seeds", "k-means", "NCL + HNG", "command")


@dataclass(frozen=True)
class Measured:
    """ACC in percent of one entry: k-means on the features and NCL + HNG, by seed or by part (alphabets)."""

    seeds: int
    kmeans: list[float]
    ours: list[float]
    spread: float | None
    """Standard deviation over seeds."""


def table(results: Path) -> str:
    """A line for each entry of which there are records."""
    entries = tomllib.loads((ROOT / "docs" / "from-scratch.toml").read_text(encoding="utf-8"))["row"]
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for entry in entries:
        if (measured := _measured(results, entry)) is not None:
            lines.append(f"| {' | '.join(_cells(entry, measured))} |")
    return "\n".join(lines) if len(lines) > 2 else "*No records yet.*"


def _cells(entry: dict[str, Any], measured: Measured) -> list[str]:
    ours = statistics.fmean(measured.ours)
    return [
        entry["what"],
        str(measured.seeds),
        f"{statistics.fmean(measured.kmeans):.1f}",
        f"{ours:.1f}" if measured.spread is None else f"{ours:.1f} ± {measured.spread:.1f}",
        f"`{entry['command']}`",
    ]


def _measured(results: Path, entry: dict[str, Any]) -> Measured | None:
    path = results / entry["records"]
    if path.suffix == ".csv":
        rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
        base, ours = ([row for row in rows if row["row"].endswith(name)] for name in (entry["base"], entry["row"]))
        if not ours:
            return None
        kmeans, accuracies = ([float(row["acc_mean"]) for row in some] for some in (base, ours))
        spread = float(ours[0]["acc_std"]) if len(ours) == 1 and ours[0]["acc_std"] else None
        return Measured(int(ours[0]["seeds"]), kmeans, accuracies, spread)
    records = [json.loads(one.read_text(encoding="utf-8")) for one in sorted(path.glob("ncl-hng-seed*.json"))]
    if not records:
        return None
    kmeans, accuracies = ([100 * record[key]["acc"] for record in records] for key in ("kmeans", "metrics"))
    return Measured(len(records), kmeans, accuracies, statistics.stdev(accuracies) if len(records) > 1 else None)
