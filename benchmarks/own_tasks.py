"""The tasks of `benchmarks.own_data`: draws of known and novel classes from a folder of data sets, `NAME.npz` (X, y).

`python -m benchmarks.own_pool FOLDER` makes the folder. Of each data set there are two draws: about half of the
classes known (of more than 40 classes 70 %), and few of them, where there are eight classes or more; of a third of the
data sets also novel classes of very unequal size. At most 2,000 labeled and 2,000 unlabeled rows.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]
Sizes = Literal["equal", "10 to 1", "long tail"]
MOST_ROWS, MOST_NOVEL = 2000, 20

EMBEDDINGS = ("cifar10", "cifar100", "imagenet20", "flowers17", "textures10", "clinc", "stackoverflow")
PIXELS = (
    "digits",
    "mnist",
    "fashion-mnist",
    "omniglot-korean",
    "omniglot-greek",
    "omniglot-latin",
    "omniglot-japanese",
)
TABLES = (
    "letter", "vowel", "vehicle", "segment", "movement_libras", "optdigits", "penbased", "satimage", "texture",
    "drybean", "spoken_digits", "bladder_cells", "pbmc", "osuleaf", "japanesevowels", "acsf1", "led7digit", "marketing",
)  # fmt: skip
UNBALANCED: dict[str, Sizes] = {
    "cifar100": "10 to 1", "mnist": "long tail", "letter": "10 to 1", "spoken_digits": "long tail",
    "penbased": "10 to 1", "stackoverflow": "long tail", "texture": "10 to 1", "digits": "long tail",
    "segment": "10 to 1", "clinc": "long tail", "flowers17": "10 to 1", "optdigits": "long tail",
}  # fmt: skip


@dataclass(frozen=True)
class TaskSpec:
    """A data set and how its classes are drawn."""

    data: str
    few_known: bool = False
    sizes: Sizes = "equal"
    """Of the novel classes: as they are; every second one a tenth; falling evenly (geometrically) to a tenth."""

    @property
    def kind(self) -> str:
        """embeddings, pixels or table: how people would scale the vectors."""
        return "embeddings" if self.data in EMBEDDINGS else "pixels" if self.data in PIXELS else "table"

    @property
    def balanced(self) -> bool:
        return self.sizes == "equal"


TASKS: dict[str, TaskSpec] = {}
for _name in (*EMBEDDINGS, *PIXELS, *TABLES):
    TASKS[_name] = TaskSpec(_name)
    TASKS[f"{_name}-few"] = TaskSpec(_name, few_known=True)
    if _name in UNBALANCED:
        _ending = "10to1" if UNBALANCED[_name] == "10 to 1" else "tail"
        TASKS[f"{_name}-{_ending}"] = TaskSpec(_name, sizes=UNBALANCED[_name])


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


def draw(spec: TaskSpec, folder: Path) -> Drawn:
    """The same rows for every seed."""
    with np.load(folder / f"{spec.data}.npz", allow_pickle=False) as stored:
        x, truth = stored["X"], stored["y"].astype(np.int64)
    number = 2 if not spec.balanced else int(spec.few_known)
    of_set = sum(map(ord, spec.data))
    classes = int(truth.max()) + 1
    order_of_classes = np.random.default_rng([7 if number == 2 else number, of_set]).permutation(classes)
    count = classes - classes // 2
    if classes > 40 and number != 1:
        count = int(0.7 * classes)
    elif number == 1 and classes >= 8:
        count = min(max(4, classes // 4), classes - 2)
    known, novel = order_of_classes[:count], order_of_classes[count:]
    novel = novel[:MOST_NOVEL] if number == 1 else novel
    order = np.random.default_rng([number, 11]).permutation(len(truth))
    unlabeled = order[np.isin(truth[order], novel)]
    if spec.sizes != "equal":
        unlabeled = _unbalanced(unlabeled, truth, spec.sizes)
    chosen = np.concatenate([order[np.isin(truth[order], known)][:MOST_ROWS], unlabeled[:MOST_ROWS]])
    hidden = np.isin(truth[chosen], novel)
    return Drawn(x[chosen].astype(np.float32), np.where(hidden, -1, truth[chosen]), truth[chosen])


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
