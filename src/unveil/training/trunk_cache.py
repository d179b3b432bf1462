"""Keeps the frozen trunk's outputs for some views of each item, so that an epoch of discovery costs only the tail."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from unveil import files, ranks, rng
from unveil import storage as store
from unveil.data.cached_views import CachedViews, Layout, build, complete, smaller
from unveil.data.loader import clean_draws
from unveil.data.views import Draw, Views
from unveil.errors import DamagedError
from unveil.models.model import Model

CHUNK = 500  # items at a time
SPARE = 1e9  # bytes to leave free on the disk


def cached_views(
    source: Views,
    model: Model,
    views: int,
    *,
    most: float | None = None,
    made_from: dict[str, Any],
    folder: Path,
    console: Console,
    tell: Callable[[str], None],
) -> CachedViews | None:
    """The stored views of `source`, in `folder`; they are computed first where they are missing.

    A cache that exceeds `most` bytes or the free disk space stores one byte per value, then fewer views; where even
    that does not fit, None is returned. Either changes the result, so `tell` is called with a warning. `made_from`
    names what the outputs depend on: the trunk, the data and the augmentation.
    """
    dtype = "bfloat16" if model.precision == torch.bfloat16 else "float16"
    shape = tuple(_sample(source, model, 1)[0].movedim(0, -1).shape)  # channels last
    wanted = Layout(items=len(source), views=views, shape=shape, dtype=dtype)
    folder.mkdir(parents=True, exist_ok=True)
    device = model.device
    fewest = 1 if source.first_view_clean else 2  # two views of an item should differ
    for layout in smaller(wanted, fewest):
        path = folder / store.identity(cache=[layout.full_shape, layout.dtype], **made_from)
        if most is not None and layout.bytes > most:
            continue
        with store.locked(path):
            free = shutil.disk_usage(path).free
            if not _usable(path, tell):
                if free < layout.bytes + SPARE:
                    continue
                what = f"{layout.views} views of {len(source):,} items in {layout.dtype}"
                console.print(f"trunk cache: {layout.bytes / 1e9:.2f} GB, {what}, in {path}", soft_wrap=True)
                sample = _sample(source, model, CHUNK) if layout.dtype == "uint8" else None
                try:
                    build(path, layout, _outputs(source, model, layout.views, console), sample)
                except OSError as error:
                    raise files.disk_error(error, path) from error
        if layout != wanted:
            tell(
                f"the trunk cache holds {layout.views} views in {layout.dtype} for lack of room, not {wanted.views} in "
                f"{wanted.dtype}: the result differs from that of a run with more room"
            )
        return CachedViews(path, device, first_view_clean=source.first_view_clean)
    limit = shutil.disk_usage(folder).free if most is None else min(most, shutil.disk_usage(folder).free)
    tell(
        f"the trunk cache needs {wanted.bytes / 1e9:.1f} GB, {layout.bytes / 1e9:.1f} GB at the least, and may take "
        f"{limit / 1e9:.1f} GB on {folder}: going on without it, which is slower, and the result differs from that "
        "of a run with it"
    )
    return None


def _usable(path: Path, tell: Callable[[str], None]) -> bool:
    """Whether the cache is there and sound; a damaged one is told, and counts as missing."""
    try:
        return complete(path)
    except DamagedError as error:
        files.remove(path / "layout.json")
        tell(str(error))
        return False


@torch.no_grad()
def _sample(source: Views, model: Model, count: int) -> Tensor:
    """Trunk features of items from all over the data set."""
    model.eval()
    rows = np.unique(np.linspace(0, len(source) - 1, count).astype(np.int64))
    ((x,),) = source.stream([Draw(rows, (None,))])
    return model.trunk(x)


@torch.no_grad()
def _outputs(source: Views, model: Model, views: int, console: Console) -> Iterator[tuple[int, int, Tensor]]:
    """(first row, view, trunk features) for every chunk and view; view 0 is the clean one."""
    model.eval()
    chunks, together = clean_draws(np.arange(len(source)), CHUNK), ranks.current()
    for chunk in track(chunks, "trunk cache", console=console, transient=True, disable=not console.is_terminal):
        first = int(chunk.rows[0])
        seeds = [None, *(rng.number(0, f"cached view {view}", 0, first) for view in range(views))]
        part = together.part(len(chunk.rows))
        for view, (x,) in enumerate(source.stream([Draw(chunk.rows, (seed,), part) for seed in seeds])):
            yield first, view, together.gather(model.trunk(x), len(chunk.rows))
