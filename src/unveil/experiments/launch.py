"""Execute the runs of a plan elsewhere: on a Ray cluster, or as commands of their own by any scheduler."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from unveil.errors import UnveilError
from unveil.experiments.plan import Run, execute_run
from unveil.own.engines import connected

Attempt = Callable[[], None]  # returns where a run has finished; raises its error where it failed


def on_ray(
    todo: Sequence[Run], *, store: Path, root: Path | None, jobs: int, address: str | None
) -> Iterator[tuple[Run, Attempt]]:
    """The runs as tasks of one CPU each; Ray gives those of a worker that died to another one."""
    if not todo:
        return
    with connected(address, jobs) as ray:
        task = ray.remote(num_cpus=1, max_retries=3)(execute_run)
        places = store.resolve(), None if root is None else root.resolve()
        running = {task.remote(run.resolved(), *places, None): run for run in todo}

        def attempt(reference: object) -> None:
            try:
                ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None

        while running:
            ready = ray.wait(list(running))[0][0]
            yield running.pop(ready), partial(attempt, ready)


def by_launcher(todo: Sequence[Run], launcher: str, jobs: int, command: Sequence[str]) -> Iterator[tuple[Run, Attempt]]:
    """Every run as a command after `launcher`, such as `srun -n 1`; at most `jobs` at the same time."""
    prefix = shlex.split(launcher)

    def launch(run: Run) -> Attempt:
        try:
            done = subprocess.run([*prefix, *command_of(run, command)], capture_output=True, text=True)
        except OSError as error:
            raise UnveilError(f"--launcher '{launcher}' cannot be started ({error.strerror}): check it") from None

        def attempt() -> None:
            if done.returncode:
                lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
                raise UnveilError(lines[-1].removeprefix("unveil: "))

        return attempt

    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(launch, run): run for run in todo}
        for future in as_completed(futures):
            yield futures[future], future.result()


def command_of(run: Run, command: Sequence[str]) -> list[str]:
    """The command that executes one run of a plan, on any machine that shares the directories."""
    return [sys.executable, "-m", "unveil", "paper", *command, "--only", run.record.stem]


def plan_text(todo: Sequence[Run], command: Sequence[str]) -> str:
    """One independent command in each line."""
    return "".join(f"{shlex.join(command_of(run, command))}\n" for run in todo)
