"""Your own data, on data sets whose truth is known: `python -m benchmarks.own_data --out results/own-data`.

One set of defaults for every task, 5 seeds. Beside NovelClassDiscovery: k-means on the same vectors, semi-supervised
k-means (labelled items hold their classes in place), and k-means after supervised training. Records that are there are
not made again. Novel labels are used for scoring alone.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import NovelClassDiscovery, files, hardware, recipe
from unveil.data import catalog
from unveil.data.items import Items
from unveil.data.task import Task
from unveil.discovery.clusters import kmeans, semi_kmeans
from unveil.discovery.count import estimate_classes
from unveil.discovery.run import environment
from unveil.discovery.vectors import choose_reduction, training_rows
from unveil.metrics import clustering_accuracy
from unveil.models.embedding import Embedding
from unveil.models.inference import features
from unveil.numerics import unit_rows
from unveil.settings import Machine
from unveil.storage import default_store
from unveil.training.stages import pretrain
from unveil.training.training import Training


@dataclass(frozen=True)
class Split:
    """A data set and which of its classes are novel."""

    data: str
    novel: Callable[[int], range]
    embedded: bool = False


def last(count: int) -> Callable[[int], range]:
    return lambda classes: range(classes - count, classes)


def first(count: int) -> Callable[[int], range]:
    return lambda classes: range(count)


def half(classes: int) -> range:
    return range(classes // 2, classes)


TASKS = {
    "cifar10": Split("cifar10", last(5), embedded=True),
    "cifar100": Split("cifar100", last(20), embedded=True),
    "imagenet20": Split("imagenet20", last(10), embedded=True),
    "imagenet20-reversed": Split("imagenet20", first(10), embedded=True),
    "mnist": Split("mnist", last(5)),
    "fashion-mnist": Split("fashion-mnist", last(5)),
    "digits": Split("digits", last(5)),
    "omniglot-korean": Split("omniglot:Korean", half),
}
MORE = {
    "cifar10-reversed": Split("cifar10", first(5), embedded=True),
    "cifar100-first": Split("cifar100", first(20), embedded=True),
    "mnist-reversed": Split("mnist", first(5)),
    "fashion-mnist-reversed": Split("fashion-mnist", first(5)),
    "digits-reversed": Split("digits", first(5)),
    "omniglot-greek": Split("omniglot:Greek", half),
    "omniglot-latin": Split("omniglot:Latin", half),
}


def load(split: Split) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Vectors, labels with -1 where they are hidden, and the truth."""
    dataset = catalog.load(split.data)
    truth = dataset.train.labels
    if split.embedded:
        device = hardware.pick_device("auto")
        precision = hardware.pick_precision(Machine(), device)
        embedding = Embedding(
            name="efficientnet-lite0",
            size=96,
            device=device,
            precision=precision,
            folder=default_store(),
            console=Console(quiet=True),
        )
        x = np.array(embedding(dataset.train.items))
    else:
        x = dataset.train.items.array.reshape(len(truth), -1).astype(np.float32)
    hidden = np.isin(truth, np.array(split.novel(len(dataset.classes))))
    return x, np.where(hidden, -1, truth), truth


