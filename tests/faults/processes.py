"""Commands in processes that can be killed. Each is forked from one that has imported everything: it starts at once."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

FORKS = multiprocessing.get_context("forkserver")
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
"""What Python reports before it changes a file system, beside the opening of files."""
WAIT = 600
"""Seconds after which a process counts as one that hangs."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to a process from the inside."""

    kill_at: int = 0
    """It is killed just before its change of that number; 0: never."""
    fill_at: int = 0
    """All room on its disk is taken just before its change of that number; 0: never."""
    journal: Path | None = None
    """A file to which the names of all changed files are written."""
    messages: Path | None = None
    """Where its messages go; None: to its own folder."""
    clock_back: bool = False
    """Its clock goes backwards, an hour with every look."""


NOTHING = Fault()


@dataclass(frozen=True)
class Command:
    """A command line that makes a run in a folder of its own, and is given again to go on."""

    name: str
    arguments: Sequence[str]
    again: Sequence[str] = ()
    """Arguments to add the second time."""
    out: str = "run"
    store: str = "store"
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, folder: Path, fault: Fault = NOTHING) -> "Process":
        folder.mkdir(parents=True, exist_ok=True)
        again = self.again if (folder / self.out / "config.toml").exists() else ()
        arguments = [*self.arguments, "--out", str(folder / self.out), *again]
        return Process(folder, arguments, {"UNVEIL_STORE": str(folder / self.store), **self.environment}, fault)

    def finish(self, folder: Path, fault: Fault = NOTHING) -> tuple[int, str]:
        """Exit code and messages."""
        return self.start(folder, fault).wait()


class Process:
    """A command line that runs in a process of its own."""

    def __init__(self, folder: Path, arguments: list[str], environment: Mapping[str, str], fault: Fault) -> None:
        place = fault.messages or folder
        self.messages = place / f"messages-{len(list(place.glob('messages-*')))}"
        self.messages.write_text("")
        start_server()
        self._process: ForkServerProcess = FORKS.Process(
            target=_run, args=(arguments, dict(environment), str(self.messages), str(folder), fault)
        )
        self._process.start()

    def kill_after(self, seconds: float) -> None:
        """Kill it when it has used so many seconds of a processor; load on the machine changes nothing."""
        while self._process.exitcode is None and self.used() < seconds:
            self._process.join(0.005)
        self.kill()

    def is_running(self) -> bool:
        return self._process.exitcode is None

    def interrupt(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGINT)

    def kill(self) -> None:
        if self._process.exitcode is None and self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()

    def used(self) -> float:
        """Seconds of a processor that it has used so far."""
        assert self._process.pid is not None
        try:
            return time.clock_gettime((~self._process.pid << 3) | 2)  # its own clock, see clock_getcpuclockid(3)
        except OSError:
            return 0.0  # it has just ended

    def wait(self) -> tuple[int, str]:
        """Exit code and messages; one that hangs is killed."""
        self._process.join(WAIT)
        if self._process.exitcode is None:
            self.kill()
            return -1, f"Traceback: none, it hung for {WAIT} s"
        return self._process.exitcode, self.messages.read_text(errors="replace")


@cache
def start_server() -> None:
    """Start the process from which commands are forked; it imports everything once."""
    changed = {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}  # threads do not survive a fork
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        FORKS.set_forkserver_preload([f"{__package__}.imported"])
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


def _run(arguments: list[str], environment: dict[str, str], messages: str, folder: str, fault: Fault) -> None:
    """The command line, in a process of its own."""
    from unveil.cli.main import main

    descriptor = os.open(messages, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    os.environ.update(environment, COLUMNS="200")
    sys.argv = ["unveil", *arguments]
    begun = time.process_time()
    _prepare(folder, fault)
    code = 0
    try:
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    print(f"seconds of a processor: {time.process_time() - begun:.3f}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _prepare(folder: str, fault: Fault) -> None:
    if fault.clock_back:
        real, looks = time.time, iter(range(10**9))
        time.time = lambda: real() - 3600 * next(looks)
    if fault.kill_at or fault.fill_at or fault.journal is not None:
        sys.addaudithook(_Changes(folder, fault))


def fill(disk: Path) -> None:
    """Leave no free room on a mounted disk in memory."""
    status = os.statvfs(disk)
    used = max(1, status.f_blocks - status.f_bfree) * status.f_frsize
    subprocess.run(["mount", "-o", f"remount,size={used}", str(disk)], check=True)


class _Changes:
    """Counts the changes of files below a folder."""

    def __init__(self, folder: str, fault: Fault) -> None:
        self.folder, self.fault, self.count = folder, fault, 0
        self.journal = -1
        if fault.journal is not None:
            self.journal = os.open(fault.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not (opened or event in CHANGES):
            return
        path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
        if not path.startswith(self.folder):
            return
        self.count += 1
        if self.journal >= 0:
            os.write(self.journal, f"{event} {path.removeprefix(self.folder)}\n".encode())
        if self.count == self.fault.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.count == self.fault.fill_at:
            fill(Path(self.folder))
