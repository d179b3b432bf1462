"""Embed or label input of any size, a shard at a time: `unveil embed INPUT OUT`, `unveil predict RUN INPUT OUT`.

Every shard becomes one parquet file, which appears under its name only when it is complete. So a job that was stopped
goes on with the shards that are missing, and a shard that two workers did is there once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import track

from unveil import files, hardware
from unveil.data.items import Items, Vectors
from unveil.data.known_new import read_new
from unveil.data.shards import Piece, Shard, find_shards
from unveil.encoders import registry
from unveil.encoders.stored import Embedding
from unveil.errors import UnveilError
from unveil.own import engines
from unveil.own.engines import Finished, Job, counted
from unveil.own.predict_run import Labeler, class_kinds
from unveil.settings import Machine
from unveil.storage import fingerprint_file, identity

MANIFEST = "_shards.json"
"""What the results in a folder were made from; readers of parquet folders leave out names that begin with _."""
UNREADABLE = "unreadable"
QUIET = Console(quiet=True)


@dataclass(frozen=True)
class Labeling:
    """Label the items by a finished run; `of_the_run`: they are more of those that the run was made from."""

    run: Path
    coverage: float | None = None
    device: str = "auto"
    of_the_run: bool = False

    @cached_property
    def labeler(self) -> Labeler:
        return Labeler.load(self.run, coverage=self.coverage, device=self.device, of_the_run=self.of_the_run)

    def describe(self) -> dict[str, Any]:
        return {
            "predict": fingerprint_file(self.run / "predictor.safetensors"),
            "classes": identity(classes=class_kinds(self.run)),
            "coverage": self.coverage,
            "of_the_run": self.of_the_run,
        }

    def read(self, path: Path) -> tuple[Items, tuple[str, ...]]:
        return self.labeler.read(path)

    def __call__(self, piece: Piece, given: str) -> Any:
        import pyarrow as pa

        label, kind = np.full(len(piece.ids), None, dtype=object), np.full(len(piece.ids), UNREADABLE, dtype=object)
        confidence, readable = np.zeros(len(piece.ids), dtype=np.float32), piece.present.copy()
        if len(piece.items):
            labels = self.labeler(piece.items, given, QUIET)
            readable[piece.present] = labels.readable
            label[readable], kind[readable], confidence[readable] = labels.label, labels.kind, labels.confidence
        columns = {"id": piece.ids, "label": label, "kind": kind}
        table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
        return table.append_column("confidence", pa.array(confidence, pa.float32(), mask=~readable))


@dataclass(frozen=True)
class Embedder:
    """Turn images or texts into vectors by a frozen encoder."""

    encoder: str
    size: int | None = None
    """Side in pixels at which it sees images; None: its own for large images."""
    device: str = "auto"

    def describe(self) -> dict[str, Any]:
        return {"embed": self.encoder, "size": self.side}

    @property
    def side(self) -> int:
        """Side in pixels of the images."""
        return self.size or registry.large_side(self.encoder)

    def read(self, path: Path) -> tuple[Items, tuple[str, ...]]:
        return read_new(path)

    def __call__(self, piece: Piece, given: str) -> Any:
        import pyarrow as pa

        if piece.items.read_as is None or piece.items.are_table:
            raise UnveilError(f"{given} holds numbers, and an encoder needs images or texts: give some")
        vectors = self._vectors(piece.items)
        numbers, missing = pa.array(vectors.ravel(), pa.float32()), pa.array(np.isnan(vectors[:, 0]))
        column = pa.FixedSizeListArray.from_arrays(numbers, vectors.shape[1], mask=missing)
        return pa.table({"id": pa.array(piece.ids, pa.string()), "vector": column})

    def _vectors(self, items: Items) -> Vectors:
        if items.are_images and (plain := registry.plain(self.encoder)) is not None:
            vectors: Vectors = plain(items)
            return vectors
        device = hardware.pick_device(self.device)
        embedding = Embedding(
            name=self.encoder,
            size=self.side if items.are_images else 0,
            device=device,
            precision=hardware.pick_precision(Machine(), device),
            folder=None,
            console=QUIET,
        )
        return embedding(items, skip_unreadable=True)


def run_job(
    job: Job,
    inputs: Path,
    out: Path,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int = 1,
    address: str | None = None,
    console: Console | None = None,
) -> list[Finished]:
    """Do all shards of the input that `out` lacks; returns all of them, in order."""
    console = console or Console(stderr=True, markup=False)
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise UnveilError("results of shards are parquet files, which need pyarrow: pip install pyarrow") from None
    if out.exists() and not out.is_dir():
        raise UnveilError(f"{out} is a file, expected a folder for the results: choose another one")
    shards = find_shards(inputs)
    _check_manifest(job, shards, out)
    todo = [shard for shard in shards if not (out / f"{shard.name}.parquet").exists()]
    done = {shard.name: counted(out / f"{shard.name}.parquet", 0.0) for shard in shards if shard not in todo}
    if done:
        console.print(f"{len(done):,} of {len(shards):,} shards are done", soft_wrap=True)
    run: Iterable[Finished] = engines.ENGINES[engine](job, todo, out, workers, address)
    for one in track(run, "shards", total=len(todo), console=console, transient=True, disable=not console.is_terminal):
        done[one.name] = one
    return [done[shard.name] for shard in shards]


def _check_manifest(job: Job, shards: list[Shard], out: Path) -> None:
    """Write down what the results are made from; an error where the folder holds others."""
    made_from = {**job.describe(), "shards": {shard.name: shard.signature() for shard in shards}}
    path = out / MANIFEST
    if path.exists():
        if files.read_json(path) != made_from:
            raise UnveilError(
                f"{out} holds results of other items, of other names of the classes, or of another run or encoder: "
                "choose another folder, or delete this one"
            )
    elif out.exists() and any(out.iterdir()):
        raise UnveilError(f"{out} is not empty and holds no results of unveil: choose another folder")
    files.write_json(path, made_from)
