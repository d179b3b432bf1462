"""Disks that are full or read-only, and clocks that go backwards. Needs the right to mount; else nothing is tried."""

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .kills import chosen, reference, scratch
from .outcomes import Outcomes
from .processes import Command, Fault
from .scenes import commands, half_written, judged

ROOM = "2g"
"""More than the trunk cache leaves free."""


@contextmanager
def small_disk(folder: Path, size: int | str) -> Iterator[bool]:
    """A disk of its own at `folder`; False where nobody may mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(["mount", *options], capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def full_disks(outcomes: Outcomes, count: int, *, most: int = 4) -> Counter[str]:
    """Fill the disk just before a file is written, at up to `count` writes of each command, and make room again;
    returns the files that could not be written."""
    failed: Counter[str] = Counter()
    with scratch() as folder:
        for command in commands(folder, most):
            expected, _, changes = reference(command, folder / f"{command.name}-reference")
            opened = [change if change.startswith("open") else "" for change in changes]
            for number in chosen(opened, count):
                with small_disk(folder / "disk", ROOM) as mounted:
                    if not mounted:
                        outcomes.add("full disk", "not tried")
                        return failed
                    outcome, file = _full(command, folder / "disk", number, expected)
                    outcomes.add("full disk", *outcome)
                    failed[file] += 1
    return failed


def _full(command: Command, disk: Path, number: int, expected: Any) -> tuple[tuple[str, str], str]:
    """Outcome, and the file that could not be written."""
    fault = Fault(messages=disk.parent, fill_at=number)
    code, messages = command.finish(disk, fault)
    if "Traceback" in messages or code not in (0, 2):
        return ("traceback", f"{code} {messages[-700:]}"), ""
    if code == 2 and "disk is full" not in messages:
        return ("lost", f"no word about the disk: {messages[-500:]}"), ""
    if left := [path for path in half_written(disk) if path.suffix == ".part"]:
        return ("silently wrong", f"left {left}"), ""
    match = re.search(r"the disk is full: (\S+) could not", messages)
    remount(disk, f"size={ROOM}")
    outcome = judged(command, disk, expected, fault=Fault(messages=disk.parent))
    return outcome, "" if match is None else Path(match[1]).name


def read_only(outcomes: Outcomes, *, most: int = 4) -> None:
    """Directories that nobody may write to: refused with a word, and exact when they may be written again."""
    with scratch() as folder:
        for command in commands(folder, most):
            expected, _, _ = reference(command, folder / f"{command.name}-reference")
            for name in ("run", "store"):
                place = folder / f"{command.name}-{name}"
                with small_disk(place / name, ROOM) as mounted:
                    if not mounted:
                        outcomes.add("read-only directory", "not tried")
                        return
                    remount(place / name, "ro")
                    code, messages = command.finish(place)
                    if "Traceback" in messages or code != 2 or str(place / name) not in messages:
                        outcomes.add("read-only directory", "traceback", f"{code} {messages[-700:]}")
                        continue
                    outcomes.add("read-only directory", "refused")
                    remount(place / name, "rw")
                    outcomes.add("read-only directory, then writable", *judged(command, place, expected))


def clocks(outcomes: Outcomes, count: int, *, most: int = 4) -> None:
    """The clock goes backwards while a command runs, and between two runs of it: its files are of the future then."""
    with scratch() as folder:
        for command in commands(folder, most):
            expected, seconds, _ = reference(command, folder / f"{command.name}-reference")
            for number in range(count):
                place = folder / f"{command.name}-{number}"
                command.start(place, Fault(clock_back=True)).kill_after(seconds * (number + 1) / (count + 1))
                later = time.time() + 86_400
                for path in place.rglob("*"):
                    os.utime(path, (later, later))
                outcome = judged(command, place, expected, fault=Fault(clock_back=number % 2 == 0))
                outcomes.add("clock goes backwards", *outcome)
                shutil.rmtree(place)
