"""Which view of a vector? `python -m benchmarks.own_views --out results/own-views`: rehearsals on known classes alone.

Known classes of tasks of `benchmarks.own_tasks` are hidden and found again, by k-means and by the method with second
views of several kinds and strengths. No novel class is looked at. Records that are there are not made again.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.own_tasks import DEVELOPED_ON as TASKS
from benchmarks.own_tasks import draw
from unveil import files, recipe
from unveil.data.items import Items
from unveil.data.task import Task
from unveil.discovery.candidates import KMEANS, Candidate
from unveil.discovery.rehearsal import rehearse
from unveil.discovery.result import environment
from unveil.discovery.vectors import choose_reduction

VIEWS = {
    "noise 0.25": {"noise": 0.25},
    "noise 0.5": {"noise": 0.5},
    "noise 1": {"noise": 1.0},
    "dropout 0.1": {"dropout": 0.1},
    "dropout 0.3": {"dropout": 0.3},
    "neighbour 0.3": {"mix": 0.3},
    "neighbour 0.6": {"mix": 0.6},
    "noise 0.5, neighbour 0.3": {"noise": 0.5, "mix": 0.3},
}


def candidate(name: str, view: dict[str, float]) -> Candidate:
    settings = {"noise": 0.0, "dropout": 0.0, "mix": 0.0} | view
    return Candidate(name, "ncl-hng", tuple((f"augment.{key}", value) for key, value in settings.items()))


def measure(name: str, tries: int, steps: int) -> dict[str, object]:
    drawn = draw(TASKS[name], 12_000)
    x, y, truth = drawn.x, drawn.y, drawn.truth
    known, labels = np.unique(y[y >= 0], return_inverse=True)
    rows = np.random.default_rng(0).permutation(len(labels))[:12_000]
    part = x[y >= 0][rows]
    reduction, _ = choose_reduction(part, labels[rows], 0)
    novel = len(np.unique(truth[y < 0]))  # how many there are; not which
    points = reduction(part)
    task = Task(name=name, items=Items.of(points), labels=labels[rows], known=tuple(known.tolist()), n_novel=novel)
    settings = recipe.load("trained-vectors", [f"rehearsals={tries}", f"discovery.steps={steps}"])
    begun = time.monotonic()
    found = rehearse(
        task,
        settings,
        [KMEANS, *(candidate(*item) for item in VIEWS.items())],
        storage=None,
        console=Console(quiet=True),
    )
    return {
        "task": name,
        "classes": {"known": len(known), "novel": novel},
        "steps": steps,
        "rehearsals": list(found.rehearsals),
        "seconds": round(time.monotonic() - begun, 1),
        "environment": environment(recipe.load("trained-vectors")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-views"))
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", nargs="*", help="names of tasks")
    args = parser.parse_args()
    for name in args.only or TASKS:
        path = args.out / f"{name}.json"
        if path.exists():
            continue
        record = measure(name, args.tries, args.steps)
        files.write_json(path, record)
        means = {
            key: 100 * np.mean([one[key] for one in record["rehearsals"]])  # type: ignore[attr-defined]
            for key in ("k-means", *VIEWS)
        }
        print(name, ", ".join(f"{key} {value:.1f}" for key, value in means.items()), flush=True)


if __name__ == "__main__":
    main()
