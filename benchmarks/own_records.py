"""The records of `benchmarks.own_data`: what was measured of unveil and of others on the same tasks."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

Record = dict[str, Any]
Records = dict[str, dict[str, list[Record]]]
"""By task and kind."""


def read(folder: Path) -> Records:
    """All records of a folder."""
    records: Records = {}
    for path in sorted(folder.glob("*/*-seed*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        records.setdefault(record["task"], {}).setdefault(record["kind"], []).append(record)
    return records


def accuracy(records: Sequence[Record]) -> float:
    """Mean over seeds, in %."""
    return 100 * fmean(record["acc"] for record in records)


def of_peers(kinds: dict[str, list[Record]]) -> dict[str, float]:
    """The mean accuracy of each peer over seeds, in %."""
    of_seeds = [record["scores"] for record in kinds["peers"]]
    return {name: 100 * fmean(scores[name]["acc"] for scores in of_seeds) for name in of_seeds[0]}


def is_unbalanced(task: str) -> bool:
    return task.endswith(("-10to1", "-tail"))
