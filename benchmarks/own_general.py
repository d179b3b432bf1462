"""Known classes inside: `python -m benchmarks.own_general --out results/own-general`.

The tasks of `benchmarks.own_data`, with every second item of the known classes among the unlabelled ones. Scored over
all unlabelled items, those of old (known) and of new classes, under one assignment. Beside it: what the fit starts from
(k-means of the items that lie among no known class), and semi-supervised k-means. Records that are there are not made
again. Novel labels are used for scoring alone.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.own_data import TASKS, load
from unveil import NovelClassDiscovery, files, recipe
from unveil.data.items import Items
from unveil.data.task import Task
from unveil.discovery.clusters import semi_kmeans
from unveil.discovery.count import estimate_classes
from unveil.discovery.known_neighbors import warn_of_known_classes
from unveil.discovery.run import environment
from unveil.discovery.vectors import choose_reduction, training_rows
from unveil.metrics import open_accuracy


def measure(name: str, seed: int) -> dict[str, object]:
    x, y, truth = load(TASKS[name])
    known = np.unique(y[y >= 0])
    y = np.where(np.random.default_rng(seed).random(len(y)) < 0.5, -1, y)
    names = np.concatenate([known, np.setdiff1d(truth, known)])
    truth = np.argsort(names)[truth]  # known classes first
    hidden, count = y == -1, len(names) - len(known)
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = NovelClassDiscovery(n_novel=count, method="ncl-hng", known_in_unlabelled=True, random_state=seed).fit(
            x, y
        )
    seconds = time.monotonic() - begun
    rows = training_rows(y, seed)
    labels = np.where(y[rows] >= 0, truth[rows], -1)
    z = choose_reduction(x[rows], labels, seed)[0](x[rows])
    counted = estimate_classes(z[labels >= 0], labels[labels >= 0], z[labels < 0], seed=seed, known_in_unlabelled=True)
    task = Task(name=name, items=Items.of(z), labels=labels, known=tuple(known.tolist()), n_novel=count)
    semi = semi_kmeans(z[labels < 0], z[labels >= 0], labels[labels >= 0], len(names), seed)
    trust = found.forecast_

    def scores(clusters: NDArray[np.int64], at: NDArray[np.int64]) -> dict[str, float]:
        return open_accuracy(truth[at], clusters, len(known))

    new = np.flatnonzero(hidden)
    return {
        "task": name,
        "seed": seed,
        "items": {
            "labelled": int((~hidden).sum()),
            "old": int((truth[hidden] < len(known)).sum()),
            "new": int((truth[hidden] >= len(known)).sum()),
        },
        "classes": {"known": len(known), "novel": count},
        "accuracy": {
            "unveil": scores(found.labels_[new], new),
            "kmeans": scores(found.kmeans_labels_[new], new),
            "semi_kmeans": scores(semi.labels, rows[labels < 0]),
        },
        "expected": {"accuracy": trust.accuracy, "low": trust.low, "high": trust.high},
        "counted": {"number": counted.number, "low": counted.low, "high": counted.high},
        "warned": bool(warn_of_known_classes(task, z, seed)),
        "rehearsals": list(trust.rehearsals),
        "choice": found.choice_,
        "seconds": round(seconds, 1),
        "config": {key: value for key, value in found.get_params().items() if key != "store"},
        "environment": environment(recipe.load("trained-vectors")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-general"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="names of tasks")
    args = parser.parse_args()
    for seed in range(args.seeds):
        for name in args.only or TASKS:
            path = args.out / f"{name}-seed{seed}.json"
            if path.exists():
                continue
            record = measure(name, seed)
            files.write_json(path, record)
            print(name, seed, record["accuracy"], record["expected"], record["counted"], record["warned"], flush=True)


if __name__ == "__main__":
    main()
