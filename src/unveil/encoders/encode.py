"""Turn items into vectors; where several encoders were named (a+b), take the one, or all together, in which known items
have most neighbors of their own class."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import rng
from unveil.clustering.graph import neighbor_graph
from unveil.data.items import Items
from unveil.data.pictures import KeepPicture
from unveil.encoders.preparation import TOGETHER, Preparation
from unveil.numerics import Labels, Matrix, unit_rows

MOST_ROWS = 4000
NEIGHBORS = 10


def encode_items(
    items: Items,
    labels: Labels,
    preparation: Preparation,
    console: Console,
    keep: KeepPicture | None = None,
) -> tuple[Preparation, Items, NDArray[np.bool_]]:
    """The preparation with its encoder chosen, the readable items after it, and a mask (n,) of the readable ones.
    `keep` is given each image file that a pretrained encoder reads, as it was decoded."""
    if preparation.encoder is None or TOGETHER not in preparation.encoder or items.kind == "table":
        return preparation, *preparation.encoded(items, console, keep)
    names = preparation.encoder.split(TOGETHER)
    alone = {
        name: replace(preparation, encoder=name).encoded(items, console, keep if name == names[0] else None)
        for name in names
    }
    readable = alone[names[0]][1]
    options = {name: np.asarray(encoded.array) for name, (encoded, _) in alone.items()}
    options[preparation.encoder] = np.concatenate([unit_rows(vectors) for vectors in options.values()], axis=1)
    scores = {name: own_neighbors(vectors, labels[readable]) for name, vectors in options.items()}
    best = max(scores, key=lambda name: scores[name])  # the first where they are equal
    told = ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores.items())
    console.print(f"encoder {best}: share of neighbors of known items in their own class: {told}", soft_wrap=True)
    return replace(preparation, encoder=best), Items.of(options[best].astype(np.float32)), readable


def own_neighbors(vectors: Matrix, labels: Labels) -> float:
    """Share of the nearest neighbors of labelled rows that are of the same class; 0 without two classes."""
    known = np.flatnonzero(labels >= 0)
    if len(np.unique(labels[known])) < 2:
        return 0.0
    rows = rng.numpy(0, "encoders").permutation(known)[:MOST_ROWS]
    z = unit_rows(vectors[rows] - vectors[rows].mean(axis=0))
    neighbors = neighbor_graph(z, min(NEIGHBORS, len(rows) - 1)).neighbors
    return float((labels[rows][neighbors] == labels[rows][:, None]).mean())
