"""Faults on purpose: killed processes, damaged files, full disks and fuzzed readers, and what became of each.

    python -m tests.faults [--kills 100] [--damages 200] [--disks 18] [--inputs 20000] [--out results/faults.json]

Outcomes that are promised: `exact` (the same bytes as without the fault), `made again` (told, set aside, and the same
bytes), `refused` (a message that names the file) and `read` (a value that is not affected). Never: `lost`,
`silently wrong`, `traceback`. The short form runs in tests/test_faults.py; docs/reliability.md shows the record.
"""

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

NEVER = ("lost", "silently wrong", "traceback")
DIGITS = [
    *("data.per_class=12", "encoder.name=compact", "encoder.width=8", "encoder.space_to_depth=1"),
    *("encoder.strides=[1, 2, 2, 1]", "rotation.epochs=1", "rotation.batch=32", "rotation.rotations=one"),
    *("supervised.epochs=1", "discovery.epochs=3", "discovery.batch=32", "method.queue=50", "method.k_easy=10"),
    *("method.k_hard=10", "machine.cache_views=1", "machine.checkpoint_seconds=0", "machine.precision=float32"),
]
ARRAYS = ["--method", "ncl-hng", "--n-novel", "2", "--rehearsals", "0", "--set", "discovery.steps=30"]


@dataclass
class Outcomes:
    """How often each outcome occurred, and the first cases of those that never may."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)

    def add(self, fault: str, outcome: str, case: str = "") -> None:
        self.counts.setdefault(fault, Counter())[outcome] += 1
        if outcome in NEVER:
            self.bad.append(f"{fault}: {outcome}: {case}")


@dataclass(frozen=True)
class Command:
    """A command line that makes a run in a folder of its own, and is given again to go on."""

    name: str
    arguments: list[str]
    again: list[str] = field(default_factory=list)
    """Arguments to add the second time."""

    def start(self, folder: Path, *, again: bool) -> subprocess.Popen[str]:
        environment = {**os.environ, "UNVEIL_STORE": str(folder / "store"), "OMP_NUM_THREADS": "1"}
        extra = self.again if again else []
        return subprocess.Popen(
            [sys.executable, "-m", "unveil", *self.arguments, "--out", str(folder / "run"), *extra],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, folder: Path, *, again: bool) -> tuple[int, str]:
        process = self.start(folder, again=again)
        _, errors = process.communicate(timeout=900)
        return process.returncode, errors


def commands(folder: Path) -> list[Command]:
    """Digits by recipe (stages, cache, queues, hard negatives), and arrays."""
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 20)
    x = (draw.normal(size=(5, 8))[y] * 6 + draw.normal(size=(100, 8))).astype(np.float32)
    np.savez(folder / "known.npz", X=x[:60], y=y[:60])
    np.save(folder / "new.npy", x[60:])
    digits = [argument for override in DIGITS for argument in ("--set", override)]
    return [
        Command("digits", ["run", "digits", *digits], ["--resume"]),
        Command("arrays", ["discover", str(folder / "known.npz"), str(folder / "new.npy"), *ARRAYS]),
    ]


def result(folder: Path) -> tuple[bytes, list[dict[str, Any]]] | None:
    """What must not change: the predictions, and the metrics without times; None where there is no finished run."""
    run = folder / "run"
    if not (run / "record.json").exists():
        return None
    lines = (run / "metrics.jsonl").read_text().splitlines() if (run / "metrics.jsonl").exists() else []
    metrics = [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]
    return (run / "predictions.csv").read_bytes(), metrics


def leftovers(folder: Path) -> list[Path]:
    return list((folder / "run").glob(".*.part"))


def after_fault(command: Command, folder: Path, expected: Any, *, fine: str) -> tuple[str, str]:
    """Give the command again, and judge what it makes of what the fault has left."""
    code, errors = command.finish(folder, again=(folder / "run" / "config.toml").exists())
    if "Traceback" in errors:
        return "traceback", errors[-500:]
    if code != 0:
        return "lost", errors[-500:]
    if result(folder) != expected or leftovers(folder):
        return "silently wrong", str(folder)
    return fine, ""


def kills(outcomes: Outcomes, count: int, seed: int, *, times: int = 1) -> None:
    """Kill a command at random moments of its life, `times` in a row, and finish it."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        for command in commands(Path(scratch)):
            reference = Path(scratch) / f"{command.name}-reference"
            begun = time.monotonic()
            code, errors = command.finish(reference, again=False)
            assert code == 0, errors
            length = time.monotonic() - begun
            for number in range(count):
                folder = Path(scratch) / f"{command.name}-{number}"
                for _ in range(times):
                    process = command.start(folder, again=(folder / "run" / "config.toml").exists())
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(draw.uniform(0, length))
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                outcome = after_fault(command, folder, result(reference), fine="exact")
                outcomes.add(f"killed, {command.name}", *outcome)
                shutil.rmtree(folder, ignore_errors=True)


