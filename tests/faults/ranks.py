"""Runs of two processes that train together (torchrun, gloo), of which one or all are killed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .kills import scratch
from .outcomes import Outcomes
from .scenes import DIGITS, half_written, result, settings

WAIT = 1800
"""Seconds after which a run counts as one that hangs."""


class Together:
    """`unveil run digits` by torchrun, which starts all ranks again when one is killed."""

    def __init__(self, folder: Path, *more: str) -> None:
        elastic = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "3"]
        command = ["-m", "unveil", "run", "digits", *settings(DIGITS), "--out", "run", "--store", "store", *more]
        folder.mkdir(parents=True, exist_ok=True)
        self.messages = folder / "messages"
        environment = {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "COLUMNS": "200"}
        with self.messages.open("a") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *elastic, *command],
                env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
                cwd=folder,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def ranks(self) -> list[int]:
        """Numbers of the processes of the ranks, in the order in which they were started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(number) for number in children.read_text().split()] if children.exists() else []

    def wait_for(self, file: Path) -> None:
        """Wait until a file exists, or until the run has ended."""
        ends = time.monotonic() + WAIT
        while not file.exists() and self.process.poll() is None and time.monotonic() < ends:
            time.sleep(0.01)

    def end(self) -> int:
        try:
            return self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.kill()
            return -1

    def kill(self) -> None:
        """Kill torchrun and all ranks at once, as a machine that loses its power does."""
        for number in (self.process.pid, *self.ranks()):
            os.kill(number, signal.SIGKILL)
        self.process.wait()


def killed_ranks(outcomes: Outcomes, count: int, seed: int) -> None:
    """Kill one rank at a random moment, after which torchrun starts all again, or kill torchrun and all ranks, and give
    the command again; the result must be that of an undisturbed run of two ranks."""
    draw = random.Random(seed)
    with scratch() as folder:
        begun = time.monotonic()
        undisturbed = Together(folder / "reference")
        assert undisturbed.end() == 0, undisturbed.messages.read_text()
        expected, seconds = result(folder / "reference"), time.monotonic() - begun
        for number in range(count):
            for what in ("one rank killed", "all ranks killed"):
                place = folder / f"{what} {number}"
                run = Together(place)
                run.wait_for(place / "run" / "config.toml")
                time.sleep(draw.uniform(0, seconds / 4))
                if what == "all ranks killed":
                    run.kill()
                    run = Together(place, "--resume") if (place / "run" / "config.toml").exists() else Together(place)
                else:
                    for rank in run.ranks()[-1:]:
                        os.kill(rank, signal.SIGKILL)
                outcomes.add(what, *_judged(run, place, expected))
                shutil.rmtree(place)


def _judged(run: Together, place: Path, expected: object) -> tuple[str, str]:
    code, messages = run.end(), run.messages.read_text(errors="replace")
    if code != 0:
        return "lost", f"{code} {messages[-700:]}"
    if result(place) != expected:
        return "silently wrong", "another result than that of an undisturbed run"
    return ("silently wrong", str(left)) if (left := half_written(place)) else ("exact", "")
