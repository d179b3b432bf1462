"""Shared fixtures: a tiny recipe on real data, and the command line as people call it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

TINY = [
    "data.per_class=24",
    "augment.shift=1",
    "augment.noise=0.0",
    "augment.first_view=random",
    "encoder.name=compact",
    "encoder.width=8",
    "encoder.space_to_depth=1",
    "encoder.strides=[1, 2, 2, 1]",
    "rotation.epochs=2",
    "rotation.batch=32",
    "rotation.rotations=one",
    "rotation.known_weight=1.0",
    "supervised.epochs=0",
    "method.k1_fraction=0.5",
    "discovery.lr=0.02",
    "discovery.epochs=5",
    "discovery.batch=32",
    "method.queue=50",
    "method.k_easy=10",
    "method.k_hard=10",
]
"""Overrides of the digits recipe that make a whole run a matter of seconds."""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)  # tests run side by side


@pytest.fixture
def unveil(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call the command line in a process of its own, with a store of its own."""

    def call(*args: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "UNVEIL_STORE": str(tmp_path / "store"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        return subprocess.run(
            [sys.executable, "-m", "unveil", *args],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=300,
            **kwargs,  # type: ignore[call-overload]
        )

    return call


@pytest.fixture
def tiny() -> list[str]:
    """`--set` arguments of the tiny recipe."""
    return [argument for override in TINY for argument in ("--set", override)]
