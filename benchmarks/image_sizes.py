"""At which size encoders should see images, which of them side by side, and whether the mean over views pays.

    python -m benchmarks.image_sizes --pool FOLDER [--out results/image-sizes.json]

30 images of each of at most 20 classes of a data set; all labels are used, as those of known classes would be. A
setting is judged by k-means (3 seeds) and by the five nearest neighbors of each image, on vectors of unit length. What
is chosen for a data set is what is best in the mean over the others (`left_out`). One thread; times are of the
processor. FOLDER holds flowers17/ and textures10/, a folder of photographs for each class.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil import files, hardware, rng
from unveil.clustering.graph import neighbor_graph
from unveil.clustering.kmeans import kmeans
from unveil.data import catalog
from unveil.data.folders import read_folder
from unveil.data.items import Items
from unveil.encoders.pretrained import Pretrained, pretrained
from unveil.encoders.stored import pictures
from unveil.metrics import clustering_accuracy
from unveil.numerics import unit_rows

Vectors = NDArray[np.float32]
PER_CLASS, CLASSES, SEEDS, NEIGHBORS, CHUNK = 30, 20, 3, 5, 32
ENCODERS = ("efficientnet-lite0", "efficientnet-lite2")
PAIR = "lite0 + lite2"
SMALL, LARGE = (96, 128, 160, 192, 224), (160, 192, 224)
WIDER = 8 / 7
"""Crops are corners of an image that is larger by this factor: 224 of 256 pixels."""
VIEWS = ("plain", "flip", "corner 0", "corner 1", "corner 2", "corner 3")
MEANS = {"plain": VIEWS[:1], "plain and flip": VIEWS[:2], "plain and corners": (VIEWS[0], *VIEWS[2:]), "all": VIEWS}
RECORD = Path("results/image-sizes.json")
app = cyclopts.App(help=__doc__)


@dataclass(frozen=True)
class Pictures:
    """Some images of some classes of a data set."""

    name: str
    items: Items
    labels: NDArray[np.int64]
    large: bool


@app.default
def main(*, pool: Path, out: Path = RECORD, views: bool = True) -> None:
    """Measure everything and write the record."""
    torch.set_num_threads(1)
    begun, rows = time.process_time(), []
    sets = [*small_sets(), *large_sets(pool)]
    for found in sets:
        for row in measured(found, views and found.large):
            print(
                f"{found.name:14} {row['setting']:44} k-means {row['kmeans']:5.1f}  neighbors {row['neighbors']:5.1f}"
            )
            rows.append({"data": found.name, "large": found.large, **row})
    files.write_json(
        out,
        {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": hardware.commit(),
            "machine": hardware.describe(torch.device("cpu"), torch.float32),
            "seed": 0,
            "per_class": PER_CLASS,
            "processor_seconds": round(time.process_time() - begun, 1),
            "rows": rows,
            "left_out": [*left_out(rows, large=False), *left_out(rows, large=True)],
        },
    )


def small_sets() -> Iterator[Pictures]:
    for name in ("cifar10", "cifar100", "fashion-mnist"):
        train = catalog.load(name).train
        yield drawn(name, train.items, train.labels, large=False)


def large_sets(pool: Path) -> Iterator[Pictures]:
    train = catalog.load("imagenet20").train
    yield drawn("imagenet20", train.items, train.labels, large=True)
    for name in ("flowers17", "textures10"):
        train = read_folder(pool / name).train
        yield drawn(name, train.items, train.labels, large=True)


def drawn(name: str, items: Items, labels: NDArray[np.int64], *, large: bool) -> Pictures:
    draw = rng.numpy(0, f"image sizes {name}")
    classes = draw.permutation(np.unique(labels))[:CLASSES]
    rows = np.concatenate([draw.permutation(np.flatnonzero(labels == one))[:PER_CLASS] for one in np.sort(classes)])
    return Pictures(name, items.take(rows), np.unique(labels[rows], return_inverse=True)[1], large)


def measured(found: Pictures, views: bool) -> Iterator[dict[str, Any]]:
    """A row for each encoder and both side by side, at each size; large images also for means over views."""
    vectors: dict[tuple[str, int], Vectors] = {}
    seconds: dict[tuple[str, int], float] = {}
    for size, name in product(LARGE if found.large else SMALL, ENCODERS):
        begun = time.process_time()
        vectors[name, size] = embedded(found.items, name, size, "plain")
        seconds[name, size] = (time.process_time() - begun) / len(found.items)
    for size in LARGE if found.large else SMALL:
        for name in ENCODERS:
            yield row_of(
                found, f"{name.removeprefix('efficientnet-')} at {size}", vectors[name, size], seconds[name, size]
            )
        both = np.concatenate([unit_rows(vectors[name, size]) for name in ENCODERS], axis=1)
        yield row_of(found, f"{PAIR} at {size}", both, sum(seconds[name, size] for name in ENCODERS))
    if views:
        size, name = LARGE[-1], ENCODERS[0]
        seen = {view: embedded(found.items, name, size, view) for view in VIEWS}
        for title, parts in MEANS.items():
            mean = np.mean([seen[view] for view in parts], axis=0)
            yield row_of(found, f"views of lite0 at {size}: {title}", mean, len(parts) * seconds[name, size])


@torch.no_grad()
def embedded(items: Items, name: str, size: int, view: str) -> Vectors:
    encoder: Pretrained = pretrained(name, torch.device("cpu"))
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (encoder.mean, encoder.std))
    seen = SEEN.get(view.partition(" ")[0], plain)
    pieces = []
    for piece in items.pieces(CHUNK):
        x = seen(piece, size, view)
        pieces.append(encoder.features(((x - mean) / std).contiguous(memory_format=torch.channels_last)).numpy())
    return np.concatenate(pieces)


def plain(items: Items, size: int, view: str) -> Tensor:
    return pictures(items, size)[0]


def flipped(items: Items, size: int, view: str) -> Tensor:
    return plain(items, size, view).flip(3)


def corner(items: Items, size: int, view: str) -> Tensor:
    wider = round(size * WIDER)
    down, right = divmod(int(view.split()[1]), 2)
    top, left = down * (wider - size), right * (wider - size)
    return pictures(items, wider)[0][:, :, top : top + size, left : left + size]


SEEN: dict[str, Callable[[Items, int, str], Tensor]] = {"plain": plain, "flip": flipped, "corner": corner}


def row_of(found: Pictures, setting: str, vectors: Vectors, seconds: float) -> dict[str, Any]:
    return {"setting": setting, **scores(vectors, found.labels), "milliseconds": round(1000 * seconds, 1)}


def scores(vectors: Vectors, y: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy in % of k-means and of the nearest neighbors, on vectors of unit length."""
    z, classes = unit_rows(vectors), int(y.max()) + 1
    accuracy = [clustering_accuracy(y, kmeans(z, classes, seed).labels) for seed in range(SEEDS)]
    votes = y[neighbor_graph(z, NEIGHBORS).neighbors]
    counts = (votes[:, :, None] == np.arange(classes)).sum(axis=1)
    right = float((counts.argmax(axis=1) == y).mean())
    return {"kmeans": round(100 * float(np.mean(accuracy)), 2), "neighbors": round(100 * right, 2)}


def left_out(rows: list[dict[str, Any]], *, large: bool) -> Iterator[dict[str, Any]]:
    """For each data set the setting that is best on the others, and what it and the best of its own have there."""
    rows = [row for row in rows if row["large"] == large]
    sets = list(dict.fromkeys(row["data"] for row in rows))
    for group in ("lite0 at", f"{PAIR} at", "", "views"):
        score = {(row["data"], row["setting"]): (row["kmeans"] + row["neighbors"]) / 2 for row in rows}
        settings = [s for s in dict.fromkeys(row["setting"] for row in rows) if s.startswith(group)]
        settings = settings if group == "views" else [s for s in settings if not s.startswith("views")]
        for data in sets if settings else ():
            others = {s: float(np.mean([score[one, s] for one in sets if one != data])) for s in settings}
            chosen, best = max(others, key=lambda s: others[s]), max(settings, key=lambda s: score[data, s])
            yield {
                "data": data,
                "among": group.removesuffix(" at") or "all",
                "chosen": chosen,
                "score": round(score[data, chosen], 2),
                "best": best,
                "best_score": round(score[data, best], 2),
            }


if __name__ == "__main__":
    app()
