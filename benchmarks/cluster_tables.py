"""Tables in Markdown of what was measured beyond one machine: records of `large`, `together`, `hosts` and `flops`."""

import json
from pathlib import Path
from typing import Any

MISSING = "*Not measured yet.*"
LABELS_BY = {"neighbor-consensus": "vote of neighbors", "kmeans": "nearest center"}


def _read(path: Path) -> dict[str, Any] | None:
    path = path.with_suffix(".json")
    record: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return record


def _table(header: list[str], rows: list[list[object]]) -> str:
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def rows_in_shards(path: Path) -> str:
    """Rates and memory of discover and predict."""
    record = _read(path)
    if record is None:
        return MISSING
    header = ["command", "labels by", "engine", "workers", "rows", "rows/s", "MB"]
    measured = [row for row in record["rows"] if row["command"] in ("discover", "predict") and row["rows_per_second"]]
    return _table(
        header,
        [
            [
                row["command"],
                LABELS_BY[row["method"]],
                row["engine"],
                row["workers"],
                f"{row['rows']:,}",
                f"{row['rows_per_second']:,.0f}",
                f"{max(row['peak_mb_first_half'], row['peak_mb_second_half']):,.0f}",
            ]
            for row in measured
        ],
    )


def parity(path: Path) -> str:
    """The largest difference from one process."""
    record = _read(path)
    if record is None:
        return MISSING
    header = ["processes", *(f"{stage}, {steps} steps" for stage, steps in record["steps"].items()), "queues"]
    rows = [
        [count, *(f"{found[name]:.1e}" for name in (*record["steps"], "queues"))]
        for count, found in record["parity"].items()
    ]
    return _table(header, rows)


def hosts(path: Path) -> str:
    """What became of the runs on two hosts."""
    record = _read(path)
    if record is None:
        return MISSING
    header = ["the cable is", "exit codes", "seconds", "result"]
    rows = []
    for name, found in record["scenarios"].items():
        result = "a complete run" if found["result"] else "none, an error"
        if "same_bytes" in found:
            result = "that of the undisturbed run, byte for byte" if found["same_bytes"] else f"{result}, not the same"
        rows.append([name, ", ".join(map(str, found["exit_codes"])), found["seconds"], result])
    return _table(header, rows)


def hours(path: Path) -> str:
    """Wall-clock estimates of the paper's tables."""
    record = _read(path)
    if record is None:
        return MISSING
    header = ["data", "trainings", "EFLOP", "all tables, 1 GPU", "8 GPUs, a run on each", "one run, 1 GPU", "8 GPUs"]
    rows = []
    for data, found in record["data"].items():
        one = [sum(stage[key] for stage in found["one_run"].values()) for key in ("hours_1_gpu", "hours_8_gpus")]
        total = sum(found["exaflop"].values())
        cells = [found["hours_1_gpu"], found["hours_8_gpus"], *one]
        rows.append([data, found["runs"], f"{total:.3g}", *(f"{cell:,.1f} h" for cell in cells)])
    return _table(header, rows)


TABLES = {
    "rows": rows_in_shards,
    "parity": parity,
    "hosts": hosts,
    "hours": hours,
}
