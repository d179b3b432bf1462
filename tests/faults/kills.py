"""Processes that are killed: at any moment, before any change of a file, twice in a row, side by side."""

import itertools
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .outcomes import Outcomes
from .processes import FORKS, Command, Fault, start_server
from .scenes import commands, half_written, judged, result

MEMORY = Path("/dev/shm")


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: a killed process leaves the same files there, and they cost no time."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def reference(command: Command, folder: Path) -> tuple[Any, float, list[str]]:
    """Result, seconds of a processor and changes of files of an undisturbed run."""
    journal = folder.parent / f"{folder.name}.journal"
    code, messages = command.finish(folder, Fault(journal=journal))
    assert code == 0, messages
    seconds = float(messages.rpartition("seconds of a processor: ")[2])
    return result(folder), seconds, journal.read_text().splitlines()


def kills(outcomes: Outcomes, count: int, seed: int, *, times: int = 1, every: bool = True) -> None:
    """Kill each command `count` times at a random moment of its life, `times` in a row, and give it again."""
    draw = random.Random(seed)
    with scratch() as folder:
        for command in commands(folder, 4 if every else 1):
            expected, seconds, _ = reference(command, folder / f"{command.name}-reference")
            for number in range(count):
                place = folder / f"{command.name}-{number}"
                for _ in range(times):
                    command.start(place).kill_after(draw.uniform(0, seconds))
                how = "killed" if times == 1 else "killed twice in a row"
                outcomes.add(f"{how}, {command.name}", *judged(command, place, expected))
                shutil.rmtree(place)


def kills_at_changes(outcomes: Outcomes, most: int) -> Counter[str]:
    """Kill each command just before it changes a file, at up to `most` of its changes; returns them by file."""
    killed: Counter[str] = Counter()
    with scratch() as folder:
        for command in commands(folder):
            expected, _, changes = reference(command, folder / f"{command.name}-reference")
            for number in chosen(changes, most):
                place = folder / f"{command.name}-{number}"
                code, messages = command.finish(place, Fault(kill_at=number))
                assert code == -signal.SIGKILL, messages
                killed[named(changes[number - 1])] += 1
                outcomes.add(f"killed before a change of a file, {command.name}", *judged(command, place, expected))
                shutil.rmtree(place)
    return killed


