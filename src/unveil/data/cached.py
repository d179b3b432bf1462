"""Trunk features of several views of each item, in a memory-mapped file, so that an epoch costs only the tail."""

import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.views import Draw
from unveil.files import write_json

TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What lies in the file: (items, 1 + views, height, width, channels); entry 0 of an item is its clean view."""

    items: int
    views: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def full_shape(self) -> tuple[int, ...]:
        return (self.items, self.views + 1, *self.shape)

    @property
    def bytes(self) -> int:
        return 2 * math.prod(self.full_shape)


class CachedViews:
    """Draws among the stored views. Two views of one draw are never the same stored view, where there are two."""

    def __init__(self, path: Path, device: torch.device, *, first_view_clean: bool = False) -> None:
        self.first_view_clean = first_view_clean
        described = json.loads((path / "layout.json").read_text())
        self.seconds: float = described.pop("seconds")
        self.layout = Layout(**{**described, "shape": tuple(described["shape"])})
        self.device = device
        self.stored = np.memmap(path / "views.bin", dtype=np.int16, mode="r", shape=self.layout.full_shape)
        self.shape = self.layout.shape

    def __len__(self) -> int:
        return self.layout.items

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        for draw in draws:
            chosen = np.zeros(len(draw.rows), dtype=np.int64)  # 0 is the clean view
            views = []
            for seed in draw.seeds:
                if seed is not None:
                    chosen = self._choose(chosen, np.random.default_rng(seed), first=not chosen.any())
                views.append(self._read(draw.rows, chosen if seed is not None else np.zeros_like(chosen)))
            yield tuple(views)

    def _choose(self, last: NDArray[np.int64], generator: np.random.Generator, *, first: bool) -> NDArray[np.int64]:
        count = self.layout.views
        if first or count == 1:
            return generator.integers(1, count + 1, len(last))
        return (last - 1 + generator.integers(1, count, len(last))) % count + 1

    def _read(self, rows: NDArray[np.int64], chosen: NDArray[np.int64]) -> Tensor:
        x = torch.from_numpy(self.stored[rows, chosen]).view(TYPES[self.layout.dtype]).to(self.device)
        return x.permute(0, 3, 1, 2) if x.ndim == 4 else x


def build(path: Path, layout: Layout, parts: Iterator[tuple[int, int, Tensor]]) -> None:
    """Fill a new cache from (first row, view, features (B, C, h, w) or (B, D)). The layout file, written
    last, marks it as finished and says what it cost."""
    begun = time.monotonic()
    path.mkdir(parents=True, exist_ok=True)
    with (path / "views.bin").open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error here, not a crash at some later write
            os.posix_fallocate(file.fileno(), 0, layout.bytes)
        else:
            file.truncate(layout.bytes)
    stored = np.memmap(path / "views.bin", dtype=np.int16, mode="r+", shape=layout.full_shape)
    for row, view, x in parts:
        x = x.permute(0, 2, 3, 1) if x.ndim == 4 else x
        values = x.to(TYPES[layout.dtype]).contiguous().cpu().view(torch.int16).numpy()
        stored[row : row + len(values), view] = values
    stored.flush()
    seconds = round(time.monotonic() - begun, 2)
    write_json(path / "layout.json", {**asdict(layout), "shape": list(layout.shape), "seconds": seconds})


def complete(path: Path) -> bool:
    """Whether a finished cache lies at `path`."""
    return (path / "layout.json").exists()
