"""The run directory: everything about one experiment, and from which everything else is derived."""

import csv
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from unveil import __version__, files, hardware, recipe
from unveil.data import catalog
from unveil.data.dataset import Dataset
from unveil.data.scaling import reduced
from unveil.data.task import make_task
from unveil.errors import UnveilError
from unveil.hardware import commit
from unveil.models.embedding import Embedding
from unveil.settings import Settings
from unveil.storage import LOCK, identity, locked
from unveil.training.evaluation import features
from unveil.training.stages import Pipeline

INPUT_LIMIT = 30_000_000  # values; k-means on more would take longer than it is worth


def run(
    settings: Settings,
    *,
    out: Path,
    store: Path,
    root: Path | None = None,
    resume: bool = False,
    console: Console | None = None,
) -> dict[str, Any]:
    """All stages of a recipe into the directory `out`; returns the record that is also written there."""
    console = console or Console(stderr=True, markup=False)  # a path may have [brackets]
    prepare(out, settings, resume=resume)
    if (out / "record.json").exists():
        console.print(f"{out} is already complete", soft_wrap=True)
        record: dict[str, Any] = files.read_json(out / "record.json")
        return record
    task, truth = make_task(read(settings, store=store, root=root, console=console), settings.data)
    check_sizes(len(task.unlabelled), task.n_novel)
    pipeline = Pipeline(settings, task, truth, store, console)
    with locked(out, wait=False):
        if (out / "record.json").exists():  # another process has just finished it
            finished: dict[str, Any] = files.read_json(out / "record.json")
            return finished
        return _run(pipeline, out)


def read(settings: Settings, *, store: Path, root: Path | None, console: Console) -> Dataset:
    """The data set of a recipe, embedded and reduced as it says."""
    data, machine = settings.data, settings.machine
    dataset = catalog.load(data.name, root)
    if data.embed is not None:
        device = hardware.pick_device(machine.device)
        precision = hardware.pick_precision(machine, device)
        embedding = Embedding(
            name=data.embed,
            size=data.embed_size,
            device=device,
            precision=precision,
            folder=store,
            console=console,
        )
        dataset = embedding.of(dataset)
    return reduced(dataset, data)


def _run(pipeline: Pipeline, out: Path) -> dict[str, Any]:
    settings, task, console = pipeline.settings, pipeline.task, pipeline.console
    files.write(out / "config.toml", recipe.dump(settings))
    files.write_json(out / "environment.json", environment(pipeline))
    files.write_json(
        out / "classes.json", {"known": list(task.known), "novel": [f"novel-{i}" for i in range(task.n_novel)]}
    )
    pipeline.rotation()
    pipeline.supervised()
    pipeline.model.freeze_trunk()
    pipeline.cache_trunk()
    evaluator = pipeline.evaluator()
    small = not isinstance(task.items, tuple) and task.items[0].size * len(task.unlabelled) <= INPUT_LIMIT
    inputs = evaluator.clusters(pipeline.kmeans("items")) if small else None
    start = evaluator.clusters(pipeline.kmeans("features"))
    console.print(f"k-means on the pre-trained features: acc {start['acc']:.3f}")
    history = pipeline.discovery(out)
    write_results(out, pipeline)
    record = {
        "recipe": settings.name,
        "method": settings.discovery.method,
        "seed": settings.seed,
        "metrics": {k: v for k, v in history[-1].items() if k != "seconds"} if history else {},
        "kmeans": start,
        **({} if inputs is None else {"kmeans_inputs": inputs}),
        "seconds": pipeline.seconds,
        "warnings": pipeline.warned,
        **({} if pipeline.cache is None else {"cache": pipeline.cache}),
        "config": recipe.to_table(settings),
        "environment": files.read_json(out / "environment.json"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    files.write_json(out / "record.json", record)
    (out / "checkpoint.safetensors").unlink(missing_ok=True)
    return record


def default_folder(settings: Settings, changed: bool) -> Path:
    """runs/RECIPE-METHOD-seedN, with a mark of its settings where a recipe was changed."""
    mark = f"-{identity(settings=recipe.to_table(settings))[:6]}" if changed else ""
    return Path("runs") / f"{settings.name}-{settings.discovery.method}-seed{settings.seed}{mark}"


def prepare(out: Path, settings: Settings, *, resume: bool) -> None:
    """Make sure that the directory is free, or holds this very run."""
    config = out / "config.toml"
    if out.exists() and not out.is_dir():
        raise UnveilError(f"{out} is a file, expected a directory for the run: choose another --out")
    if not out.exists() or not any(path.name != LOCK for path in out.iterdir()):
        return
    if not config.exists():
        raise UnveilError(f"{out} is not empty and no run directory: choose another --out")
    stored = recipe.read(config)
    if difference := _difference(recipe.to_table(stored), recipe.to_table(settings)):
        raise UnveilError(f"{out} holds a run with other settings ({difference}): choose another --out")
    if not resume:
        raise UnveilError(f"{out} already holds this run: add --resume to go on with it, or choose another --out")


def check_sizes(unlabelled: int, n_novel: int) -> None:
    """There must be something to discover."""
    if n_novel > unlabelled:
        raise UnveilError(f"{n_novel} novel classes in {unlabelled} unlabelled items: give fewer classes or more items")


def write_results(out: Path, pipeline: Pipeline) -> None:
    """Everything that others read: weights, features and predictions."""
    task, model = pipeline.task, pipeline.model
    model.save(out / "model.safetensors")
    z = features(model, pipeline.views, task.unlabelled)
    with torch.no_grad():
        confidence, cluster = model.novel_head(z).softmax(dim=1).max(dim=1)
    rows = zip((task.ids[row] for row in task.unlabelled), cluster.tolist(), confidence.tolist(), strict=True)
    files.write(
        out / "predictions.csv", table(["id", "cluster", "confidence"], ((i, c, f"{p:.6f}") for i, c, p in rows))
    )
    files.write_with(out / "features.npy", lambda file: np.save(file, z.cpu().numpy(), allow_pickle=False))


def table(header: list[str], rows: Any) -> str:
    """CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def environment(pipeline: Pipeline) -> dict[str, Any]:
    """Version, commit and machine."""
    machine = hardware.describe(pipeline.device, pipeline.precision)
    return {"unveil": __version__, "commit": commit(), **machine}


def _difference(stored: dict[str, Any], given: dict[str, Any], where: str = "") -> str:
    """The first setting that differs, in words; the machine's settings may change between start and resume."""
    for key in sorted({*stored, *given} - {"machine"}):
        old, new = stored.get(key), given.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            if found := _difference(old, new, f"{where}{key}."):
                return found
        elif old != new:
            return f"{where}{key} is {old!r} there and {new!r} here"
    return ""
