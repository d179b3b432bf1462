"""Input that does not fit: rates and memory of `unveil discover`, `predict` and `embed` on shards.

    python -m benchmarks.large make DATA                         # 10,000,000 x 128 rows in 100 parquet shards
    python -m benchmarks.large discover DATA --workers 2         # sample, fit, label all rows
    python -m benchmarks.large predict DATA --engine ray --workers 2 --shards 10
    python -m benchmarks.large embed DATA --images FOLDER --workers 2 --seconds 120

Every command but `make` appends a row to results/large.json. A command that is stopped after `--seconds` goes on where
it stopped when it is given again, and its row says how many shards it did. Rates are those of shards that were finished
after the first of each worker: starting processes and loading the run do not count. `rows_per_cpu_second` is what one
core does, also where the machine has other work.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import cyclopts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from unveil import files, hardware
from unveil.data.items import Items
from unveil.encoders.pretrained import pretrained
from unveil.encoders.stored import CHUNK, pictures
from unveil.settings import Machine

DIMS, CLASSES, KNOWN, NOISE = 128, 20, 10, 2.0
SIDE = 192
"""Of the images in pixels, in all records."""
MEASURED_SHARDS = 10
RECORD = Path("results/large.json")
app = cyclopts.App(help=__doc__)


@app.command
def make(data: Path, *, rows: int = 10_000_000, shards: int = 100, different: int = 100, known: int = 20_000) -> None:
    """Twenty overlapping classes, half of them known; shards hold the novel ones, with the truth beside the vectors.

    Parameters
    ----------
    different
        Shards that are made; the others are links to them. Ids are made of names of shards and numbers of rows, so
        every row has its own.
    """
    draw = np.random.default_rng(0)
    centers = draw.normal(size=(CLASSES, DIMS)).astype(np.float32)

    def vectors(y: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        return centers[y] + NOISE * draw.standard_normal((len(y), DIMS), dtype=np.float32)

    (data / "new").mkdir(parents=True, exist_ok=True)
    y = draw.integers(0, KNOWN, known)
    np.savez(data / "known.npz", X=vectors(y, draw), y=y)
    for shard in range(shards):
        path, draw = data / "new" / f"{shard:04d}.parquet", np.random.default_rng([1, shard])
        if path.exists():
            continue
        if shard >= different:
            path.hardlink_to(data / "new" / f"{shard % different:04d}.parquet")
            continue
        y = draw.integers(KNOWN, CLASSES, rows // shards)
        values = pa.array(vectors(y, draw).ravel())
        columns = {
            "vector": pa.FixedSizeListArray.from_arrays(values, DIMS),
            "truth": pa.array(y.astype(np.int8)),
        }
        pq.write_table(pa.table(columns), path.with_suffix(".part"), compression="none", row_group_size=50_000)
        path.with_suffix(".part").rename(path)


@app.command
def discover(
    data: Path,
    *,
    workers: int = 1,
    method: str = "neighbor-consensus",
    shards: int = 100,
    rows: int | None = None,
    seconds: float = 280.0,
) -> None:
    """`unveil discover KNOWN NEW`: a sample, the fit, and the labels of all rows of the first shards.

    Parameters
    ----------
    rows
        Take so many rows of each shard. Default: all.
    """
    run, new = data / f"run-{method}", _first(data, shards, rows)
    there = run / "record.json"
    command = ["discover", str(data / "known.npz"), str(new), "--n-novel", "10", "--out", str(run)]
    command += ["--method", method]
    begun, fitted = time.time(), there.exists()
    watched = watch([*command, "--store", str(data / "store"), "--workers", str(workers)], run / "labels", seconds)
    row = {"command": "discover", "method": method, "engine": "local", "workers": workers, **watched.row(workers)}
    if not fitted:
        row["fit_seconds"] = round(there.stat().st_mtime - begun, 1)
        row["fit_parts"] = files.read_json(there)["seconds"]
    row["accuracy"] = _accuracy(new, run / "labels")
    _append(row)


@app.command
def predict(
    data: Path,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int = 1,
    method: str = "neighbor-consensus",
    shards: int = 10,
    seconds: float = 280.0,
) -> None:
    """`unveil predict RUN INPUT OUT` on some of the shards, by the run of `discover`."""
    inputs, out = _first(data, shards, None), data / f"labels-{method}-{engine}-{workers}-{shards}"
    command = [
        "predict",
        str(data / f"run-{method}"),
        str(inputs),
        str(out),
        "--engine",
        engine,
        "--workers",
        str(workers),
    ]
    row = watch(command, out, seconds).row(workers)
    _append({"command": "predict", "method": method, "engine": engine, "workers": workers, **row})


@app.command
def embed(
    data: Path,
    *,
    images: Path,
    engine: Literal["local", "ray"] = "local",
    workers: int = 1,
    files_in_all: int = 100_000,
    seconds: float = 120.0,
) -> None:
    """`unveil embed` on the images of a folder, each linked as often as it takes; and the encoder's own rate."""
    inputs, out = data / f"jpeg-{files_in_all}", data / f"vectors-{engine}-{workers}"
    if not inputs.exists():
        sources = sorted(path for path in images.rglob("*") if path.suffix.lower() in (".jpeg", ".jpg"))
        for number in range(files_in_all):
            folder = inputs / f"{number // 1000:04d}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:07d}.jpg").symlink_to(sources[number % len(sources)].resolve())
    command = ["embed", str(inputs), str(out), "--engine", engine, "--workers", str(workers)]
    row = watch(command, out, seconds).row(workers)
    encoder, decoding = _encoder_rates(sorted(inputs.rglob("*.jpg"))[:256])
    row |= {"encoder_alone_per_core": encoder, "decoding_alone_per_core": decoding}
    _append({"command": "embed", "engine": engine, "workers": workers, "files": files_in_all, **row})


