"""Files with flipped bits, or cut off: of finished runs, of interrupted ones, of the store, of a review."""

import random
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .kills import reference, scratch
from .outcomes import Outcomes
from .processes import Command, Fault
from .scenes import commands, half_written, result

UNREAD = {".lock", "truth.csv", "file-hashes.txt"}
"""Files that hold nothing, that people may write themselves, and an index that is only there to save time."""


def damaged(content: bytes, draw: random.Random, flips: int) -> Iterator[tuple[str, bytes]]:
    """The file with one flipped bit in some places, and cut to lengths of every class."""
    for place in sorted(draw.sample(range(8 * len(content)), min(flips, 8 * len(content)))):
        copy = bytearray(content)
        copy[place // 8] ^= 1 << place % 8
        yield f"bit {place}", bytes(copy)
    lengths = {0, 1, len(content) // 2, len(content) - 1, len(content) // 4096 * 4096}
    for length in sorted(length for length in lengths if 0 <= length < len(content)):
        yield f"cut to {length}", content[:length]


def damages(outcomes: Outcomes, flips: int, seed: int, *, most: int = 4, every: int = 1) -> None:
    """Damage every file of every run and of its store, and use it again; or of the first runs, with `every` so many-th
    damage of files that another process has to read."""
    draw = random.Random(seed)
    with scratch() as folder:
        for command in commands(folder, most):
            original = folder / f"{command.name}-reference"
            expected, _, changes = reference(command, original)
            _finished(outcomes, original / "run", draw, flips)
            _store(outcomes, command, original, expected, draw, flips, every)
            checkpoints = [number for number, change in enumerate(changes, 1) if "run/.checkpoint" in change]
            stopped = folder / f"{command.name}-stopped"
            command.finish(stopped, Fault(kill_at=checkpoints[len(checkpoints) // 2]))
            _interrupted(outcomes, command, stopped, expected, draw, flips, every)


def _files(folder: Path) -> list[Path]:
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in UNREAD]
    return [path for path in found if not path.name.endswith(".part")]


def _finished(outcomes: Outcomes, run: Path, draw: random.Random, flips: int) -> None:
    """Damage a file of a finished run, and read everything that report, review, export, predict and continue read."""
    contents = _use(run)
    for path in _files(run):
        original = path.read_bytes()
        for how, content in damaged(original, draw, flips):
            path.write_bytes(content)
            outcomes.add("damaged file of a run", *_read_again(run, path, how, contents))
        path.write_bytes(original)


def _read_again(run: Path, path: Path, how: str, contents: list[Any]) -> tuple[str, str]:
    from unveil.errors import UnveilError

    case = f"{path.name} {how}"
    try:
        return "read" if _use(run) == contents else "silently wrong", case
    except UnveilError as error:
        return "refused" if path.name in str(error) else "lost", f"{case}: {error}"
    except Exception as error:
        return "traceback", f"{case}: {type(error).__name__}: {error}"


def _store(
    outcomes: Outcomes, command: Command, original: Path, expected: Any, draw: random.Random, flips: int, every: int
) -> None:
    """Damage a file of the store, and make the same run again with it."""
    place = original.with_name("damaged")
    for path, how, content in _cases(original / "store", draw, flips, every):
        shutil.copytree(original / "store", place / "store")
        (place / path.relative_to(original)).write_bytes(content)
        outcomes.add("damaged file of the store", *_again(command, place, expected, f"{path.name} {how}"))
        shutil.rmtree(place)


def _interrupted(
    outcomes: Outcomes, command: Command, stopped: Path, expected: Any, draw: random.Random, flips: int, every: int
) -> None:
    """Damage a file of an interrupted run, and go on with it."""
    place = stopped.with_name("damaged")
    for path, how, content in _cases(stopped / "run", draw, flips, every):
        shutil.copytree(stopped, place)
        (place / path.relative_to(stopped)).write_bytes(content)
        outcomes.add("damaged file of an interrupted run", *_again(command, place, expected, f"{path.name} {how}"))
        shutil.rmtree(place)


def _cases(folder: Path, draw: random.Random, flips: int, every: int) -> Iterator[tuple[Path, str, bytes]]:
    """(file, what is done to it, its new content)"""
    cases = ((path, *case) for path in _files(folder) for case in damaged(path.read_bytes(), draw, flips))
    return islice(cases, 0, None, every)


def _again(command: Command, place: Path, expected: Any, case: str) -> tuple[str, str]:
    """Give the command again; a refusal must name the file."""
    code, messages = command.finish(place)
    if "Traceback" in messages or code not in (0, 2):
        return "traceback", f"{case}: {messages[-700:]}"
    if code == 2:
        is_named = case.split()[0] in messages or str(place / "run") in messages
        return "refused" if is_named else "lost", f"{case}: {messages[-300:]}"
    if result(place) != expected:
        return "silently wrong", case
    if left := half_written(place):
        return ("made again", case) if all("damaged" in path.name for path in left) else ("silently wrong", str(left))
    return "made again" if "damaged" in messages else "read", case


def reviews_damaged(outcomes: Outcomes, count: int, seed: int) -> None:
    """Damage the log of a review: a line that has changed or is missing must be told."""
    from review_runs import write_run

    from .kills import review

    draw = random.Random(seed)
    with scratch() as folder:
        run = write_run(folder / "run")
        review(str(run), str(folder / "answered"), 2)
        from unveil.review.decisions import corrected_items

        contents = corrected_items(run)
        for path in (run / "review.jsonl", run / "review.last"):
            original = path.read_bytes()
            lines = original.splitlines(keepends=True)
            without = [(f"without line {n}", b"".join(lines[:n] + lines[n + 1 :])) for n in range(len(lines))]
            for how, content in [*damaged(original, draw, count), *without]:
                path.write_bytes(content)
                outcomes.add("damaged review", *_review_again(run, path, how, contents))
            path.write_bytes(original)


def _review_again(run: Path, path: Path, how: str, contents: Any) -> tuple[str, str]:
    from unveil.errors import UnveilError
    from unveil.review.decisions import corrected_items

    case = f"{path.name} {how}"
    try:
        return "read" if corrected_items(run) == contents else "silently wrong", case
    except UnveilError as error:
        return "refused" if "review" in str(error) else "lost", f"{case}: {error}"
    except Exception as error:
        return "traceback", f"{case}: {type(error).__name__}: {error}"


def _use(run: Path) -> list[Any]:
    """Everything that report, review, export, predict and continue read."""
    from unveil import checksums, recipe
    from unveil.discovery.predictor import Predictor
    from unveil.review.decisions import corrected_items
    from unveil.runs.reader import check_files, load

    checksums._VERIFIED.clear()  # as a new process would
    check_files(run)
    read = load(run)
    predictor = Predictor.load(run, device="cpu")
    values: list[Any] = [read.ids, read.classes, read.labels.tolist(), read.confidence.tolist(), read.kmeans.tolist()]
    values += [np.asarray(read.features).tobytes(), read.history, read.record["summary"], corrected_items(run)]
    for array in (read.pictures, read.inputs):
        values.append(None if array is None else np.asarray(array).tobytes())
    return [*values, recipe.read(run / "config.toml"), predictor.n_known, predictor.n_novel]
