"""Where shards are worked on: in this process, in several on this machine, or on a Ray cluster.

All of them call the same function for each shard, `do_shard`.
"""

import logging
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from unveil import files
from unveil.data.items import Items
from unveil.data.shards import Piece, Shard
from unveil.errors import UnveilError
from unveil.files import clear_leftovers


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


RESTARTS = 3  # how often workers that were killed are replaced without any shard being finished in between
_JOB: list[Job] = []  # what this process does, with what it has loaded


def local(job: Job, shards: list[Shard], out: Path, workers: int, address: str | None) -> Iterator[Finished]:
    """In this process, or in `workers` others; shards of a worker that was killed are done again."""
    clear_leftovers(out)
    if workers == 1:
        for shard in shards:
            with _one_blas_thread():
                done = do_shard(job, shard, out)
            yield done
        return
    left, attempts = {shard.name: shard for shard in shards}, RESTARTS
    context = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // workers)
    while left:
        clear_leftovers(out)  # of workers that were killed
        with ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(job, threads)) as pool:
            futures = [pool.submit(_do, shard, out) for shard in left.values()]
            try:
                for future in as_completed(futures):
                    done = future.result()
                    del left[done.name]
                    attempts = RESTARTS
                    yield done
            except BrokenProcessPool:
                attempts -= 1
                if attempts == 0:
                    raise UnveilError(
                        "workers were killed again and again, perhaps for lack of memory: use fewer --workers"
                    ) from None
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for child in multiprocessing.active_children():  # they would finish their shards first
                    child.terminate()
                raise


def _one_blas_thread() -> Any:
    """Products of small matrices are slower with several threads, which wait for each other; torch keeps its own."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def _start(job: Job, threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    _one_blas_thread()  # for the life of the process
    _JOB[:] = [job]


def _do(shard: Shard, out: Path) -> Finished:
    return do_shard(_JOB[0], shard, out)


def on_ray(job: Job, shards: list[Shard], out: Path, workers: int, address: str | None) -> Iterator[Finished]:
    """By `workers` actors of Ray Data, on a cluster at `address` or on one that is started here.

    Ray replaces an actor that dies, and gives its shard to another one.
    """
    if not shards:
        return
    with connected(address, workers) as ray:
        where = ray.put((job, shards, out.resolve()))
        rows = ray.data.from_items([{"index": index} for index in range(len(shards))], override_num_blocks=len(shards))
        done = rows.map(_RayWorker, fn_constructor_args=(where,), compute=ray.data.ActorPoolStrategy(size=workers))
        for row in done.iter_rows():
            if row["error"]:
                raise UnveilError(row["error"])
            yield Finished(row["name"], row["rows"], row["unreadable"], row["seconds"])


class _RayWorker:
    """An actor: it does a shard for each row."""

    def __init__(self, where: Any) -> None:
        import ray

        self.job, self.shards, self.out = ray.get(where) if isinstance(where, ray.ObjectRef) else where

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            return {**asdict(do_shard(self.job, self.shards[int(row["index"])], self.out)), "error": ""}
        except UnveilError as error:  # a mistake of the input: no actor would do better
            return {**asdict(Finished("", 0, 0, 0.0)), "error": str(error)}


@contextmanager
def connected(address: str | None, workers: int) -> Iterator[Any]:
    """Ray, connected to the cluster at `address`, or to one of `workers` CPUs that is started for the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine is slow to start it
    try:
        import ray
        import ray.data
    except ImportError:
        raise UnveilError("the engine ray needs Ray: pip install 'unveil[ray]'") from None
    options: dict[str, Any] = {"address": address}
    if address is None:
        options = {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, configure_logging=True, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises plain ones too
        where = "here: try again when the machine is less busy" if address is None else f"at {address}"
        raise UnveilError(f"Ray could not be started {where} ({str(error).splitlines()[0]})") from None
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.verbose_progress = False
    try:
        yield ray
    finally:
        ray.shutdown()


Engine = Callable[[Job, list[Shard], Path, int, str | None], Iterator[Finished]]
ENGINES: dict[str, Engine] = {"local": local, "ray": on_ray}