def _first(data: Path, shards: int, rows: int | None) -> Path:
    """A folder with the first shards, or with the first rows of each of them."""
    folder = data / f"first-{shards}-{rows or 'all'}"
    folder.mkdir(exist_ok=True)
    for path in sorted((data / "new").glob("*.parquet"))[:shards]:
        if (folder / path.name).exists():
            continue
        if rows is None:
            (folder / path.name).symlink_to(path.resolve())
        else:
            batch = next(pq.ParquetFile(path).iter_batches(batch_size=rows))
            pq.write_table(pa.table(batch), folder / path.name, compression="none")
    return folder


@dataclass
class Watched:
    """What was seen of a command while it ran."""

    seconds: float = 0.0
    finished: list[tuple[float, int]] = field(default_factory=list)
    """Second and rows of each shard that it finished."""
    looks: list[tuple[float, float, float]] = field(default_factory=list)
    """Second, MB and seconds of CPU of the process and all that it has started."""
    complete: bool = False

    def row(self, workers: int) -> dict[str, Any]:
        """For the record."""
        done = sorted(self.finished)
        first, last = (done[workers - 1][0], done[-1][0]) if len(done) > workers else (0.0, 0.0)
        rate = sum(rows for _, rows in done[workers:]) / (last - first) if last > first else None
        looks = [look for look in self.looks if done and first <= look[0] <= last]
        cpu = max(look[2] for look in looks) - looks[0][2] if looks else 0.0  # workers that ended no longer count
        halves = [
            max((mb for second, mb, _ in looks if (second < (first + last) / 2) == early), default=None)
            for early in (True, False)
        ]
        return {
            "seconds": round(self.seconds, 1),
            "complete": self.complete,
            "shards": len(done),
            "rows": sum(rows for _, rows in done),
            "seconds_to_first_shard": round(done[0][0], 1) if done else None,
            "rows_per_second": None if rate is None else round(rate, 1),
            "rows_per_cpu_second": round(sum(rows for _, rows in done[workers:]) / cpu, 1) if cpu else None,
            "cores_used": round(cpu / (last - first), 2) if cpu else None,
            "peak_mb_first_half": halves[0],
            "peak_mb_second_half": halves[1],
        }


