"""How far forecasts are off: `python -m benchmarks.own_forecast --out results/own-forecast.json`.

Known classes of the tasks of `benchmarks.own_tasks` that were developed on are split at random into known and novel
ones, and NovelClassDiscovery finds the latter; no class that is novel in a task is looked at. The constants of
`unveil.discovery.forecast` are fitted to these records: `--fit` prints the least-squares values.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_tasks import DEVELOPED_ON, draw
from unveil import NovelClassDiscovery, files, recipe
from unveil.discovery.forecast import angle
from unveil.discovery.result import environment
from unveil.metrics import clustering_accuracy

SPLITS = {
    "cifar100": ((5, 5), (10, 10), (40, 20), (60, 20), (8, 4)),
    "clinc150": ((5, 5), (20, 20), (40, 30), (10, 5)),
    "letter": ((5, 5), (7, 6), (8, 5)),
    "omniglot-korean": ((5, 5), (10, 10)),
    "imagenet20": ((5, 5), (6, 4)),
}
"""How many known and novel classes are drawn."""
ROWS = (400, 800, 1500)
"""Most rows of the known, and of the novel classes."""


def measure(task: str, draw_number: int, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """One split: x and y of the known classes of the task."""
    random = np.random.default_rng([draw_number, sorted(SPLITS).index(task)])
    n_known, n_novel = SPLITS[task][random.integers(len(SPLITS[task]))]
    classes = random.permutation(np.unique(y))
    rows = int(random.choice(ROWS))
    known, novel = (
        random.permutation(np.flatnonzero(np.isin(y, part)))[:rows]
        for part in (classes[:n_known], classes[n_known : n_known + n_novel])
    )
    chosen = np.concatenate([known, novel])
    labels = np.where(np.arange(len(chosen)) < len(known), y[chosen], -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = NovelClassDiscovery(n_novel=n_novel, random_state=draw_number).fit(x[chosen], labels)
    forecast = fitted.forecast_
    return {
        "task": task,
        "draw": draw_number,
        "known": n_known,
        "novel": n_novel,
        "rows": len(novel),
        "accuracy": clustering_accuracy(y[novel], fitted.labels_[labels < 0]),
        "forecast": {"accuracy": forecast.accuracy, "low": forecast.low, "high": forecast.high},
        "confidence": forecast.confidence,
        "candidate": forecast.candidate,
        "rehearsals": list(forecast.rehearsals),
    }


def fit(records: list[dict[str, Any]]) -> dict[str, float]:
    """Least squares of the accuracy (as an angle) on confidence and number of classes."""
    rows, target = [], []
    for record in records:
        name, rehearsed = record["candidate"], record["rehearsals"]
        sure = float(np.mean([angle(one["confidence"][name]) for one in rehearsed]))
        reached = float(np.mean([angle(one["accuracy"][name]) for one in rehearsed]))
        rows.append([float(angle(record["confidence"])) - sure, -np.log(record["novel"] / rehearsed[0]["hidden"])])
        target.append(float(angle(record["accuracy"])) - reached)
    x, y = np.array(rows), np.array(target)
    (slope, more), *_ = np.linalg.lstsq(x, y, rcond=None)
    left = y - x @ np.array([slope, more])
    inside = np.mean([one["forecast"]["low"] <= one["accuracy"] <= one["forecast"]["high"] for one in records])
    off = np.mean([abs(one["forecast"]["accuracy"] - one["accuracy"]) for one in records])
    values = {"slope": slope, "more_classes": more, "spread": left.std(), "before_a_look": y.std()}
    return {
        key: round(float(value), 3) for key, value in (values | {"truth_inside": inside, "mean_error": off}).items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-forecast.json"))
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--fit", action="store_true", help="print what the records say, and measure nothing")
    args = parser.parse_args()
    stored = json.loads(args.out.read_text()) if args.out.exists() else {"records": []}
    records = stored["records"]
    if args.fit:
        print(fit(records))
        return
    done = {(one["task"], one["draw"]) for one in records}
    for number in range(args.draws):
        for task in SPLITS:
            if (task, number) in done:
                continue
            drawn = draw(DEVELOPED_ON[task], 4000)
            records.append(measure(task, number, drawn.x[~drawn.hidden], drawn.y[~drawn.hidden]))
            record = {"records": records, "fit": fit(records), "environment": environment(recipe.load("vectors"))}
            files.write_json(args.out, record)
            print(task, number, records[-1]["accuracy"], records[-1]["forecast"], flush=True)


if __name__ == "__main__":
    main()
