"""`unveil run RECIPE`: all stages of a recipe into a run directory."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from unveil import __version__, files, hardware, recipe, rng
from unveil.data import catalog
from unveil.data.dataset import Dataset, Split
from unveil.data.scaling import reduced
from unveil.data.task import make_task
from unveil.errors import UnveilError
from unveil.hardware import commit
from unveil.models.embedding import Embedding
from unveil.numerics import typicality
from unveil.runs.writer import Contents, write
from unveil.settings import Settings
from unveil.storage import LOCK, identity, locked
from unveil.training import checkpoint
from unveil.training.evaluation import features
from unveil.training.stages import Pipeline

MOST_KNOWN = 5000
"""Labelled items that are kept in the run directory beside all unlabelled ones."""
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
    original = catalog.load(settings.data.name, root)
    task, truth = make_task(prepared(original, settings, store=store, console=console), settings.data)
    check_sizes(len(task.unlabelled), task.n_novel)
    pipeline = Pipeline(settings, task, truth, store, console)
    with locked(out, wait=False):
        if (out / "record.json").exists():  # another process has just finished it
            finished: dict[str, Any] = files.read_json(out / "record.json")
            return finished
        return _run(pipeline, out, original.train)


def read(settings: Settings, *, store: Path, root: Path | None, console: Console) -> Dataset:
    """The data set of a recipe, embedded and reduced as it says."""
    return prepared(catalog.load(settings.data.name, root), settings, store=store, console=console)


def prepared(dataset: Dataset, settings: Settings, *, store: Path, console: Console) -> Dataset:
    """A data set embedded and reduced as the settings say."""
    data, machine = settings.data, settings.machine
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


def _run(pipeline: Pipeline, out: Path, original: Split) -> dict[str, Any]:
    settings, task, console = pipeline.settings, pipeline.task, pipeline.console
    files.write(out / "config.toml", recipe.dump(settings))
    pipeline.rotation()
    pipeline.supervised()
    pipeline.model.freeze_trunk()
    pipeline.cache_trunk()
    evaluator = pipeline.evaluator()
    small = not isinstance(task.items, tuple) and task.items[0].size * len(task.unlabelled) <= INPUT_LIMIT
    inputs = evaluator.clusters(pipeline.kmeans("items")) if small else None
    plain = pipeline.kmeans("features")
    start = evaluator.clusters(plain)
    console.print(f"k-means on features of unit length: acc {start['acc']:.3f}")
    history = pipeline.discovery(out)
    checkpoint.save_model(out / "model.safetensors", pipeline.model)
    record = {
        "source": {"kind": "data set", "name": settings.data.name},
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
        "environment": environment(pipeline),
        "summary": {
            "result": f"{task.n_novel} novel class{'es' if task.n_novel != 1 else ''}, as the recipe says",
            "choice": f"{settings.discovery.method} of the recipe {settings.name}, seed {settings.seed}",
        },
    }
    record = write(out, _contents(pipeline, plain, original, record))
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


def _contents(pipeline: Pipeline, plain: NDArray[np.int64], original: Split, record: dict[str, Any]) -> Contents:
    """All unlabelled items and a sample of the labelled ones, with the original pictures where these were embedded."""
    task, model = pipeline.task, pipeline.model
    known = np.sort(rng.numpy(0, "known items of a run").permutation(task.labelled)[:MOST_KNOWN])
    z = torch.cat([features(model, pipeline.views, rows) for rows in (known, task.unlabelled)])
    with torch.no_grad():
        confidence, cluster = model.novel_head(z[len(known) :]).softmax(dim=1).max(dim=1)
    rows, n_known, first = np.concatenate([known, task.unlabelled]), len(task.known), len(known)
    labels = np.concatenate([task.labels[known], n_known + cluster.cpu().numpy()])
    row_of = {name: row for row, name in enumerate(original.ids)}
    shown = [row_of[task.ids[row]] for row in rows]
    paths = original.items if isinstance(original.items, tuple) else None
    arrays: Any = None if isinstance(original.items, tuple) else original.items[shown]
    images = arrays is not None and arrays.dtype == np.uint8
    ids, truth = [task.ids[row] for row in rows], pipeline.truth
    return Contents(
        ids=ids,
        new=np.arange(len(rows)) >= first,
        given=[task.known[label] if label >= 0 else "" for label in task.labels[rows]],
        labels=labels,
        classes=(*task.known, *(f"novel-{i}" for i in range(task.n_novel))),
        n_known=n_known,
        confidence=np.concatenate([np.ones(first), confidence.float().cpu().numpy()]).astype(np.float32),
        typicality=typicality(z.float().cpu().numpy(), labels),
        kmeans=np.concatenate([task.labels[known], n_known + plain]),
        features=z.float().cpu().numpy(),
        paths=() if paths is None else [str(Path(paths[row]).resolve()) for row in shown],
        pictures=arrays if images else None,
        inputs=arrays if arrays is not None and not images and arrays.ndim == 2 else None,
        truth=None
        if truth is None
        else dict(zip(ids[first:], (truth.novel[i] for i in truth.unlabelled), strict=True)),
        record=record,
        config=recipe.dump(pipeline.settings),
    )


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
