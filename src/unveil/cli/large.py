"""Commands for input of any size: predict, embed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from unveil.cli.own import print_skipped
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.discovery.sharded import Finished


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Where shards are worked on.

    Parameters
    ----------
    engine
        local: in processes on this machine. ray: on a Ray cluster (pip install 'unveil[ray]').
    workers
        Processes, or actors of Ray, that work at the same time.
    address
        The address of a running Ray cluster, such as ray://head:10001 or auto. Default: one is started here.
    device
        auto, cpu, cuda, cuda:1, mps.
    """

    engine: Literal["local", "ray"] = "local"
    workers: int = 1
    address: str | None = None
    device: str = "auto"

    def check(self) -> None:
        """Raise an error where the options contradict each other."""
        if self.workers < 1:
            raise UnveilError(f"--workers is {self.workers}: give 1 or more")
        if self.address is not None and self.engine != "ray":
            raise UnveilError("--address is that of a Ray cluster: add --engine ray")


WHERE = Where()


def predict(
    run: Path,
    inputs: Path,
    /,
    out: Path | None = None,
    *,
    coverage: float | None = None,
    store: Path | None = None,
    where: Where = WHERE,
) -> None:
    """Label new items by a finished run: a known class, a novel cluster, or neither.

    Parameters
    ----------
    run
        The run directory of `unveil discover` or `unveil run`.
    inputs
        A folder of images or texts, one image, an array or a table, of the kind that the run was made from. With a
        folder as OUT also a folder of array or table files; in a .parquet file the columns `id` and `vector` are read.
    out
        A CSV file; or a folder, for input of any size: it is read in shards, each of which becomes a parquet file with
        id, label, kind and confidence. The same command goes on with the shards that are missing. Default: print CSV.
    coverage
        Label an item `neither` if it lies farther from the training items than this share of them do from each other,
        for example 0.95. Default: never.
    store
        Directory in which embeddings are stored for reuse; not used with a folder as OUT. Default: UNVEIL_STORE, or
        ~/.cache/unveil/stages.
    """
    if coverage is not None and not 0 < coverage <= 1:
        raise UnveilError(f"--coverage is {coverage}: give a share, above 0 and at most 1")
    where.check()
    if out is not None and out.suffix.lower() != ".csv":
        from unveil.discovery.sharded import Labelling, run_job
        from unveil.runs.reader import read_record

        read_record(run)  # an error now, and not in a worker
        job = Labelling(run.resolve(), coverage, where.device)
        done = run_job(job, inputs, out, engine=where.engine, workers=where.workers, address=where.address)
        _print_finished(done, out)
        return
    if where != WHERE:
        raise UnveilError("--engine, --workers, --address and --device are for a folder as OUT: give one")
    from unveil import files
    from unveil.discovery.predict_run import predict_run
    from unveil.storage import default_store

    lines, skipped = predict_run(run, inputs, coverage=coverage, embeddings=store or default_store())
    text = files.sheet_text(["id", "label", "kind", "probability"], lines)
    if out is None:
        print(text, end="")
    else:
        files.write(out, text)
        print(f"written: {out}, {len(lines)} items")
    print_skipped(skipped)


def embed(
    inputs: Path,
    out: Path,
    /,
    *,
    encoder: str = "efficientnet-lite0",
    size: int = 192,
    where: Where = WHERE,
) -> None:
    """Turn images or texts into vectors, for input of any size.

    Parameters
    ----------
    inputs
        A folder of images or texts (.txt), however nested; a table with a column of texts, or a folder of such tables.
    out
        A folder. Each shard of the input becomes a parquet file with id and vector. The same command goes on with the
        shards that are missing.
    encoder
        For images: efficientnet-lite0, gradients, pixels, timm:NAME, transformers:NAME, torchvision:NAME. For texts:
        minilm, sentence-transformers:NAME, transformers:NAME.
    size
        Side in pixels at which the encoder sees images.
    """
    where.check()
    if size < 32:
        raise UnveilError(f"--size is {size}: give 32 or more pixels")
    from unveil.discovery.sharded import Embedder, run_job

    job = Embedder(encoder, size, where.device)
    done = run_job(job, inputs, out, engine=where.engine, workers=where.workers, address=where.address)
    _print_finished(done, out)


def _print_finished(finished: "Sequence[Finished]", out: Path) -> None:
    rows, unreadable = sum(one.rows for one in finished), sum(one.unreadable for one in finished)
    print(f"written: {out}, {rows:,} items in {len(finished):,} shards")
    if unreadable:
        print(f"{unreadable:,} of them could not be read: their rows hold no value")


COMMANDS = (predict, embed)
