"""How long a fit on vectors takes, and how much memory: `python -m benchmarks.own_speed --out results/own-speed.json`.

Float32 vectors of 512 numbers in a memory-mapped file, 10 known and 10 novel classes, half of the rows labeled, the
number of novel classes given, everything else as it is by default. Each size is a process of its own; memory is the
highest resident size above that before the fit, and the file's own pages count too, as the system counts them.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from unveil import files, recipe
from unveil.discovery.result import environment

DIMS, CLASSES = 512, 20
SIZES = (10_000, 50_000, 200_000, 1_000_000)


def write(path: Path, rows: int, seed: int = 0) -> np.ndarray:
    """Overlapping classes: neighbors are right, and k-means errs. Returns the class of each row."""
    draw = np.random.default_rng(seed)
    centers = draw.normal(size=(CLASSES, DIMS)).astype(np.float32)
    y = draw.integers(0, CLASSES, rows)
    x = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, DIMS))
    for start in range(0, rows, 20_000):
        part = y[start : start + 20_000]
        x[start : start + 20_000] = centers[part] + 3 * draw.normal(size=(len(part), DIMS))
    x.flush()
    return y


def fit(path: Path, y: np.ndarray, pipe: object) -> None:
    """In a process of its own."""
    from unveil import NovelClassDiscovery
    from unveil.metrics import clustering_accuracy

    estimator = NovelClassDiscovery(n_novel=10, random_state=0)  # torch is imported here, before memory is read
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x = np.load(path, mmap_mode="r")
    begun = time.monotonic()
    estimator.fit(x, np.where(y < 10, y, -1))
    seconds = time.monotonic() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    novel = y >= 10
    accuracy = clustering_accuracy(y[novel], estimator.labels_[novel])
    line = {"rows": len(y), "seconds": round(seconds, 1), "file_mb": round(x.nbytes / 1e6), "accuracy": accuracy}
    pipe.send({**line, "peak_mb": round((peak - before) / 1024), "choice": estimator.choice_})  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in args.sizes:
            path = Path(folder) / "x.npy"
            y = write(path, size)
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.get_context("spawn").Process(target=fit, args=(path, y, theirs))
            process.start()
            rows.append(ours.recv())
            process.join()
            print(rows[-1], flush=True)
    if args.out:
        files.write_json(args.out, {"rows": rows, "dims": DIMS, "environment": environment(recipe.load("vectors"))})


if __name__ == "__main__":
    main()