def full_disks(outcomes: Outcomes, count: int, seed: int) -> None:
    """Run on a small disk that is full at some write, then on one with room. Needs the right to mount."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        command = commands(Path(scratch))[0]
        reference = Path(scratch) / "reference"
        command.finish(reference, again=False)
        size = sum(path.stat().st_size for path in reference.rglob("*") if path.is_file())
        for number in range(count):
            folder = Path(scratch) / f"disk-{number}"
            folder.mkdir()
            room = int(size * draw.uniform(0.01, 0.95)) // 4096 * 4096 + 8192
            mounted = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(folder)], capture_output=True
            )
            if mounted.returncode:
                outcomes.add("full disk", "not tried")
                return
            try:
                code, errors = command.finish(folder, again=False)
                if "Traceback" in errors or code == 0:
                    outcomes.add("full disk", "traceback" if code else "exact", errors[-500:])
                    continue
                subprocess.run(["mount", "-o", "remount,size=1g", str(folder)], check=True)
                outcomes.add("full disk", *after_fault(command, folder, result(reference), fine="exact"))
            finally:
                subprocess.run(["umount", str(folder)], check=False)


def damaged(content: bytes, draw: random.Random) -> tuple[str, bytes]:
    """A file with one flipped bit, or cut off."""
    if draw.random() < 0.6 and content:
        place, copy = draw.randrange(8 * len(content)), bytearray(content)
        copy[place // 8] ^= 1 << place % 8
        return f"bit {place}", bytes(copy)
    length = draw.choice([0, 1, len(content) // 2, max(0, len(content) - 1), draw.randrange(len(content) + 1)])
    return f"cut to {length}", content[:length]


def damages(outcomes: Outcomes, count: int, seed: int) -> None:
    """Damage a file of a finished run or of the store, and use it again."""
    import torch
    from rich.console import Console

    from unveil import recipe
    from unveil.discovery.run import run_recipe
    from unveil.errors import UnveilError

    torch.set_num_threads(1)
    draw, quiet = random.Random(seed), Console(quiet=True)
    settings = recipe.load("digits", DIGITS)
    with tempfile.TemporaryDirectory() as scratch:
        original, folder = Path(scratch) / "original", Path(scratch) / "copy"
        run_recipe(settings, out=original / "run", stages=original / "store", console=quiet)
        expected, contents = result(original), _use(original / "run")
        skipped = {".lock", "truth.csv", "file-hashes.txt"}
        names = [path.relative_to(original) for path in sorted(original.rglob("*")) if path.is_file()]
        names = [name for name in names if name.name not in skipped]
        for number in range(count):
            name = names[number % len(names)]
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(original, folder)
            how, content = damaged((folder / name).read_bytes(), draw)
            (folder / name).write_bytes(content)
            case, in_run = f"{name} {how}", name.parts[0] == "run"
            try:
                if in_run:
                    outcome = "read" if _use(folder / "run") == contents else "silently wrong"
                    outcomes.add("damaged file of a run", outcome, case)
                    continue
                shutil.rmtree(folder / "run")
                run_recipe(settings, out=folder / "run", stages=folder / "store", console=quiet)
                outcome = "made again" if result(folder) == expected else "silently wrong"
            except UnveilError as error:
                outcome = "refused" if name.name in str(error) else "lost"
            except Exception as error:
                outcome, case = "traceback", f"{case}: {type(error).__name__}: {error}"
            outcomes.add("damaged file of a run" if in_run else "damaged file of the store", outcome, case)


def _use(run: Path) -> list[Any]:
    """Everything that report, review, export, predict and continue read."""
    from unveil import recipe
    from unveil.discovery.predictor import Predictor
    from unveil.runs.decisions import corrected_items
    from unveil.runs.reader import check_files, load

    check_files(run)
    read = load(run)
    predictor = Predictor.load(run, device="cpu")
    values: list[Any] = [read.ids, read.classes, read.labels.tolist(), read.confidence.tolist(), read.kmeans.tolist()]
    values += [np.asarray(read.features).tobytes(), read.history, read.record["summary"], corrected_items(run)]
    pictures = None if read.pictures is None else np.asarray(read.pictures).tobytes()
    return [*values, pictures, recipe.read(run / "config.toml"), predictor.n_known, predictor.n_novel]


def fuzzed(samples: list[bytes], draw: random.Random) -> bytes:
    """A sample with flipped bits, foreign bytes, and pieces that are missing, doubled or of another sample."""
    copy = bytearray(draw.choice(samples))
    for _ in range(draw.randrange(1, 6)):
        place = int(len(copy) * draw.random() ** 2)
        match draw.randrange(5):
            case 0 if place < len(copy):
                copy[place] ^= 1 << draw.randrange(8)
            case 1 if place < len(copy):
                copy[place] = draw.choice(b"()[]{}'\"\\\n\x00\xff9,:=-eOLV.")
            case 2:
                del copy[place : place + draw.randrange(1, 20)]
            case 3:
                copy[place:place] = copy[place : place + draw.randrange(1, 20)]
            case _:
                other = draw.choice(samples)
                start = draw.randrange(len(other) + 1)
                copy[place : place + 4] = other[start : start + draw.randrange(1, 40)]
    return bytes(copy)


def readers(folder: Path) -> Iterator[tuple[str, list[bytes], Callable[[Path], object], str]]:
    """(name, samples, the reader of a file, the name of the file)"""
    import pickle

    from PIL import Image

    from unveil import recipe
    from unveil.data.arrays import read_array, read_unlabelled
    from unveil.data.folders import read_omniglot
    from unveil.data.pictures import read_image
    from unveil.data.readers import load_cifar_pickle, read_idx
    from unveil.data.sheets import Columns, read_labelled
    from unveil.models.model import Model
    from unveil.runs.review_log import Entry, parse_entries

    def saved(write: Callable[[Path], object], name: str) -> bytes:
        write(folder / name)
        return (folder / name).read_bytes()

    x = np.arange(12, dtype=np.float64).reshape(4, 3)
    y = np.array(["a", "b", "a", "c"])
    npys = [saved(lambda p, a=a: np.save(p, a), "a.npy") for a in (x, x.astype("f4"), np.zeros((2, 4, 4, 3), "u1"), y)]  # type: ignore[misc]
    yield "npy", npys, read_unlabelled, "a.npy"
    npzs = [saved(lambda p, save=save: save(p, X=x, y=y), "a.npz") for save in (np.savez, np.savez_compressed)]  # type: ignore[misc]
    yield "npz", npzs, read_array, "a.npz"
    csvs = [b"id,label,a,b\nx,1,0.5,1e3\ny,2,-1,0\n", 'class,"a,b"\n"q""",3\n'.encode("utf-8-sig")]
    yield "csv", csvs, lambda path: read_labelled(path, Columns()), "a.csv"
    idx = bytes((0, 0, 8, 1)) + (5).to_bytes(4, "big") + bytes(5)
    yield "idx", [idx], lambda path: read_idx(path, 1), "idx"
    record = {"data": np.zeros((2, 12), np.uint8), b"labels": [1, 2], "names": ["a", b"b"]}
    yield "pickle", [pickle.dumps(record, protocol) for protocol in range(6)], load_cifar_pickle, "batch"
    picture = Image.fromarray(np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3))
    kinds = ("png", "jpeg", "bmp", "tiff", "webp", "gif")
    images = [saved(lambda p, kind=kind: picture.save(p, format=kind), "a.png") for kind in kinds]  # type: ignore[misc]
    yield "image", images, read_image, "a.png"
    recipes = [recipe.dump(recipe.load(name)).encode() for name in ("digits", "vectors")]
    yield "recipe", recipes, recipe.read, "a.toml"
    entries = [Entry(number=1, time="t", kind="name", data={"cluster": 2, "text": "é"}).chained("")]
    entries.append(Entry(number=2, time="t", kind="undo", data={}).chained(entries[0].sum))
    log = b"".join(entry.line() for entry in entries)
    yield "review log", [log], lambda path: parse_entries(path.read_bytes(), path), "review.jsonl"
    model = _small_model()
    yield "model", [saved(model.save, "a.safetensors")], Model.load, "a.safetensors"
    yield "omniglot", npzs, read_omniglot, "a.npz"