def measure(name: str, split: Split, seed: int) -> dict[str, object]:
    x, y, truth = load(split)
    hidden = y == -1
    count = len(np.unique(truth[hidden]))
    begun = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = NovelClassDiscovery(n_novel=count, method="ncl-hng", random_state=seed).fit(x, y)
    seconds = time.monotonic() - begun
    rows = training_rows(y, seed)
    classes, known = np.unique(y[rows][y[rows] >= 0], return_inverse=True)
    labels = np.full(len(rows), -1)
    labels[y[rows] >= 0] = known
    reduction, _ = choose_reduction(x[rows], labels, seed)
    z = reduction(x[rows])
    task = Task(name=name, items=Items.of(z), labels=labels, known=tuple(classes.tolist()), n_novel=count)
    semi = semi_kmeans(z[labels < 0], z[labels >= 0], known, len(classes) + count, seed)
    begun = time.monotonic()
    counted = estimate_classes(z[labels >= 0], known, z[labels < 0], seed=seed)
    counting = time.monotonic() - begun
    trust = found.forecast_
    accuracy = {
        "unveil": clustering_accuracy(truth[hidden], found.labels_[hidden]),
        "kmeans": clustering_accuracy(truth[hidden], found.kmeans_labels_[hidden]),
        "semi_kmeans": clustering_accuracy(truth[rows][labels < 0], semi.labels),
        "supervised_kmeans": clustering_accuracy(truth[rows][labels < 0], _after_training(task, seed)),
    }
    return {
        "task": name,
        "seed": seed,
        "items": {"labelled": int((~hidden).sum()), "unlabelled": int(hidden.sum())},
        "classes": {"known": len(classes), "novel": count},
        "accuracy": accuracy,
        "expected": {"accuracy": trust.accuracy, "low": trust.low, "high": trust.high},
        "mean_confidence": float(found.confidence_[hidden].mean()),
        "counted": {"number": counted.number, "low": counted.low, "high": counted.high},
        "rehearsals": list(trust.rehearsals),
        "choice": found.choice_,
        "warnings": [str(warning.message) for warning in caught],
        "seconds": {"fit": round(seconds, 1), "count": round(counting, 1)},
        "config": {key: value for key, value in found.get_params().items() if key != "store"},
        "environment": environment(recipe.load("trained-vectors")),
    }


def _after_training(task: Task, seed: int) -> NDArray[np.int64]:
    """k-means on the features of a tail that has learned the known classes."""
    training = Training(recipe.load("trained-vectors", [f"seed={seed}"]), task)
    pretrain(training)
    z = features(training.model, training.views, task.unlabelled).cpu().numpy()
    return kmeans(unit_rows(z), task.n_clusters, seed).labels


def plot(folder: Path, path: Path) -> None:
    """Foretold against true accuracy, a point for each record."""
    from matplotlib.figure import Figure

    records = [files.read_json(file) for file in sorted(folder.glob("*-seed*.json"))]
    figure = Figure(figsize=(5.5, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1, zorder=0)
    tasks = sorted({record["task"] for record in records})
    for number, task in enumerate(tasks):
        of_task = [record for record in records if record["task"] == task]
        told = np.array([[one["expected"][key] for key in ("accuracy", "low", "high")] for one in of_task])
        true = [one["accuracy"]["unveil"] for one in of_task]
        errors = [told[:, 0] - told[:, 1], told[:, 2] - told[:, 0]]
        marker = "os^Dv"[number // 10 % 5]
        axes.errorbar(
            true, told[:, 0], yerr=errors, fmt=marker, color=f"C{number % 10}", markersize=4, linewidth=0.8, label=task
        )
    axes.set(
        xlabel="true accuracy on the novel classes", ylabel="foretold, with its interval", xlim=(0.2, 1), ylim=(0.2, 1)
    )
    axes.legend(frameon=False, fontsize=6, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-data"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--more-seeds", type=int, default=1, help="seeds of the splits that are for trust alone")
    parser.add_argument("--only", nargs="*", help="names of tasks")
    parser.add_argument("--plot", type=Path, help="draw foretold against true accuracy, and measure nothing")
    args = parser.parse_args()
    if args.plot:
        plot(args.out, args.plot)
        return
    for seed in range(max(args.seeds, args.more_seeds)):
        for name, split in {**TASKS, **MORE}.items():
            path = args.out / f"{name}-seed{seed}.json"
            if seed >= (args.seeds if name in TASKS else args.more_seeds) or path.exists():
                continue
            if args.only and name not in args.only:
                continue
            record = measure(name, split, seed)
            files.write_json(path, record)
            scores = ", ".join(f"{key} {100 * value:.1f}" for key, value in record["accuracy"].items())  # type: ignore[attr-defined]
            print(f"{name}, seed {seed}: {scores}; expected {record['expected']}; {record['counted']}", flush=True)


if __name__ == "__main__":
    main()
