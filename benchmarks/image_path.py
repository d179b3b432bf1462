"""Images through the estimator as people call it: the usual encoders beside --quick.

    python -m benchmarks.image_path --store FOLDER [--out results/image-path.json]

CIFAR-100 with 20 images of each of 80 known classes and 75 of each of 20 new ones, CIFAR-10 with five and five classes
of 100, and imagenet20 with ten and ten of 60, both ways; the number of new classes given, no rehearsals, two seeds. One
thread; seconds are of the processor, for the first seed with the embeddings.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import cyclopts
import numpy as np
import torch
from numpy.typing import NDArray

from unveil import NovelClassDiscovery, files, hardware, rng
from unveil.data import catalog
from unveil.data.items import Items
from unveil.metrics import clustering_accuracy

SEEDS = 2
RECORD = Path("results/image-path.json")
app = cyclopts.App(help=__doc__)
Labels = NDArray[np.int64]


@app.default
def main(*, store: Path, out: Path = RECORD) -> None:
    """Measure, print and write the record."""
    torch.set_num_threads(1)
    rows = []
    for name, items, labels, novel in tasks():
        is_new = np.isin(labels, novel)
        y = np.where(is_new, -1, labels)
        x = items.array if items.pixels is not None else [str(path) for path in items.paths]
        for quick in (True, False):
            for seed in range(SEEDS):
                begun = time.process_time()
                fit = NovelClassDiscovery(len(novel), quick=quick, rehearsals=0, random_state=seed, store=store).fit(
                    x, y
                )
                rows.append(
                    {
                        "task": name,
                        "quick": quick,
                        "seed": seed,
                        "acc": clustering_accuracy(labels[is_new], fit.labels_[is_new]),
                        "encoder": fit._predictor.preparation.encoder,
                        "side": fit._predictor.preparation.encoder_side,
                        "seconds": round(time.process_time() - begun, 1),
                    }
                )
                print(rows[-1], flush=True)
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": hardware.commit(),
        "machine": hardware.describe(torch.device("cpu"), torch.float32),
        "rows": rows,
    }
    files.write_json(out, record)


def tasks() -> Iterator[tuple[str, Items, Labels, Labels]]:
    """Name, items, labels and the new classes of each task."""
    for name, data, known, new, novel in (
        ("cifar10 5/5", "cifar10", 100, 100, np.arange(5, 10)),
        ("imagenet20 10/10", "imagenet20", 60, 60, np.arange(10, 20)),
        ("imagenet20 10/10, reversed", "imagenet20", 60, 60, np.arange(10)),
        ("cifar100 80/20", "cifar100", 20, 75, np.arange(80, 100)),
    ):
        train = catalog.load(data).train
        draw = rng.numpy(0, f"image path {data}")
        taken = [
            draw.permutation(np.flatnonzero(train.labels == one))[: new if one in novel else known]
            for one in np.unique(train.labels)
        ]
        rows = np.sort(np.concatenate(taken))
        yield name, train.items.take(rows), train.labels[rows], novel


if __name__ == "__main__":
    app()
