"""Turn items into vectors; where several encoders were named (a+b), take the one, or all together, in which known items
have most neighbors of their own class."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import rng
from unveil.clustering.graph import neighbor_graph
from unveil.data.dataset import Dataset, Split
from unveil.data.items import Items
from unveil.data.pictures import KeepPicture
from unveil.data.task import Task
from unveil.encoders.preparation import Preparation
from unveil.encoders.prepare import prepare, with_reduction
from unveil.encoders.registry import TOGETHER
from unveil.errors import UnveilError
from unveil.numerics import Labels, Matrix, unit_rows
from unveil.settings import Settings

MOST_ROWS = 4000
NEIGHBORS = 10


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A task after its encoder, and how it was made."""

    task: Task
    """With vectors, or with the images that a network is trained on."""
    shown: Task
    """The same rows with the items as they were given."""
    preparation: Preparation
    readable: NDArray[np.bool_]
    """(n,): the rows of the given task that could be read; the others are left out."""
    skipped: tuple[str, ...] = ()
    """Ids of the items that could not be read."""


def encode(
    task: Task, settings: Settings, store: Path | None, console: Console, keep: KeepPicture | None = None
) -> Encoded:
    """Turn the items of a task into what is learned from, as the settings say.

    `store`: where embeddings are kept. `keep` is given each image file that a pretrained encoder reads, as decoded.
    """
    preparation = prepare(task.items, settings, folder=store)
    preparation, items, readable = encode_items(task.items, task.labels, preparation, console, keep)
    shown = task if readable.all() else task.take(np.flatnonzero(readable))
    return Encoded(
        task=replace(shown, items=items),
        shown=shown,
        preparation=with_reduction(preparation, items, settings),
        readable=readable,
        skipped=tuple(task.id_of(int(row)) for row in np.flatnonzero(~readable)),
    )


def encode_dataset(dataset: Dataset, settings: Settings, store: Path, console: Console) -> tuple[Dataset, Preparation]:
    """A data set whose images are replaced by vectors where the recipe says so, and the preparation that does it.

    All of its items are encoded, whichever classes a task draws from it: so the embeddings serve every task.
    """
    preparation, data = Preparation(device=settings.machine.device, folder=store), settings.data
    if data.encoder is None:
        return dataset, with_reduction(preparation, dataset.train.items, settings)
    if dataset.train.items.are_vectors:
        raise UnveilError(f"data.encoder={data.encoder} needs images, and {dataset.name} has vectors: leave it out")
    preparation = replace(preparation, encoder=data.encoder, encoder_side=data.encoder_size or 96)

    def encoded(split: Split) -> Split:
        items, readable = preparation.encoded(split.items, console)
        if not readable.all():
            bad = split.items.paths[int((~readable).argmax())]
            raise UnveilError(f"cannot read the image {bad}: replace or remove the file")
        return replace(split, items=items)

    test = None if dataset.test is None else encoded(dataset.test)
    dataset = replace(dataset, train=encoded(dataset.train), test=test)
    return dataset, with_reduction(preparation, dataset.train.items, settings)


def encode_items(
    items: Items,
    labels: Labels,
    preparation: Preparation,
    console: Console,
    keep: KeepPicture | None = None,
) -> tuple[Preparation, Items, NDArray[np.bool_]]:
    """The preparation with its encoder chosen, the readable items after it, and a mask (n,) of the readable ones.
    `keep` is given each image file that a pretrained encoder reads, as it was decoded."""
    if preparation.encoder is None or TOGETHER not in preparation.encoder or items.are_table:
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
    """Share of the nearest neighbors of labeled rows that are of the same class; 0 without two classes."""
    known = np.flatnonzero(labels >= 0)
    if len(np.unique(labels[known])) < 2:
        return 0.0
    rows = rng.numpy(0, "encoders").permutation(known)[:MOST_ROWS]
    z = unit_rows(vectors[rows] - vectors[rows].mean(axis=0))
    neighbors = neighbor_graph(z, min(NEIGHBORS, len(rows) - 1)).neighbors
    return float((labels[rows][neighbors] == labels[rows][:, None]).mean())
