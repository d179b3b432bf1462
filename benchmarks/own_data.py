"""Your own data beside what people would use instead: `python -m benchmarks.own_data --out results/own-data`.

One set of defaults for every task of `benchmarks.own_tasks`, five seeds. A record for each task, seed and kind:

- `peers`: k-means, UMAP, HDBSCAN and others, told the number of novel classes where they can be;
- `given`: NovelClassDiscovery, told the number too;
- `auto`: NovelClassDiscovery, which estimates the number;
- `general`: half of the rows of the known classes are unlabeled too, and the number of new classes is given, then
  estimated; beside semi-supervised k-means and label spreading.

Records that are there are not made again. Novel labels are used for scoring alone.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.own_tasks import BALANCED, HELD_OUT, TASKS, Drawn, Labels, Vectors, draw, with_known_classes
from unveil import NovelClassDiscovery, files, recipe
from unveil.discovery.result import environment
from unveil.metrics import clustering_scores, open_accuracy

KINDS = ("peers", "given", "auto", "general")
Record = dict[str, Any]


class Cost:
    """Seconds, and the peak of memory above what was there before."""

    seconds: float
    megabytes: int

    def to_json(self) -> Record:
        return {"seconds": round(self.seconds, 2), "peak_mb": self.megabytes}


@contextmanager
def cost() -> Iterator[Cost]:
    """What the block takes."""
    measured = Cost()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from now
    before, begun = _resident("VmRSS"), time.monotonic()
    yield measured
    measured.seconds = time.monotonic() - begun
    measured.megabytes = round((_resident("VmHWM") - before) / 1024)


def _resident(name: str) -> int:
    """Kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def of_peers(drawn: Drawn, kind: str, seed: int) -> Record:
    """Every peer on the unlabeled rows alone, but for UMAP with labels, which sees all rows."""
    x, y, truth, hidden = peers.usual_scaling(drawn.x, kind), drawn.y, drawn.truth, drawn.hidden
    found: Record = {}

    def score(group: dict[str, peers.Cluster], places: Vectors, before: float = 0) -> None:
        for name, cluster in group.items():
            if name == "spectral" and len(places) > peers.MOST_SPECTRAL:
                continue
            with cost() as used:
                labels = cluster(places, drawn.n_novel, seed)
            used.seconds += before
            scores = clustering_scores(truth[hidden], labels)
            found[name] = {**scores, "clusters": len(np.unique(labels[labels >= 0])), **used.to_json()}

    score(peers.ON_VECTORS, x[hidden])
    with cost() as used:
        places = peers.umap_places(x[hidden], seed)
    score(peers.ON_UMAP, places, used.seconds)
    with cost() as used:
        places = peers.umap_places(x, seed, y)[hidden]
    score(peers.ON_UMAP_WITH_LABELS, places, used.seconds)
    return {"scores": found}


def of_unveil(drawn: Drawn, n_novel: int | str, seed: int, **parameters: Any) -> tuple[NovelClassDiscovery, Record]:
    """The fitted estimator, and what is recorded of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with cost() as used:
            fitted = NovelClassDiscovery(n_novel=n_novel, random_state=seed, **parameters).fit(drawn.x, drawn.y)
    forecast = fitted.forecast_
    return fitted, {
        "clusters": fitted.n_novel_,
        "forecast": {"accuracy": forecast.accuracy, "low": forecast.low, "high": forecast.high},
        "forecast_sentence": forecast.sentence(),
        "rehearsals": list(forecast.rehearsals),
        "choice": fitted.choice_,
        "warnings": [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)],
        "config": {key: value for key, value in fitted.get_params().items() if key != "store"},
        **used.to_json(),
    }


def of_novel(drawn: Drawn, n_novel: int | str, seed: int) -> Record:
    fitted, record = of_unveil(drawn, n_novel, seed)
    return {**clustering_scores(drawn.truth[drawn.hidden], fitted.labels_[drawn.hidden]), **record}


def of_general(drawn: Drawn, kind: str, seed: int) -> Record:
    """Known classes among the unlabeled rows, scored over all of them under one assignment."""
    mixed = with_known_classes(drawn, seed)
    known = np.unique(drawn.y[~drawn.hidden])
    names = np.concatenate([known, np.setdiff1d(drawn.truth, known)])
    place = np.zeros(int(drawn.truth.max()) + 1, dtype=np.int64)
    place[names] = np.arange(len(names))
    truth, count = place[drawn.truth[mixed.hidden]], drawn.n_novel
    x = peers.usual_scaling(drawn.x, kind)

    def scores(labels: Labels) -> Record:
        return open_accuracy(truth, labels, len(known))

    found: Record = {}
    for name, cluster in peers.GENERAL_PEERS.items():
        with cost() as used:
            labels = cluster(x, mixed.y, count, seed)
        found[name] = {**scores(labels), **used.to_json()}
    records = {}
    for key, n_novel in (("given", count), ("auto", "auto")):
        fitted, records[key] = of_unveil(mixed, n_novel, seed, known_in_unlabeled=True)
        records[key] |= scores(fitted.labels_[mixed.hidden])
    return {"scores": found, **records}


@lru_cache(maxsize=1)
def drawn_rows(task: str, rows: int) -> Drawn:
    return draw(TASKS[task], rows)


def measure(task: str, kind: str, seed: int, rows: int) -> Record:
    """One record."""
    drawn, vectors = drawn_rows(task, rows), TASKS[task].kind
    parts: dict[str, Callable[[], Record]] = {
        "peers": lambda: of_peers(drawn, vectors, seed),
        "given": lambda: of_novel(drawn, drawn.n_novel, seed),
        "auto": lambda: of_novel(drawn, "auto", seed),
        "general": lambda: of_general(drawn, vectors, seed),
    }
    return {
        "task": task,
        "kind": kind,
        "seed": seed,
        "held_out": task in HELD_OUT,
        "rows": {"labeled": int((~drawn.hidden).sum()), "unlabeled": int(drawn.hidden.sum())},
        "classes": {"known": len(np.unique(drawn.y)) - 1, "novel": drawn.n_novel},
        **parts[kind](),
        "environment": environment(recipe.load("vectors")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-data"))
    parser.add_argument("--seeds", type=int, nargs="*", default=range(5))
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--only", nargs="*", help="names of tasks")
    args = parser.parse_args()
    for seed in args.seeds:
        for task in args.only or TASKS:
            for kind in args.kinds:
                path = args.out / task / f"{kind}-seed{seed}.json"
                if path.exists() or (kind == "general" and task not in BALANCED):
                    continue
                record = measure(task, kind, seed, args.rows)
                files.write_json(path, record)
                scores = record.get("scores") or {"unveil": record}
                told = ", ".join(f"{name} {100 * one.get('acc', one.get('all')):.1f}" for name, one in scores.items())
                print(f"{task}, {kind}, seed {seed}: {told}", flush=True)


if __name__ == "__main__":
    main()
