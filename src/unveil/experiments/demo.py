"""The digits 5-9 found beside 0-4, and what others find: `unveil demo`."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from unveil.data import catalog
from unveil.metrics import clustering_accuracy
from unveil.own.estimator import NovelClassDiscovery

Labels = NDArray[np.int64]
HAS_UMAP = find_spec("umap") is not None


class Row(NamedTuple):
    """Who found the classes, how well, and how long it took."""

    name: str
    accuracy: float
    seconds: float


def compare(seed: int = 0, out: Path | None = None, console: Console | None = None) -> list[Row]:
    """Rows of the comparison; `out`: a run directory of unveil's result."""
    console = console or Console(quiet=True)
    digits = catalog.load("digits")
    assert digits.test is not None
    images = np.concatenate([digits.train.items.array, digits.test.items.array])
    truth = np.concatenate([digits.train.labels, digits.test.labels])
    new = truth >= 5
    pixels = images.reshape(len(images), -1).astype(np.float32)[new]
    estimator = NovelClassDiscovery(n_novel=5, encoder="gradients", random_state=seed)
    console.print(
        f"The digits 0-4 are known ({(~new).sum()} images of 8x8 pixels), and {new.sum()} unlabeled images hold five "
        "more classes.\n"
    )

    def umap_kmeans() -> Labels:
        from umap import UMAP

        embedding = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, random_state=seed, n_jobs=1)
        return _kmeans(embedding.fit_transform(pixels), seed)

    def unveil() -> Labels:
        estimator.fit(images, np.where(new, -1, truth))
        if out is not None:
            estimator.save(out, images)
        return np.asarray(estimator.labels_[new])

    rows = []
    finders: dict[str, Callable[[], Labels]] = {"k-means": lambda: _kmeans(pixels, seed), "UMAP + k-means": umap_kmeans}
    finders["unveil"] = unveil
    for name, find in finders.items():
        if find is umap_kmeans and not HAS_UMAP:
            continue
        begun = time.monotonic()
        with console.status(name):
            labels = find()
        rows.append(Row(name, clustering_accuracy(truth[new], labels), time.monotonic() - begun))
    table = Table("", "accuracy", "seconds", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row.name, f"{100 * row.accuracy:.1f} %", f"{row.seconds:.1f}")
    console.print(table)
    console.print("\nunveil compares the images by the directions of their strokes (gradients), the others by pixels.")
    forecast = estimator.forecast_.sentence()
    console.print(f"What unveil foretold without these labels: {forecast}", soft_wrap=True, highlight=False)
    if not HAS_UMAP:
        console.print("UMAP + k-means is shown too where umap-learn is installed: pip install umap-learn")
    return rows


def _kmeans(x: NDArray[np.float32], seed: int) -> Labels:
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(5, n_init=10, random_state=seed).fit_predict(x))
