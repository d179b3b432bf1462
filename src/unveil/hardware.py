"""Which device and precision to use, and a description of the machine for the record."""

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

from unveil import ranks
from unveil.errors import UnveilError
from unveil.settings import Machine


def pick_device(name: str) -> torch.device:
    """The device of a setting; `auto` prefers cuda, then mps, then cpu."""
    if name == "auto":
        if torch.cuda.is_available():
            together = ranks.current()
            return torch.device("cuda", together.local) if together.count > 1 else torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        there = ["auto", "cpu", *(["cuda"] if torch.cuda.is_available() else [])]
        there += ["mps"] if torch.backends.mps.is_available() else []
        raise UnveilError(f"the device is '{name}', which is not available here: use {' or '.join(there)}") from None
    return device


def pick_precision(config: Machine, device: torch.device) -> torch.dtype:
    """bfloat16 where the processor has instructions for it: elsewhere it is emulated and slow."""
    if config.precision != "auto":
        return torch.float32 if config.precision == "float32" else torch.bfloat16
    if device.type == "cuda":
        with torch.cuda.device(device):  # the question is answered for the current one
            return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if device.type == "cpu" and torch.cpu._is_avx512_bf16_supported():
        return torch.bfloat16
    return torch.float32


def describe(device: torch.device, precision: torch.dtype) -> dict[str, object]:
    """A description of the machine, for the record of a result."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "precision": str(precision).removeprefix("torch."),
    }


@cache
def commit() -> str | None:
    """The commit of the source tree, with `+changes` where it was edited; None for an installed package.

    Asked once: what this process has imported stays as it is."""
    here = Path(__file__).resolve().parent
    try:
        _git(here, "ls-files", "--error-unmatch", __file__)  # fails where another repository contains the package
        head, edited = _git(here, "rev-parse", "--short=12", "HEAD"), _git(here, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+changes" if edited else head


def _git(folder: Path, *args: str) -> str:
    command = ["git", "-C", str(folder), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


ONE_THREAD_ROWS = 20_000
"""Up to so many rows one thread is quicker: threads of several libraries would wait for each other."""


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """Compute in one thread inside the block where there are few rows, and in as many as usual where there are more."""
    if rows > ONE_THREAD_ROWS:
        yield
        return
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
