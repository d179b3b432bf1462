"""The figure of the paper that shows features in two dimensions, with misplaced examples as pictures."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import files, rng
from unveil.data import catalog
from unveil.data.dataset import Items
from unveil.data.image_files import read_image
from unveil.data.task import make_task
from unveil.discovery import run as runs
from unveil.errors import UnveilError
from unveil.experiments.plan import Plan, Run
from unveil.metrics import clustering_accuracy, contingency
from unveil.numerics import match_clusters
from unveil.runs.reader import load

POINTS, EXAMPLES = 2000, 8


def draw(plan: Plan, path: Path, *, store: Path, root: Path | None) -> Path:
    """One map for each row, from the run of the first seed; below it items that fell into another class's cluster."""
    from matplotlib.figure import Figure
    from openTSNE import TSNE

    shown = {name: found[0] for name, found in plan.runs.items()}
    settings = next(iter(shown.values())).settings
    dataset = runs.read(settings, store=store, root=root, console=Console(quiet=True))
    task, truth = make_task(dataset, settings.data)
    pictures: Items = make_task(catalog.load(settings.data.name, root), settings.data)[0].items
    some = rng.numpy(0, "map").permutation(len(task.unlabelled))[:POINTS]
    figure = Figure(figsize=(4.2 * len(shown), 5.6), layout="constrained")
    grid = figure.add_gridspec(2, len(shown), height_ratios=[4, 1.3])
    for column, (name, run) in enumerate(shown.items()):
        z, clusters = _result(run)
        flat = TSNE(random_state=0, n_jobs=-1, metric="cosine").fit(z[some])
        axes = figure.add_subplot(grid[0, column])
        axes.scatter(flat[:, 0], flat[:, 1], c=truth.unlabelled[some], cmap="tab20", s=3, linewidths=0)
        score = 100 * clustering_accuracy(truth.unlabelled, clusters)
        axes.set_title(f"{name}, ACC {score:.1f} %", fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
        below = grid[1, column].subgridspec(2, EXAMPLES // 2)
        for place, (row, believed) in enumerate(misplaced(truth.unlabelled, clusters)[:EXAMPLES]):
            small = figure.add_subplot(below[place // (EXAMPLES // 2), place % (EXAMPLES // 2)])
            _picture(small, pictures, int(task.unlabelled[row]))
            words = f"{truth.novel[truth.unlabelled[row]]} → {truth.novel[believed]}"
            small.set_title(words, fontsize=5, pad=2)
            small.axis("off")
    files.write_with(path, lambda file: figure.savefig(file, dpi=120, format="png"))
    return path


def check() -> None:
    """Tell before hours of training that something is missing for the picture."""
    for name in ("matplotlib", "openTSNE"):
        if importlib.util.find_spec(name) is None:
            raise UnveilError(f"the map needs {name}: pip install 'unveil[paper]'")


def misplaced(y: NDArray[np.int64], clusters: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Rows whose cluster stands for another class, and that class; spread over the data."""
    class_of = match_clusters(contingency(y, clusters))
    classes = np.unique(y)
    meant = {int(cluster): int(classes[c]) for cluster, c in zip(np.unique(clusters), class_of, strict=True) if c >= 0}
    wrong = [row for row in range(len(y)) if meant.get(int(clusters[row]), int(y[row])) != int(y[row])]
    order = rng.numpy(0, "misplaced").permutation(len(wrong))
    return [(wrong[i], meant[int(clusters[wrong[i]])]) for i in order]


def _result(run: Run) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Features and clusters of the unlabelled items of a finished run."""
    if not (run.folder / "record.json").exists():
        raise UnveilError(f"the map needs the run directory {run.folder}: delete {run.record} to run it again")
    stored = load(run.folder)
    return stored.features[stored.new], stored.labels[stored.new] - stored.n_known


def _picture(axes: Any, items: Items, row: int) -> None:
    if isinstance(items, tuple):
        axes.imshow(np.asarray(read_image(items[row], at_least=64)))
    elif items.ndim == 4:
        axes.imshow(items[row].squeeze(), cmap="gray" if items.shape[3] == 1 else None)
