"""Processes that train together: parity of 1, 2 and 4, and what gloo needs here.

    python -m benchmarks.together --out results/together.json

Parity: 20 steps of discovery (and the stages before it) on digits with an encoder without BatchNorm, by 1, 2 and 4
processes with the same global batch; the largest difference of any loss of any step, and of the queues at the end.
Gloo: the messages of a step with the sizes of the CIFAR and ImageNet recipes, on the loopback interface of this
machine, whose counter says how many bytes they were.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from unveil import files, hardware, ranks

ROOT = Path(__file__).resolve().parent.parent
COUNTS = (1, 2, 4)
REPEATS = 15
VIEWS, DIM, PARAMETERS = 2, 512, 8_400_000
"""Features of a ResNet-18, and the parameters of its last block and of the heads, which train."""
BATCHES = {"CIFAR": 128, "ImageNet": 512}


def measure() -> dict[str, Any]:
    """In each of the processes: losses, queues and features; milliseconds and bytes of messages."""
    sys.path.insert(0, str(ROOT / "tests"))
    from rank_program import trained

    together = ranks.join()
    found = trained("ncl-hng", "discovery.batch=64")
    found["gloo"] = {} if together.count == 1 else messages(together)
    ranks.leave()
    return found


def messages(together: ranks.Ranks) -> dict[str, Any]:
    """Median milliseconds of every message of a step, and the bytes that all ranks send."""
    found = {}
    for name, batch in BATCHES.items():
        own = len(range(batch)[together.part(batch)])
        features = torch.randn(own, VIEWS * DIM)
        found[f"features, {name}"] = timed(lambda rows=features, size=batch: together.gather(rows, size), together)
    gradients = torch.randn(PARAMETERS)
    found["gradients"] = timed(lambda: distributed.all_reduce(gradients), together)
    found["whether to stop"] = timed(lambda: together.any(False), together)
    return found


def timed(call: Callable[[], object], together: ranks.Ranks) -> dict[str, float]:
    """The median over some calls after two that do not count."""
    for _ in range(2):
        call()
    together.wait()
    before, seconds = sent(), []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    together.wait()
    bytes_sent = (sent() - before) / REPEATS
    return {"ms": round(1000 * statistics.median(seconds), 2), "bytes": round(bytes_sent)}


def sent() -> int:
    """Bytes that were sent over the loopback interface since the machine was started."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


def start(count: int) -> list[dict[str, Any]]:
    """Results of `count` processes."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
        probe.close()
        outs = [Path(folder, f"{rank}.json") for rank in range(count)]
        common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.together", "--rank-out", str(out)],
                cwd=ROOT,
                env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank, out in enumerate(outs)
        ]
        if any(process.wait(1200) for process in processes):
            raise SystemExit(f"a rank of {count} failed")
        return [json.loads(out.read_text()) for out in outs]


def difference(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """The largest difference of a loss by stage, and of a number in the queues."""
    found = {
        stage: max(abs(a[name] - b[name]) for a, b in zip(steps, other["losses"][stage], strict=True) for name in a)
        for stage, steps in one["losses"].items()
    }
    pairs = zip(one["queues"], other["queues"], strict=True)
    found["queues"] = max(float(np.abs(np.array(a) - np.array(b)).max()) for a, b in pairs)
    assert one["queue_labels"] == other["queue_labels"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rank-out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.rank_out:
        args.rank_out.write_text(json.dumps(measure()))
        return
    outcomes = {count: start(count) for count in COUNTS}
    alone = outcomes[1][0]
    record = {
        "steps": {stage: len(steps) for stage, steps in alone["losses"].items()},
        "parity": {str(count): difference(alone, outcomes[count][0]) for count in COUNTS[1:]},
        "equal on all ranks": all(
            one["losses"] == rows[0]["losses"] and one["queues"] == rows[0]["queues"]
            for rows in outcomes.values()
            for one in rows
        ),
        "gloo": {str(count): outcomes[count][0]["gloo"] for count in COUNTS[1:]},
        "sizes": {"views": VIEWS, "features": DIM, "parameters": PARAMETERS, "batches": BATCHES},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": hardware.commit(),
        "machine": hardware.describe(torch.device("cpu"), torch.float32),
    }
    print(json.dumps(record, indent=1))
    if args.out:
        files.write_json(args.out, record)


if __name__ == "__main__":
    main()
