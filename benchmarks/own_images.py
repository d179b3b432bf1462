"""Small images without a pretrained encoder: `python -m benchmarks.own_images --out results/own-images.json`.

unveil and UMAP + k-means on pixels and on histograms of gradients, the number of classes given; at most 2,000 labelled
and 2,000 unlabelled images. Novel labels are used for scoring alone.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.own_tasks import BALANCED
from unveil import NovelClassDiscovery, files, recipe
from unveil.discovery.result import environment
from unveil.encoders.preparation import BUILT_IN
from unveil.metrics import clustering_accuracy

TASKS = (
    "digits",
    "digits-reversed",
    "mnist",
    "mnist-reversed",
    "fashion-mnist",
    "fashion-mnist-reversed",
    "omniglot-korean",
    "omniglot-greek",
    "omniglot-latin",
)
ROWS = 2000


def measure(name: str, seed: int) -> dict[str, Any]:
    """Accuracy and seconds of both on both."""
    items, truth = BALANCED[name].load()
    novel = np.isin(truth, list(BALANCED[name].novel(int(truth.max()) + 1)))
    order = np.random.default_rng(0).permutation(len(truth))
    chosen = np.concatenate([order[~novel[order]][:ROWS], order[novel[order]][:ROWS]])
    images, truth, novel = items.take(chosen), truth[chosen], novel[chosen]
    count, found = len(np.unique(truth[novel])), {}
    for encoder, encode in BUILT_IN.items():
        begun = time.monotonic()
        fitted = NovelClassDiscovery(n_novel=count, encoder=encoder, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(images.array, np.where(novel, -1, truth))
        found[f"unveil, {encoder}"] = {
            "acc": clustering_accuracy(truth[novel], fitted.labels_[novel]),
            "forecast": fitted.forecast_.sentence(),
            "seconds": round(time.monotonic() - begun, 1),
        }
        begun = time.monotonic()
        places = peers.umap_places(encode(images)[novel], seed)
        found[f"UMAP + k-means, {encoder}"] = {
            "acc": clustering_accuracy(truth[novel], peers.kmeans(places, count, seed)),
            "seconds": round(time.monotonic() - begun, 1),
        }
    return {"task": name, "seed": seed, "rows": len(chosen), "novel": count, "scores": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-images.json"))
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    records = json.loads(args.out.read_text())["records"] if args.out.exists() else []
    done = {(one["task"], one["seed"]) for one in records}
    for seed in range(args.seeds):
        for name in TASKS:
            if (name, seed) not in done:
                records.append(measure(name, seed))
                files.write_json(args.out, {"records": records, "environment": environment(recipe.load("vectors"))})
                print(records[-1], flush=True)


if __name__ == "__main__":
    main()
