"""Trunk features of several views of each item, in a memory-mapped file, so that an epoch costs only the tail."""

import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil import checksums, ranks
from unveil.data.views import Draw
from unveil.errors import DamagedError
from unveil.files import write_json

TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "uint8": torch.uint8}
"""uint8: 256 equal steps between a channel's smallest and largest value."""

REMAKE = "it is made again"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Shape and type of the file: (items, 1 + views, height, width, channels). Entry 0 of an item is its clean view."""

    items: int
    views: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def full_shape(self) -> tuple[int, ...]:
        return (self.items, self.views + 1, *self.shape)

    @property
    def bytes(self) -> int:
        return TYPES[self.dtype].itemsize * math.prod(self.full_shape)


@dataclass(frozen=True)
class Range:
    """The values of each channel that uint8 can hold: low, low + step, …, low + 255 step."""

    low: Tensor
    step: Tensor

    @staticmethod
    def of(sample: Tensor) -> "Range":
        """The range of features (B, C, h, w) or (B, D), widened by 10 % for values that the sample lacks."""
        values = sample.float().movedim(1, -1).flatten(0, -2)  # (…, channels)
        low, high = values.amin(dim=0), values.amax(dim=0)
        margin = 0.1 * (high - low)
        low = torch.where(low < 0, low - margin, low)  # the lower end of ReLU outputs stays at 0
        return Range(low.cpu(), ((high + margin - low) / 255).clamp_min(1e-12).cpu())

    def encode(self, x: Tensor) -> Tensor:
        """Channels last in, channels last out."""
        return ((x.float().cpu() - self.low) / self.step).round_().clamp_(0, 255).to(torch.uint8)

    def to(self, device: torch.device) -> "Range":
        return Range(self.low.to(device), self.step.to(device))

    def decode(self, x: Tensor) -> Tensor:
        return torch.addcmul(self.low, x.float(), self.step)


def smaller(layout: Layout, fewest: int) -> Iterator[Layout]:
    """The layout, then smaller ones: first with one byte per value, then with fewer views, down to `fewest`."""
    yield layout
    for views in range(layout.views, min(fewest, layout.views) - 1, -1):
        yield replace(layout, dtype="uint8", views=views)


class CachedViews:
    """Views drawn from the stored ones. The two views of an item differ wherever more than one is stored."""

    def __init__(self, path: Path, device: torch.device, *, first_view_clean: bool = False) -> None:
        self.first_view_clean = first_view_clean
        description = _description(path)
        self.seconds: float = description.pop("seconds")
        ranges = description.pop("range", None)
        self.range = None if ranges is None else Range(*(torch.tensor(values) for values in ranges)).to(device)
        self.layout = Layout(**{**description, "shape": tuple(description["shape"])})
        self.device = device
        self.stored = _mapped(path, self.layout, "r")
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
                taken = chosen if seed is not None else np.zeros_like(chosen)
                views.append(self._read(draw.rows[draw.part], taken[draw.part]))
            yield tuple(views)

    def _choose(self, last: NDArray[np.int64], generator: np.random.Generator, *, first: bool) -> NDArray[np.int64]:
        count = self.layout.views
        if first or count == 1:
            return generator.integers(1, count + 1, len(last))
        return (last - 1 + generator.integers(1, count, len(last))) % count + 1

    def _read(self, rows: NDArray[np.int64], chosen: NDArray[np.int64]) -> Tensor:
        x = torch.from_numpy(self.stored[rows, chosen]).view(TYPES[self.layout.dtype])
        x = x.to(self.device, non_blocking=True)
        x = x if self.range is None else self.range.decode(x)
        return x.permute(0, 3, 1, 2) if x.ndim == 4 else x


def build(path: Path, layout: Layout, chunks: Iterator[tuple[int, int, Tensor]], sample: Tensor | None = None) -> None:
    """Fill a new cache from chunks (first row, view, features (B, C, h, w) or (B, D)).

    The layout file is written last: it marks the cache as complete and holds the seconds that it took. uint8 needs a
    `sample` of the features for its ranges.
    """
    started = time.monotonic()
    if not ranks.current().first:  # it computes its part of the chunks, and another rank writes them
        for _ in chunks:
            continue
        return
    path.mkdir(parents=True, exist_ok=True)
    with (path / "views.bin").open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error here, not a crash at some later write
            os.posix_fallocate(file.fileno(), 0, layout.bytes)
        else:
            file.truncate(layout.bytes)
    stored, ranges = _mapped(path, layout, "r+"), Range.of(sample) if sample is not None else None
    for row, view, x in chunks:
        x = x.permute(0, 2, 3, 1) if x.ndim == 4 else x
        if ranges is not None:
            values = ranges.encode(x).contiguous().numpy()
        else:
            values = x.to(TYPES[layout.dtype]).contiguous().cpu().view(torch.int16).numpy()
        stored[row : row + len(values), view] = values
    stored.flush()
    description = {**asdict(layout), "shape": list(layout.shape), "seconds": round(time.monotonic() - started, 2)}
    if ranges is not None:
        description["range"] = [ranges.low.tolist(), ranges.step.tolist()]
    description["content"] = checksums.of_file(path / "views.bin")
    write_json(path / "layout.json", checksums.with_checksum(description))


def _mapped(path: Path, layout: Layout, mode: Literal["r", "r+"]) -> "np.memmap[Any, Any]":
    kind = np.uint8 if layout.dtype == "uint8" else np.int16  # numpy has no bfloat16
    return np.memmap(path / "views.bin", dtype=kind, mode=mode, shape=layout.full_shape)


def complete(path: Path) -> bool:
    """Whether `path` holds a complete cache. One that is damaged is an error."""
    if not (path / "layout.json").exists():
        return False
    if (content := _description(path, whole=True).get("content")) is not None:
        checksums.verify(path / "views.bin", content, REMAKE)
    return True


def _description(path: Path, *, whole: bool = False) -> dict[str, Any]:
    """layout.json; without its checksums, unless the `whole` of it is asked for."""
    file = path / "layout.json"
    try:
        description = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{file} is damaged ({error}): {REMAKE}") from None
    checksums.check_table(description, file, REMAKE)
    return {key: value for key, value in description.items() if whole or key not in ("content", checksums.KEY)}