def _small_model() -> Any:
    import torch

    from unveil import rng
    from unveil import settings as s
    from unveil.models import build_encoder
    from unveil.models.heads import linear_head
    from unveil.models.model import Model

    draw = rng.generator(0, "faults")
    encoder = build_encoder(s.Encoder(name="mlp", width=4), (3,), draw)
    return Model(encoder, linear_head(encoder.dim, 2, draw), linear_head(encoder.dim, 2, draw), torch.float32)


def fuzz(outcomes: Outcomes, count: int, seed: int) -> None:
    """Give each reader so many inputs: every outcome is a value or an UnveilError."""
    from unveil.errors import UnveilError

    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, samples, read, file in readers(Path(scratch)):
            path = Path(scratch) / file
            for _ in range(count):
                path.write_bytes(fuzzed(samples, draw))
                try:
                    read(path)
                    outcomes.add(f"fuzzed {name}", "read")
                except UnveilError:
                    outcomes.add(f"fuzzed {name}", "refused")
                except Exception as error:
                    outcomes.add(f"fuzzed {name}", "traceback", f"{type(error).__name__}: {error}"[:300])


def main() -> int:
    """The long form; returns how many outcomes there were that never may be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("kills", 100), ("damages", 200), ("disks", 18), ("inputs", 20_000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    outcomes, begun = Outcomes(), time.monotonic()
    for what, run in (
        ("inputs", lambda: fuzz(outcomes, options.inputs, options.seed)),
        ("damages", lambda: damages(outcomes, options.damages, options.seed)),
        ("kills", lambda: kills(outcomes, options.kills, options.seed)),
        ("kills", lambda: kills(outcomes, options.kills // 10, options.seed + 1, times=2)),
        ("disks", lambda: full_disks(outcomes, options.disks, options.seed)),
    ):
        if getattr(options, what):
            run()
    record = {
        "outcomes": {fault: dict(counts) for fault, counts in outcomes.counts.items()},
        "bad": outcomes.bad[:50],
        "seed": options.seed,
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "python": platform.python_version(),
    }
    print(json.dumps(record, indent=2))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=2) + "\n")
    return len(outcomes.bad)


if __name__ == "__main__":
    sys.exit(min(1, main()))
