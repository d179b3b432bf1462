"""Random draws as functions of (seed, purpose, epoch, step), so that nothing depends on how a run was interrupted."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def number(seed: int, purpose: str, epoch: int = 0, step: int = 0) -> int:
    """A 63-bit number that is the same on every machine; different purposes never share a stream."""
    digest = hashlib.blake2b(f"{seed}/{purpose}/{epoch}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(
    seed: int, purpose: str, epoch: int = 0, step: int = 0, *, device: "torch.device | str" = "cpu"
) -> "torch.Generator":
    """A torch generator for a purpose, epoch and step."""
    return seeded(number(seed, purpose, epoch, step), device)


def seeded(seed: int, device: "torch.device | str") -> "torch.Generator":
    """A torch generator on a device. torch is imported late: the pages do without it."""
    import torch

    return torch.Generator(device=device).manual_seed(seed)


def numpy(seed: int, purpose: str, epoch: int = 0, step: int = 0) -> np.random.Generator:
    """A numpy generator for a purpose, epoch and step."""
    return np.random.default_rng(number(seed, purpose, epoch, step))
