"""The spread over seeds: the default on digits and on CIFAR-10 embeddings, and `ncl-hng` by the recipe of digits.

    python -m benchmarks.stability [--only "NAME;NAME"] [--seeds 20] [--out results/stability.json]

`ncl-hng` is trained as its recipe says, and from a random head with the paper's rule for pairs, where clusters can die;
both with and without the guard (`discovery.guard`). A run has collapsed where a cluster has less than a hundredth of an
equal share of the items, or where the mean cosine of two features is above 0.98. A record of a part that was not asked
for stays as it is.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.own_tasks import BALANCED, draw
from unveil import NovelClassDiscovery, recipe
from unveil.data import catalog
from unveil.data.task import make_task
from unveil.discovery.result import environment
from unveil.metrics import clustering_scores
from unveil.training import stages
from unveil.training.training import Training

Record = dict[str, Any]
ROWS = 2000
"""Labelled rows, and as many unlabelled ones, of CIFAR-10."""
PAPERS_START = ["discovery.novel_head=random", "method.pairs=cosine"]
GUARD = ["discovery.guard=true"]


def of_default(task: str, seed: int) -> Record:
    """The default on vectors; the rows are the same for every seed."""
    drawn = draw(BALANCED[task], ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = NovelClassDiscovery(n_novel=drawn.n_novel, random_state=seed).fit(drawn.x, drawn.y)
    labels = fitted.labels_[drawn.hidden]
    sizes = np.unique(labels, return_counts=True)[1]
    smallest = int(sizes.min()) if len(sizes) == drawn.n_novel else 0
    collapsed = smallest < 0.01 * len(labels) / drawn.n_novel
    return {**clustering_scores(drawn.truth[drawn.hidden], labels), "smallest": smallest, "collapsed": collapsed}


def of_recipe(overrides: list[str], seed: int) -> Record:
    """`ncl-hng` on digits, in memory; evaluated after its last epoch."""
    settings = recipe.load("digits", [f"seed={seed}", "discovery.evaluate_every=40", *overrides])
    task, truth = make_task(catalog.load("digits"), settings.data)
    training = Training(settings, task, truth, console=Console(quiet=True))
    stages.pretrain(training)
    history = stages.discovery_stage(training)
    last = history[-1]
    collapsed = last["clusters_used"] < len(last["cluster_sizes"]) or last["mean_cosine"] > 0.98
    acted = [row["guard"] for row in history if "guard" in row]
    scores = {name: last[name] for name in ("acc", "nmi", "ari")}
    return {**scores, "smallest": min(last["cluster_sizes"]), "collapsed": collapsed, "acted": acted}


PARTS: dict[str, Callable[[int], Record]] = {
    "default, digits": lambda seed: of_default("digits", seed),
    "default, CIFAR-10": lambda seed: of_default("cifar10", seed),
    "ncl-hng": lambda seed: of_recipe([], seed),
    "ncl-hng, guard": lambda seed: of_recipe(GUARD, seed),
    "ncl-hng, paper's start": lambda seed: of_recipe(PAPERS_START, seed),
    "ncl-hng, paper's start, guard": lambda seed: of_recipe([*PAPERS_START, *GUARD], seed),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=";".join(PARTS), help="parts, with semicolons between them")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/stability.json"))
    options = parser.parse_args()
    record: Record = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.only.split(";"):
        begun, runs = time.process_time(), list[Record]()
        for seed in range(options.seeds):
            runs.append({"seed": seed, **PARTS[name](seed)})
            shared = {"rows": ROWS} if name == "default, CIFAR-10" else {}
            record[name] = {
                "runs": runs,
                **shared,
                "seconds": round(time.process_time() - begun, 1),
                "environment": environment(recipe.load("vectors" if name.startswith("default") else "digits")),
            }
            ordered = {part: record[part] for part in PARTS if part in record}
            options.out.write_text(json.dumps(ordered, indent=2) + "\n")
            print(name, runs[-1], flush=True)


if __name__ == "__main__":
    main()
