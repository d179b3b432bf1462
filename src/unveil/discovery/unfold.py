"""A run of a recipe as something to look at: the files that `unveil discover` leaves, made once in RUN/look."""

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import files, recipe, rng
from unveil.data import catalog
from unveil.data.known_new import Own
from unveil.data.task import Task, Truth, make_task
from unveil.discovery import run as runs
from unveil.discovery.own_data import write_contents
from unveil.errors import UnveilError
from unveil.models.model import Model
from unveil.storage import default_store, locked
from unveil.training.evaluation import features
from unveil.training.stages import Pipeline

MOST_KNOWN = 5000
"""Labelled items that are shown beside the unlabelled ones."""


def viewable(run: Path, *, store: Path | None = None, root: Path | None = None, console: Console | None = None) -> Path:
    """The directory that report, review and export read: the run itself, or, of a recipe, its `look`."""
    if (run / "items.csv").exists() or not (run / "config.toml").exists():
        return run
    if not (run / "record.json").exists():
        raise UnveilError(f"{run} is not finished: go on with it, unveil run … --resume")
    folder = run / "look"
    with locked(folder):
        if not (folder / "record.json").exists():
            _unfold(run, folder, store or default_store(), root, console or Console(stderr=True, markup=False))
    return folder


def _unfold(run: Path, out: Path, store: Path, root: Path | None, console: Console) -> None:
    settings, record = recipe.read(run / "config.toml"), files.read_json(run / "record.json")
    task, truth = make_task(runs.read(settings, store=store, root=root, console=console), settings.data)
    pipeline = Pipeline(settings, task, truth, store, console)
    pipeline.model = Model.load(run / "model.safetensors").to(pipeline.device)
    known = np.sort(rng.numpy(0, "look").permutation(task.labelled)[:MOST_KNOWN])
    old = features(pipeline.model.eval(), pipeline.views, known).cpu().numpy()
    z = np.concatenate([old, np.load(run / "features.npy", allow_pickle=False)]).astype(np.float32)
    rows = np.concatenate([known, task.unlabelled])
    with (run / "predictions.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    labels = np.concatenate([task.labels[known], [len(task.known) + int(one["cluster"]) for one in found]])
    confidence = np.array([1.0] * len(known) + [float(one["confidence"]) for one in found], dtype=np.float32)
    items = _own(task, rows, len(known), catalog.load(settings.data.name, root).train)

    write_contents(out, items, np.ones(len(rows), dtype=bool))
    files.write_with(out / "features.npy", lambda file: np.save(file, z, False))
    files.write_with(
        out / "rows.npz",
        lambda file: np.savez(
            file, labels=labels, confidence=confidence, typicality=_typicality(z, labels), kmeans=labels
        ),
    )
    names = files.read_json(run / "classes.json")
    _write_tables(out, items, [*names["known"], *names["novel"]], labels, confidence, truth)
    parameters = _flat(record["config"])
    files.write_json(
        out / "estimator.json", {"known": names["known"], "n_novel": len(names["novel"]), "parameters": parameters}
    )
    if (run / "metrics.jsonl").exists():
        (out / "work").mkdir(exist_ok=True)
        shutil.copyfile(run / "metrics.jsonl", out / "work" / "metrics.jsonl")
    told = _record(record, len(names["novel"]), len(known), len(found))
    files.write_json(out / "record.json", {"name": run.resolve().name, **told})


def _own(task: Task, rows: NDArray[np.int64], known: int, shown: Any) -> Own:
    """The items as people know them: pictures, also where the run was on embeddings of them."""
    place = {name: row for row, name in enumerate(shown.ids)}
    at = [place[task.ids[row]] for row in rows]
    items = tuple(shown.items[row] for row in at) if isinstance(shown.items, tuple) else shown.items[at]
    labels = tuple(task.known[label] if label >= 0 else None for label in task.labels[rows])
    return Own(items, tuple(task.ids[row] for row in rows), labels, known)


def _typicality(z: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """Cosine of each item to the mean of its class."""
    unit = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    found = np.zeros(len(z), dtype=np.float32)
    for label in np.unique(labels):
        mean = unit[labels == label].mean(axis=0)
        found[labels == label] = unit[labels == label] @ (mean / max(float(np.linalg.norm(mean)), 1e-12))
    return found


def _write_tables(
    out: Path,
    own: Own,
    classes: list[str],
    labels: NDArray[np.int64],
    confidence: NDArray[np.float32],
    truth: Truth,
) -> None:
    """items.csv, predictions.csv and truth.csv."""
    lines = []
    for row, (name, given) in enumerate(zip(own.ids, own.labels, strict=True)):
        new = row >= own.known
        path = str(own.paths[row].resolve()) if own.paths else ""
        kind, part = ("novel", "new") if new else ("known", "known")
        lines.append((name, part, given or "", classes[labels[row]], kind, f"{confidence[row]:.4f}", path))
    files.write(out / "items.csv", runs.table(["id", "part", "given", "label", "kind", "confidence", "path"], lines))
    new_lines = [(line[0], line[3], line[4], line[5]) for line in lines[own.known :]]
    files.write(out / "predictions.csv", runs.table(["id", "label", "kind", "confidence"], new_lines))
    told = zip(own.ids[own.known :], (truth.novel[label] for label in truth.unlabelled), strict=True)
    files.write(out / "truth.csv", runs.table(["id", "label"], told))


def _flat(config: dict[str, Any], before: str = "") -> dict[str, Any]:
    """{"discovery": {"lr": 0.1}} as {"discovery.lr": 0.1}"""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found


def _record(record: dict[str, Any], novel: int, known: int, new: int) -> dict[str, Any]:
    start = record["kmeans"]["acc"]
    told = [
        f"{novel} novel class{'es' if novel != 1 else ''}, as the recipe says",
        f"how: {record['method']} of the recipe {record['recipe']}, seed {record['seed']}",
        f"k-means on the pre-trained features: {100 * start:.1f} % of the items in the right cluster",
    ]
    return {
        "request": {"recipe": record["recipe"], "method": record["method"], "seed": record["seed"]},
        "items": {"known": known, "new": new},
        "words": told,
        "kmeans_accuracy": start,
        "warnings": record.get("warnings", []),
        "seconds": sum(record["seconds"].values()),
        "environment": record["environment"],
        "finished": record["finished"],
    }
