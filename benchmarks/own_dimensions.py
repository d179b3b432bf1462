"""In how many dimensions graphs are embedded: `python -m benchmarks.own_dimensions --out results/own-dimensions.json`.

Random subsets of known classes of some tasks are split into known and hidden ones, once with hidden classes of equal
size and once with a long tail, and clustered: embeddings of 12 and 16 dimensions, of one fewer than there are clusters,
and what neighbor consensus takes. Its constants were chosen on such splits; no novel class of a task is looked at.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_count import known_rows
from benchmarks.own_tasks import Labels, Vectors
from unveil import files, recipe
from unveil.clustering import neighbor_consensus
from unveil.clustering.neighbor_consensus import NeighborConsensusSettings, find_clusters
from unveil.discovery.result import environment
from unveil.encoders.metric import choose_metric
from unveil.metrics import clustering_accuracy

NAMES = ("letter", "cifar100", "imagenet20", "clinc150", "digits", "mnist", "fashion-mnist")
CLASSES = (4, 5, 6, 8, 10, 12)
"""Hidden in each split; three where there are five."""
TAIL = 10
"""How many times as many rows the largest hidden class has as the smallest one."""
SEEDS = 2
Choices = list[tuple[int, ...]]
VARIANTS: dict[str, Callable[[Choices], Choices]] = {
    "12 and 16 dimensions": lambda choices: choices[:1],
    "one fewer than clusters": lambda choices: choices[-1:],
    "as it is": lambda choices: choices,
}


@contextmanager
def only(some: Callable[[Choices], Choices]) -> Iterator[None]:
    """Some of the choices of dimensions alone, for a moment."""
    usual = neighbor_consensus.choices_of_dimensions
    try:
        neighbor_consensus.choices_of_dimensions = lambda *given: some(usual(*given))
        yield
    finally:
        neighbor_consensus.choices_of_dimensions = usual


def split(x: Vectors, y: Labels, number: int, tail: bool) -> tuple[Vectors, Labels, Labels]:
    """Rows of some classes, their labels with -1 where they are hidden, and the truth."""
    draw, classes = np.random.default_rng(number), np.unique(y)
    count = min(CLASSES[number], len(classes) - 2)
    chosen = draw.permutation(classes)[: 2 * count + 2]
    keep = np.isin(y, chosen)
    if tail:
        for rank, label in enumerate(chosen[:count]):
            members = np.flatnonzero(y == label)
            keep[members[max(5, round(len(members) * TAIL ** (-rank / (count - 1)))) :]] = False
    return x[keep], np.where(np.isin(y[keep], chosen[:count]), -1, y[keep]), y[keep]


def measure(x: Vectors, labels: Labels, truth: Labels) -> dict[str, Any]:
    """Accuracy of each variant, by seed."""
    begun, new = time.monotonic(), labels < 0
    metric = choose_metric(x, labels)
    base = metric.base(x)(x)
    z = metric.shaping(base, labels)(base)
    z = z / np.float32(z.std())
    y, count = np.unique(labels[~new], return_inverse=True)[1], len(np.unique(truth[new]))
    found = {}
    for name, some in VARIANTS.items():
        with only(some):
            clusters = [find_clusters(z[new], z[~new], y, count, NeighborConsensusSettings(), s) for s in range(SEEDS)]
        found[name] = [clustering_accuracy(truth[new], one) for one in clusters]
    return {
        "novel": count,
        "rows": int(new.sum()),
        "accuracy": found,
        "seconds": round(time.monotonic() - begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-dimensions.json"))
    args = parser.parse_args()
    records = json.loads(args.out.read_text())["records"] if args.out.exists() else []
    done = {(one["data"], one["draw"], one["tail"]) for one in records}
    for name in NAMES:
        x, y = known_rows(name)
        for number in range(len(CLASSES)):
            for tail in (False, True):
                if (name, number, tail) not in done:
                    found = measure(*split(x, y, number, tail))
                    records.append({"data": name, "draw": number, "tail": tail, **found})
                    print(records[-1], flush=True)
        files.write_json(args.out, {"records": records, "environment": environment(recipe.load("vectors"))})


if __name__ == "__main__":
    main()
