"""How long a fit on little data takes: `python -m benchmarks.small_data --out results/small-data.json`.

Digits (64 columns) and letters (16 columns), the last half of the classes novel, everything else as it is by default.
Imports are not counted: a fit on few rows comes first. Seconds are those of the clock and, for machines that do other
work too, those of the processor.
"""

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from unveil import NovelClassDiscovery, files, recipe
from unveil.data import catalog
from unveil.discovery.result import environment
from unveil.metrics import clustering_accuracy

SIZES = {"digits": (140, 1000), "letter": (1000, 5000)}
SEED = 0
Rows = tuple[NDArray[np.float32], NDArray[np.int64]]


def data(name: str) -> Rows:
    """Vectors and classes."""
    if name == "digits":
        x, y = load_digits(return_X_y=True)
        return x.astype(np.float32), y
    with np.load(catalog.data_root() / "letter.npz", allow_pickle=False) as file:
        return file["X"].astype(np.float32), np.unique(file["y"], return_inverse=True)[1]


def measure(x: NDArray[np.float32], y: NDArray[np.int64], *, given: bool) -> dict[str, Any]:
    """One fit, the number of novel classes given or estimated."""
    classes = int(y.max()) + 1
    novel = y >= classes // 2
    estimator = NovelClassDiscovery(n_novel=classes - classes // 2 if given else "auto", random_state=SEED)
    begun, processor = time.monotonic(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(x, np.where(novel, -1, y))
    return {
        "rows": len(x),
        "columns": x.shape[1],
        "number": "given" if given else "estimated",
        "seconds": round(time.monotonic() - begun, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "acc": round(clustering_accuracy(y[novel], estimator.labels_[novel]), 4),
    }


def main() -> None:
    """Measure every size, the number of classes given and estimated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    x, y = data("digits")
    measure(x[:60], y[:60], given=False)  # imports
    rows = []
    for name, sizes in SIZES.items():
        x, y = data(name)
        order = np.random.default_rng(SEED).permutation(len(x))
        for size in sizes:
            for given in (True, False):
                rows.append({"task": name, **measure(x[order[:size]], y[order[:size]], given=given)})
                print(rows[-1], flush=True)
    if options.out:
        record = {"rows": rows, "seed": SEED, "load": round(os.getloadavg()[0], 1)}
        files.write_json(options.out, {**record, "environment": environment(recipe.load("vectors"))})


if __name__ == "__main__":
    main()
