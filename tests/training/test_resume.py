"""A run that was killed at any moment and resumed gives the same predictions, byte for byte."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import TINY
from faults.processes import Command
from faults.scenes import settings

EVERY_STEP = [*TINY, "machine.checkpoint_seconds=0", "machine.precision=float32"]
RUN = Command("digits", ["run", "digits", *settings(EVERY_STEP)])
RESUMED = replace(RUN, arguments=[*RUN.arguments, "--resume"])


def finish(command: Command, folder: Path) -> bytes:
    code, messages = command.finish(folder)
    assert code == 0, messages
    return (folder / "run" / "predictions.csv").read_bytes()


def kill_after_checkpoints(folder: Path, pattern: str, count: int) -> None:
    """Kill the process without warning once a checkpoint has been replaced `count` times."""
    process = RESUMED.start(folder)
    seen: set[tuple[Path, int]] = set()
    deadline = time.monotonic() + 120
    while len(seen) < count:
        assert process.is_running(), "the run ended before it was killed"
        assert time.monotonic() < deadline
        seen |= {(path, path.stat().st_mtime_ns) for path in folder.glob(pattern) if path.exists()}
        time.sleep(0.001)  # a step takes longer
    process.kill()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return finish(RUN, tmp_path_factory.mktemp("uninterrupted"))


def test_killed_in_every_stage_and_resumed_gives_the_same_predictions(tmp_path: Path, uninterrupted: bytes) -> None:
    kill_after_checkpoints(tmp_path, "store/*/checkpoint.safetensors", 3)
    kill_after_checkpoints(tmp_path, "run/checkpoint.safetensors", 2)
    kill_after_checkpoints(tmp_path, "run/checkpoint.safetensors", 17)
    assert finish(RESUMED, tmp_path) == uninterrupted


def test_terminated_politely_it_saves_and_resumes(tmp_path: Path, uninterrupted: bytes) -> None:
    process = RUN.start(tmp_path)
    while not (tmp_path / "run" / "checkpoint.safetensors").exists():
        assert process.is_running()
        time.sleep(0.02)
    process.interrupt()
    code, messages = process.wait()
    assert code == 130
    assert "--resume" in messages
    assert finish(RESUMED, tmp_path) == uninterrupted
