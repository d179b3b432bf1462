"""What each part of neighbor consensus brings: `python -m benchmarks.own_ablation --out results/own-ablation`.

The tasks that the method was developed on, the number of classes given, five seeds; one part is left out at a time. A
record for each task; records that are there are not made again. Novel labels are used for scoring alone.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own_dimensions import Choices, only
from benchmarks.own_tasks import DEVELOPED_ON, draw
from unveil import files, recipe
from unveil.clustering.neighbor_consensus import NeighborConsensusSettings, embeddings, find_clusters, neighbor_graphs
from unveil.clustering.partitions import kmeans_labels
from unveil.discovery.result import environment
from unveil.encoders.metric import choose_metric
from unveil.metrics import clustering_accuracy
from unveil.numerics import Labels, Matrix

Find = Callable[[Matrix, Matrix, Labels, int, int], Labels]
"""Clusters of unlabelled vectors, beside known ones and their labels, for a number of clusters and a seed."""
USUAL = NeighborConsensusSettings()
ONE_GRAPH = replace(USUAL, neighbors=(15,), dimensions=(16,), angles=(True,))


def by(config: NeighborConsensusSettings) -> Find:
    return lambda z, z_known, y, clusters, seed: find_clusters(z, z_known, y, clusters, config, seed)


def one_embedding(z: Matrix, z_known: Matrix, y: Labels, clusters: int, seed: int) -> Labels:
    return kmeans_labels(embeddings(neighbor_graphs(z, ONE_GRAPH), ONE_GRAPH, seed)[0], clusters, seed, n_init=10)


def with_dimensions(some: Callable[[Choices], Choices]) -> Find:
    def find(z: Matrix, z_known: Matrix, y: Labels, clusters: int, seed: int) -> Labels:
        with only(some):
            return find_clusters(z, z_known, y, clusters, USUAL, seed)

    return find


def without_known(z: Matrix, z_known: Matrix, y: Labels, clusters: int, seed: int) -> Labels:
    return find_clusters(z, z_known[:0], y[:0], clusters, USUAL, seed)


WHITENED: dict[str, Find] = {
    "as it is": by(USUAL),
    "neighbors by angle alone": by(replace(USUAL, angles=(True, True, True))),
    "neighbors by distance alone": by(replace(USUAL, angles=(False, False, False))),
    "no k-means on the vectors in the consensus": by(replace(USUAL, on_vectors=0)),
    "embeddings of 12 and 16 dimensions alone": with_dimensions(lambda choices: choices[:1]),
    "embeddings of few dimensions alone": with_dimensions(lambda choices: choices[-1:]),
    "one graph of 15 neighbors": by(ONE_GRAPH),
    "one embedding and k-means, no consensus": one_embedding,
    "k-means on the vectors": lambda z, z_known, y, clusters, seed: kmeans_labels(z, clusters, seed, n_init=10),
}
NOT_WHITENED: dict[str, Find] = {"not whitened by known classes": by(USUAL), "without known classes": without_known}


def measure(task: str, rows: int, seeds: range) -> dict[str, Any]:
    """Accuracy of every variant, by seed."""
    begun, drawn = time.monotonic(), draw(DEVELOPED_ON[task], rows)
    metric = choose_metric(drawn.x, drawn.y)
    found: dict[str, list[float]] = {}
    for one, variants in ((metric, WHITENED), (replace(metric, shrinkage=None), NOT_WHITENED)):
        base = one.base(drawn.x)(drawn.x)
        z = one.shaping(base, drawn.y)(base)
        z = z / np.float32(z.std())
        new, known = z[drawn.hidden], z[~drawn.hidden]
        y = np.unique(drawn.y[~drawn.hidden], return_inverse=True)[1]
        for name, find in variants.items():
            found[name] = [
                clustering_accuracy(drawn.truth[drawn.hidden], find(new, known, y, drawn.n_novel, seed))
                for seed in seeds
            ]
    return {
        "task": task,
        "seeds": len(seeds),
        "metric": metric.describe(),
        "accuracy": found,
        "seconds": round(time.monotonic() - begun, 1),
        "environment": environment(recipe.load("vectors")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/own-ablation"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--only", nargs="*", choices=sorted(DEVELOPED_ON), default=sorted(DEVELOPED_ON))
    args = parser.parse_args()
    for task in args.only:
        path = args.out / f"{task}.json"
        if not path.exists():
            files.write_json(path, measure(task, args.rows, range(args.seeds)))
            print(f"{task}: done", flush=True)


if __name__ == "__main__":
    main()