def watch(command: list[str], out: Path, limit: float) -> Watched:
    """Run a command of unveil for at most `limit` seconds, and look at it every other second."""
    before = {path.name for path in out.glob("*.parquet")}
    seen, known, begun = Watched(), set(before), time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "unveil", *command], start_new_session=True)
    try:
        while process.poll() is None and time.monotonic() - begun < limit:
            time.sleep(1.5)
            now = time.monotonic() - begun
            seen.looks.append((now, *_usage(process.pid)))
            _note(seen, known, out, now)
        seen.seconds = time.monotonic() - begun
        seen.complete = process.poll() == 0
        if process.poll():
            raise SystemExit(f"{' '.join(command)} failed")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # as a power cut: results that are there are complete
            process.wait()
    _note(seen, known, out, seen.seconds)
    return seen


def _note(seen: Watched, known: set[str], out: Path, now: float) -> None:
    """Enter the shards that were finished since the last look."""
    for path in out.glob("[!.]*.parquet"):
        if path.name not in known:
            known.add(path.name)
            seen.finished.append((now, pq.ParquetFile(path).metadata.num_rows))


def _usage(root: int) -> tuple[float, float]:
    """MB and seconds of CPU of a process and of all that it has started; pages that several share are divided."""
    parents, ticks = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)], ticks[int(folder.name)] = int(words[1]), int(words[11]) + int(words[12])
    total, cpu = 0, 0
    for process in parents:
        above = process
        while above in parents and above != root:
            above = parents[above]
        if above == root:
            try:
                lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            cpu += ticks[process]
    return round(total / 1024, 1), cpu / os.sysconf("SC_CLK_TCK")


def _accuracy(new: Path, labels: Path) -> float | None:
    """Clustering accuracy on the first shards that are labeled."""
    from unveil.metrics import clustering_accuracy

    truth, found, number_of = [], [], dict[str, int]()
    for path in sorted(labels.glob("[!.]*.parquet"))[:MEASURED_SHARDS]:
        truth.append(pq.read_table(new / path.name, columns=["truth"]).column(0).to_numpy())
        column = pq.read_table(path, columns=["label"]).column(0).combine_chunks().dictionary_encode()
        numbers = [number_of.setdefault(name, len(number_of)) for name in column.dictionary.to_pylist()]
        found.append(np.array(numbers)[column.indices.to_numpy()])
    return clustering_accuracy(np.concatenate(truth), np.concatenate(found)) if truth else None


@torch.no_grad()
def _encoder_rates(paths: list[Path]) -> tuple[float, float]:
    """Images a second on one core: of the encoder on tensors in memory, and of reading files alone."""
    torch.set_num_threads(1)
    device, rounds = torch.device("cpu"), 2
    encoder, precision = pretrained("efficientnet-lite0", device), hardware.pick_precision(Machine(), device)
    pieces, begun = Items.of(paths).pieces(CHUNK), time.process_time()
    read = [pictures(piece, SIDE)[0].contiguous(memory_format=torch.channels_last) for piece in pieces]
    decoding = len(paths) / (time.process_time() - begun)
    best = 0.0
    for _ in range(rounds):
        begun = time.process_time()
        with torch.autocast("cpu", precision, enabled=precision != torch.float32):
            for x in read:
                encoder.features(x)
        best = max(best, len(paths) / (time.process_time() - begun))
    return round(best, 1), round(decoding, 1)


def _append(row: dict[str, Any]) -> None:
    """Add a row to the record."""
    machine = hardware.describe(torch.device("cpu"), torch.float32)
    del machine["threads"]
    row |= {"date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": hardware.commit()}
    record = files.read_json(RECORD) if RECORD.exists() else {"dims": DIMS, "classes": CLASSES, "rows": []}
    files.write_json(RECORD, {**record, "machine": machine, "rows": [*record["rows"], row]})
    print(row, flush=True)


if __name__ == "__main__":
    app()
