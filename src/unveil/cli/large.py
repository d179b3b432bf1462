"""Commands for input of any size: predict, embed."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unveil.cli.own import print_finished, print_skipped
from unveil.cli.where import HERE, Where
from unveil.encoders.registry import listed
from unveil.errors import UnveilError

ENCODERS_HELP = f"For images: {listed('images')}. For texts: {listed('texts')}."


def predict(
    run: Path,
    inputs: Path,
    /,
    out: Path | None = None,
    *,
    coverage: float | None = None,
    store: Path | None = None,
    device: str = "auto",
    where: Where = HERE,
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
    device
        auto, cpu, cuda, cuda:1, mps; with a folder as OUT.
    """
    if coverage is not None and not 0 < coverage <= 1:
        raise UnveilError(f"--coverage is {coverage}: give a share, above 0 and at most 1")
    where.check()
    if out is not None and out.suffix.lower() != ".csv":
        from unveil.own.sharded import Labeling, run_job
        from unveil.runs.reader import read_record

        read_record(run)  # an error now, and not in a worker
        job = Labeling(run.resolve(), coverage, device)
        done = run_job(job, inputs, out, **where.options())
        print_finished(done, out)
        return
    if where != HERE or device != "auto":
        raise UnveilError("--engine, --workers, --address and --device are for a folder as OUT: give one")
    from unveil import files
    from unveil.own.predict_run import predict_run
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
    encoder: Annotated[str, Parameter(help=ENCODERS_HELP)] = "efficientnet-lite",
    size: int | None = None,
    device: str = "auto",
    where: Where = HERE,
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
        The encoder by its name.
    size
        Side in pixels at which the encoder sees images. Default: as suits it for large images.
    device
        auto, cpu, cuda, cuda:1, mps.
    """
    where.check()
    if size is not None and size < 32:
        raise UnveilError(f"--size is {size}: give 32 or more pixels")
    from unveil.own.sharded import Embedder, run_job

    job = Embedder(encoder, size, device)
    done = run_job(job, inputs, out, **where.options())
    print_finished(done, out)


COMMANDS = (predict, embed)
