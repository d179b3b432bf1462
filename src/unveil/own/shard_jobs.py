"""One shard of a job: what a worker makes of it, and the parquet file that it becomes."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from unveil import files
from unveil.data.items import Items
from unveil.data.shards import Piece, Shard
from unveil.errors import UnveilError


@dataclass(frozen=True)
class Finished:
    """A shard that is done."""

    name: str
    rows: int
    unreadable: int
    seconds: float  # 0: it was done before


class Job(Protocol):
    """What is done to every shard. It is sent to the workers, each of which loads what it needs once."""

    def __call__(self, piece: Piece, given: str) -> Any:
        """A pyarrow table with a row for each id."""
        ...

    def read(self, path: Path) -> tuple[Items, tuple[str, ...]]:
        """Items and ids of a file that is no array of vectors."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the results depend on, for the manifest."""
        ...


def do_shard(job: Job, shard: Shard, out: Path) -> Finished:
    """Write the result of a shard, unless it is there."""
    import pyarrow.parquet as pq

    target, begun, writer = out / f"{shard.name}.parquet", time.monotonic(), None
    if target.exists():
        return counted(target, 0.0)
    with files.replacing(target) as temporary:
        try:
            for piece in shard.pieces(job.read):
                table = job(piece, str(shard.paths[0]))
                writer = writer or pq.ParquetWriter(temporary, table.schema, compression="zstd")
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise UnveilError(f"{shard.paths[0]} is empty: expected at least one row; remove the file")
    return counted(target, time.monotonic() - begun)


def counted(path: Path, seconds: float) -> Finished:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    column = file.schema_arrow.names[1]  # label or vector: null where an item could not be read
    nulls = sum(batch.column(0).null_count for batch in file.iter_batches(columns=[column]))
    return Finished(path.stem, file.metadata.num_rows, nulls, seconds)
