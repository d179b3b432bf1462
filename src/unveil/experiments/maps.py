"""The figure of the paper that shows features in two dimensions, with misplaced examples as pictures."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil import files, rng
from unveil.errors import UnveilError
from unveil.experiments.plan import Plan
from unveil.metrics import clustering_accuracy, contingency
from unveil.numerics import match_clusters
from unveil.runs.map import threads
from unveil.runs.reader import Run, load, read_truth

POINTS, EXAMPLES = 2000, 8


def draw(plan: Plan, path: Path) -> Path:
    """One map for each row, from the run of the first seed; below it items that fell into another class's cluster."""
    from matplotlib.figure import Figure

    shown = {name: _load(runs[0].folder, runs[0].record) for name, runs in plan.runs.items()}
    figure = Figure(figsize=(4.2 * len(shown), 5.6), layout="constrained")
    grid = figure.add_gridspec(2, len(shown), height_ratios=[4, 1.3])
    for column, (name, run) in enumerate(shown.items()):
        _draw_column(figure, grid, column, name, run)
    files.write_with(path, lambda file: figure.savefig(file, dpi=120, format="png"))
    return path


def _draw_column(figure: Any, grid: Any, column: int, name: str, run: Run) -> None:
    from openTSNE import TSNE

    rows = np.flatnonzero(run.new)
    truth = read_truth(run) or {}
    names, y = np.unique([truth[run.ids[row]] for row in rows], return_inverse=True)
    clusters = run.labels[rows]
    sample = rng.numpy(0, "map").permutation(len(rows))[:POINTS]
    x = np.asarray(run.features[np.sort(rows[sample])])
    flat = TSNE(random_state=0, n_jobs=threads(len(x)), metric="cosine").fit(x)
    axes = figure.add_subplot(grid[0, column])
    axes.scatter(flat[:, 0], flat[:, 1], c=y[np.sort(sample)], cmap="tab20", s=3, linewidths=0)
    axes.set_title(f"{name}, ACC {100 * clustering_accuracy(y, clusters):.1f} %", fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
    below = grid[1, column].subgridspec(2, EXAMPLES // 2)
    for index, (row, predicted) in enumerate(misplaced(y, clusters)[:EXAMPLES]):
        panel = figure.add_subplot(below[index // (EXAMPLES // 2), index % (EXAMPLES // 2)])
        picture = run.picture(int(rows[row]), 64)
        if picture is not None:
            panel.imshow(np.asarray(picture))
        panel.set_title(f"{names[y[row]]} → {names[predicted]}", fontsize=5, pad=2)
        panel.axis("off")


def check() -> None:
    """Raise an error before hours of training if a package for the picture is missing."""
    for name in ("matplotlib", "openTSNE"):
        if importlib.util.find_spec(name) is None:
            raise UnveilError(f"the map needs {name}: pip install 'unveil[paper]'")


def misplaced(y: NDArray[np.int64], clusters: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Rows whose cluster stands for another class, and that class; spread over the data."""
    classes, values = np.unique(y), np.unique(clusters)
    of_cluster = match_clusters(contingency(y, clusters))
    class_of = {int(c): int(classes[of_cluster[index]]) for index, c in enumerate(values) if of_cluster[index] >= 0}
    wrong = [row for row in range(len(y)) if class_of.get(int(clusters[row]), int(y[row])) != int(y[row])]
    order = rng.numpy(0, "misplaced").permutation(len(wrong))
    return [(wrong[i], class_of[int(clusters[wrong[i]])]) for i in order]


def _load(folder: Path, record: Path) -> Run:
    if not (folder / "features.npy").exists():
        raise UnveilError(f"the map needs the run directory {folder}: delete {record} to run it again")
    return load(folder)
