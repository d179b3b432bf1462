"""The neighbor search behind every label of a vector: exact here, and by libraries.

    pip install faiss-cpu usearch; python -m benchmarks.neighbors --out results/neighbors.json

20,000 stored points, 128 and 512 numbers, 16 neighbors, one core. Microseconds of CPU for a row, and the share of the
true neighbors that are found. `matrix product` is the product alone, which no exact search can do without.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unveil import files, hardware
from unveil.clustering.vote import VOTERS, nearest_points

POINTS, ROWS, NEIGHBORS, CLASSES = 20_000, 2048, 16, 20
Search = Callable[[np.ndarray], np.ndarray]


def draw(count: int, dims: int, seed: int) -> np.ndarray:
    """Overlapping classes, at unit length."""
    centers = np.random.default_rng(0).normal(size=(CLASSES, dims))
    some = np.random.default_rng([1, seed])
    x = centers[some.integers(0, CLASSES, count)] + some.normal(size=(count, dims))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def by_torch(points: np.ndarray) -> Iterator[tuple[str, Search]]:
    stored = torch.from_numpy(points)

    def blocks(call: Callable[[torch.Tensor], torch.Tensor], size: int) -> Search:
        return lambda x: torch.cat([call(part) for part in torch.from_numpy(x).split(size)]).numpy()

    yield (
        "all distances sorted (torch.cdist, topk)",
        blocks(lambda x: torch.cdist(x, stored).topk(NEIGHBORS, dim=1, largest=False).indices, 1024),
    )
    yield "unveil", blocks(lambda x: nearest_points(x, stored, NEIGHBORS)[1], VOTERS)
    yield "matrix product", blocks(lambda x: (x @ stored.T)[:, :NEIGHBORS], VOTERS)


def by_faiss(points: np.ndarray) -> Iterator[tuple[str, Search]]:
    import faiss

    faiss.omp_set_num_threads(1)
    flat = faiss.IndexFlatL2(points.shape[1])
    flat.add(points)
    yield "faiss, flat", lambda x: flat.search(x, NEIGHBORS)[1]
    graph = faiss.IndexHNSWFlat(points.shape[1], 32)
    graph.add(points)
    for effort in (32, 128):

        def search(x: np.ndarray, effort: int = effort) -> np.ndarray:
            graph.hnsw.efSearch = effort
            return graph.search(x, NEIGHBORS)[1]

        yield f"faiss, HNSW, effort {effort}", search


def by_usearch(points: np.ndarray) -> Iterator[tuple[str, Search]]:
    from usearch.index import Index

    for effort in (32, 128):
        index = Index(ndim=points.shape[1], metric="l2sq", dtype="f32", expansion_search=effort)
        index.add(np.arange(len(points)), points, threads=1)
        yield f"usearch, HNSW, effort {effort}", lambda x, index=index: index.search(x, NEIGHBORS, threads=1).keys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for dims in (128, 512):
        points, x = draw(POINTS, dims, 0), draw(ROWS, dims, 1)
        true = None
        for searches in (by_torch, by_faiss, by_usearch):
            for name, search in searches(points):
                search(x[:VOTERS])
                begun = time.process_time()
                found = search(x)
                micros = 1e6 * (time.process_time() - begun) / ROWS
                true = found if true is None else true
                hits = (found[:, :, None] == true[:, None, :]).any(axis=2).mean()
                share = None if name == "matrix product" else round(float(hits), 4)
                rows.append({"dims": dims, "search": name, "microseconds": round(micros, 1), "found": share})
                print(rows[-1], flush=True)
    if args.out:
        facts = {"points": POINTS, "rows": ROWS, "neighbors": NEIGHBORS}
        facts |= {"date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": hardware.commit()}
        machine = hardware.describe(torch.device("cpu"), torch.float32)
        files.write_json(args.out, {**facts, "machine": machine, "searches": rows})


if __name__ == "__main__":
    main()