def chosen(changes: list[str], most: int) -> list[int]:
    """Numbers of changes, counted from 1: the first of each kind of each file, then others spread over the run.
    Empty ones are left out."""
    numbers = {number: named(change) for number, change in enumerate(changes, start=1) if change}
    first = {kind: number for number, kind in reversed(numbers.items())}
    others = [number for number in numbers if number not in first.values()]
    room = most - len(first)
    picked = sorted(first.values()) if room <= 0 else [*first.values(), *others[:: max(1, -(-len(others) // room))]]
    return sorted(picked[:: max(1, -(-len(picked) // most))])


def named(change: str) -> str:
    """What is changed: the kind of change and the file, without the number of the process and hashes of folders."""
    event, _, path = change.partition(" ")
    folder, _, name = path.rpartition("/")
    plain = name.strip(".").removesuffix(".part").rstrip("0123456789").strip(".") if name.endswith(".part") else name
    where = "store" if folder.startswith("/store") or path == "/store" else "run"
    return f"{event} {where}/{'stage' if where == 'store' and len(plain) == 20 and '.' not in plain else plain}"


def side_by_side(outcomes: Outcomes, count: int, seed: int, *, most: int = 4) -> None:
    """Two processes on one run directory, on one store and cache; in every other case one of them is killed."""
    draw = random.Random(seed)
    with scratch() as folder:
        for command in commands(folder, most):
            expected, seconds, _ = reference(command, folder / f"{command.name}-reference")
            for number in range(count):
                same = Command(command.name, command.arguments, command.again)
                other = Command(command.name, command.arguments, command.again, out="other")
                for what, second in (("run directory", same), ("store", other)):
                    place = folder / f"{command.name}-{number}-{what}"
                    processes = [command.start(place), second.start(place)]
                    if number % 2:
                        processes[0].kill_after(draw.uniform(0, seconds))
                    ends = [process.wait() for process in processes]
                    outcomes.add(f"two processes, one {what}", *_both(command, place, expected, ends, what))
                    shutil.rmtree(place)


def _both(command: Command, place: Path, expected: Any, ends: list[tuple[int, str]], what: str) -> tuple[str, str]:
    for code, messages in ends:
        refused = code == 2 and ("another process is working" in messages or "already holds this run" in messages)
        if "Traceback" in messages:
            return "traceback", messages[-700:]
        if code not in (0, -signal.SIGKILL) and not (refused and what == "run directory"):
            return "lost", messages[-700:]
    if what == "store":
        moved = place / "run", place / "kept"
        if (outcome := judged(command, place, expected))[0] != "exact":
            return outcome
        moved[0].rename(moved[1])
        (place / "other").rename(place / "run")
        if result(place) != expected or half_written(place):
            return "silently wrong", "the second of two processes on one store"
        return "exact", ""
    return judged(command, place, expected)


def reviews(outcomes: Outcomes, count: int, seed: int) -> None:
    """Kill a reviewing process at random moments; what was answered must be there, and the rest can be done again."""
    from review_runs import write_run

    from unveil.review.decisions import corrected_items

    draw = random.Random(seed)
    start_server()
    with scratch() as folder:
        run = write_run(folder / "run")
        review(str(run), str(folder / "answered"), 4)
        expected = corrected_items(run)
        for number in range(count):
            place = Path(shutil.copytree(run, folder / f"run-{number}"))
            for name in ("review.jsonl", "review.last"):
                (place / name).unlink()
            answered = folder / f"answered-{number}"
            answered.write_text("")
            process = FORKS.Process(target=review, args=(str(place), str(answered), 4))
            process.start()
            process.join(draw.uniform(0, 0.25))
            if process.exitcode is None and process.pid is not None:
                os.kill(process.pid, signal.SIGKILL)
            process.join()
            outcomes.add("killed while reviewing", *_judged_review(place, answered, expected))


def review(run: str, answered: str, rounds: int) -> None:
    """Do all actions that are not done yet, and note each one that was answered."""
    from unveil.errors import UnveilError
    from unveil.pages.review.log import Log
    from unveil.runs.reader import load

    log = Log(load(Path(run)))
    done = log.state.length
    for kind, data in itertools.islice(_actions(), done, 7 * rounds):
        try:
            log.act(kind, data, log.state.length)
        except UnveilError:
            break
        with Path(answered).open("a") as file:
            file.write(f"{log.state.length}\n")


def _actions() -> Iterator[tuple[str, dict[str, Any]]]:
    """What a reviewer does, without end; always possible, one after the other."""
    for turn in itertools.count():
        yield "name", {"cluster": 2, "text": f"fox {turn}"}
        yield "reject", {"rows": [30 + turn, 45 + turn]}
        yield "undo", {}
        yield "redo", {}
        yield "restore", {"rows": [30 + turn]}
        yield "move", {"rows": [50 + turn], "to": None, "text": f"hare {turn}"}
        yield "accept", {"cluster": 3, "reviewed": turn % 2 == 0}


def _judged_review(run: Path, answered: Path, expected: Any) -> tuple[str, str]:
    from unveil.errors import UnveilError
    from unveil.review.corrections import current_state
    from unveil.review.decisions import corrected_items
    from unveil.runs.reader import load

    lines = [line for line in answered.read_text().splitlines(keepends=True) if line.endswith("\n")]
    promised = int(lines[-1]) if lines else 0
    try:
        if current_state(load(run)).length < promised:
            return "lost", f"answer {promised}"
        review(str(run), str(answered), 4)
        outcome = "exact" if corrected_items(run) == expected else "silently wrong"
    except UnveilError as error:
        return "lost", str(error)
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"
    return outcome, str(run)
