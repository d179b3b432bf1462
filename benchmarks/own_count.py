"""How well classes are counted: `python -m benchmarks.own_count --out results/own-count.json`.

Known classes of the tasks of `benchmarks.own_tasks`, and of Omniglot alphabets that no task uses, are split at random
into known and novel ones, which are counted; no class that is novel in a task is looked at. The constants of
`unveil.counting.connections` were chosen on such splits.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_tasks import BALANCED, Labels, Vectors, draw, images, vectors_of
from unveil import files, recipe
from unveil.counting import estimate as count
from unveil.discovery.result import environment
from unveil.encoders.metric import Metric, choose_metric
from unveil.numerics import directions

OTHERS = ("Futurama", "Bengali", "Grantha", "Hebrew", "Armenian")
"""Alphabets of Omniglot that no task uses."""
NAMES = (*BALANCED, *OTHERS)
SHARES = (0.5, 0.4, 0.6)
"""Of the classes that are hidden, by draw."""
MANY, FEWEST, MOST = 20, 12, 30
"""In every second draw, of more than 20 classes 12 to 29 are taken, and half of them are hidden."""


def known_rows(name: str) -> tuple[Vectors, Labels]:
    """The labelled rows of a task, or all of another alphabet."""
    if name in OTHERS:
        items, truth = images(f"omniglot:{name}")()
        return vectors_of(items, None), truth
    drawn = draw(BALANCED[name], 4000)
    return drawn.x[~drawn.hidden], drawn.y[~drawn.hidden]


def measure(name: str, number: int, x: Vectors, y: Labels) -> dict[str, Any]:
    """One split, counted with and without the connections of clusters."""
    random, classes = np.random.default_rng(number), np.unique(y)
    novel = random.permutation(classes)[: max(2, round(SHARES[number % 3] * len(classes)))]
    if number % 2 and len(classes) > MANY:
        classes = random.permutation(classes)[: random.integers(FEWEST, MOST)]
        novel = classes[: len(classes) // 2]
        x, y = x[np.isin(y, classes)], y[np.isin(y, classes)]
    labels = np.where(np.isin(y, novel), -1, y)
    base = Metric(choose_metric(x, labels).scaling)
    z = directions(base.shaping(base.base(x)(x), labels)(base.base(x)(x)))
    known = labels >= 0
    rows = z[known], np.unique(labels[known], return_inverse=True)[1], z[~known]
    usual, weigh = count.estimate_classes(*rows), count.weigh_connections
    try:
        count.weigh_connections = lambda *_: None
        without = count.estimate_classes(*rows)
    finally:
        count.weigh_connections = weigh
    return {
        "data": name,
        "draw": number,
        "known": len(np.unique(labels[known])),
        "novel": len(novel),
        "rows": int((~known).sum()),
        "counted": {"usual": usual.number, "without connections": without.number},
        "interval": [usual.low, usual.high],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-count.json"))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    args = parser.parse_args()
    records = json.loads(args.out.read_text())["records"] if args.out.exists() else []
    done = {(one["data"], one["draw"]) for one in records}
    for name in args.only:
        missing = [number for number in range(args.draws) if (name, number) not in done]
        if not missing:
            continue
        x, y = known_rows(name)
        for number in missing:
            records.append(measure(name, number, x, y))
            print(records[-1], flush=True)
        files.write_json(args.out, {"records": records, "environment": environment(recipe.load("vectors"))})


if __name__ == "__main__":
    main()
