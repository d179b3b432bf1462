"""A run that was killed at any moment and resumed gives the same predictions, byte for byte."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import TINY

EVERY_STEP = [*TINY, "machine.checkpoint_seconds=0", "machine.precision=float32"]


def start(folder: Path, *extra: str) -> subprocess.Popen[bytes]:
    settings = [argument for override in EVERY_STEP for argument in ("--set", override)]
    return subprocess.Popen(
        [sys.executable, "-m", "unveil", "run", "digits", "--out", "run", *settings, *extra],
        cwd=folder,
        env={**os.environ, "UNVEIL_STORE": str(folder / "store"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(folder: Path, *extra: str) -> bytes:
    process = start(folder, *extra)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors.decode()
    return (folder / "run" / "predictions.csv").read_bytes()


def kill_after_checkpoints(folder: Path, pattern: str, count: int) -> None:
    """Kill the process without warning once a checkpoint has been replaced `count` times."""
    process = start(folder, "--resume")
    seen: set[tuple[Path, int]] = set()
    deadline = time.monotonic() + 120
    while len(seen) < count:
        assert process.poll() is None, "the run ended before it was killed"
        assert time.monotonic() < deadline
        seen |= {(path, path.stat().st_mtime_ns) for path in folder.glob(pattern) if path.exists()}
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return finish(tmp_path_factory.mktemp("uninterrupted"))


def test_killed_in_every_stage_and_resumed_gives_the_same_predictions(tmp_path: Path, uninterrupted: bytes) -> None:
    kill_after_checkpoints(tmp_path, "store/*/checkpoint.safetensors", 3)
    kill_after_checkpoints(tmp_path, "run/checkpoint.safetensors", 2)
    kill_after_checkpoints(tmp_path, "run/checkpoint.safetensors", 17)
    assert finish(tmp_path, "--resume") == uninterrupted


def test_terminated_politely_it_saves_and_resumes(tmp_path: Path, uninterrupted: bytes) -> None:
    process = start(tmp_path)
    while not (tmp_path / "run" / "checkpoint.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"--resume" in errors
    assert finish(tmp_path, "--resume") == uninterrupted
