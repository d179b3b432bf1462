"""How many of the neighbors that discovery starts with share a class, on the features of a run that trains nothing.

    unveil run mnist-desk --set discovery.method=neighbor-consensus --out runs/start
    python -m benchmarks.start_neighbors runs/start "rotations and known classes" --out results/start-neighbors/1.json

Queries and a queue of 2,000 are drawn from the unlabelled items. The nearest tenth, quarter and half of a class are
what `method.k1_fraction` of 0.1, 0.25 and 0.5 takes as pseudo-positives.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil import files, rng
from unveil.runs.reader import Run, load

QUERIES, QUEUE = 500, 2000
FRACTIONS = {"nearest tenth %": 0.1, "nearest quarter %": 0.25, "nearest half %": 0.5}


def purity(z: NDArray[np.float32], y: NDArray[np.str_], fraction: float, seed: int = 0) -> float:
    """The share of the nearest `fraction` of a class in the queue that are of the query's class. z: (n, D)."""
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    order = rng.numpy(seed, "start neighbors").permutation(len(z))
    stored, queries = order[: min(QUEUE, len(z) * 3 // 4)], order[-min(QUERIES, len(z) // 4) :]
    count = max(1, int(fraction * len(stored) / len(np.unique(y))))
    nearest = np.argsort(-(unit[queries] @ unit[stored].T), axis=1)[:, :count]  # (queries, count)
    return float((y[stored][nearest] == y[queries][:, None]).mean())


def measure(run: Run, tried: str) -> dict[str, object]:
    with (run.folder / "truth.csv").open(newline="", encoding="utf-8") as file:
        truth = {row["id"]: row["label"] for row in csv.DictReader(file)}
    y = np.array([truth[name] for name, new in zip(run.ids, run.new, strict=True) if new])
    z = np.asarray(run.features[run.new], dtype=np.float32)
    record = run.record
    shown = {
        "data": record["config"]["data"]["name"],
        **{name: round(100 * purity(z, y, fraction), 1) for name, fraction in FRACTIONS.items()},
        "k-means ACC %": round(100 * record["kmeans"]["acc"], 1),
        "neighbor consensus ACC %": round(100 * record["metrics"]["acc"], 1),
    }
    kept = {name: record[name] for name in ("seed", "config", "environment", "seconds", "finished")}
    return {"tried": tried, "shown": shown, **kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("tried", help="the pre-training, in words")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(given.out, measure(load(given.run), given.tried))


if __name__ == "__main__":
    main()
