"""Keeps the frozen trunk's outputs for some views of each item, so that an epoch of discovery costs only the tail."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from unveil import files, rng, store
from unveil.data.cached import CachedViews, Layout, build, complete
from unveil.data.loader import clean_draws
from unveil.data.views import Draw, Views
from unveil.nn.model import Model

CHUNK = 500  # items at a time


def cached_views(
    source: Views, model: Model, views: int, *, made_from: dict[str, Any], folder: Path, console: Console
) -> CachedViews | None:
    """Stored views of `source`, built if need be below `folder`; None, with a warning, where the disk is too small.

    `made_from` names what the outputs depend on: the trunk, the data and the augmentation.
    """
    dtype = "bfloat16" if model.precision == torch.bfloat16 else "float16"
    layout = Layout(items=len(source), views=views, shape=_output_shape(source, model), dtype=dtype)
    path = folder / store.identity(cache=[layout.full_shape, dtype], **made_from)
    device = model.known_head.weight.device
    with store.locked(path):
        if not complete(path):
            needed, free = layout.bytes / 1e9, shutil.disk_usage(path).free / 1e9
            if free < needed + 1:
                console.print(
                    f"warning: the trunk cache needs {needed:.1f} GB and {free:.1f} GB are free on {folder}: "
                    "going on without it, which is slower",
                    style="yellow",
                    soft_wrap=True,
                )
                return None
            console.print(
                f"trunk cache: {needed:.2f} GB, {views} views of {len(source):,} items, in {path}", soft_wrap=True
            )
            try:
                build(path, layout, _outputs(source, model, views, console))
            except OSError as error:
                raise files.disk_error(error, path) from error
    return CachedViews(path, device, first_view_clean=source.first_view_clean)


@torch.no_grad()
def _output_shape(source: Views, model: Model) -> tuple[int, ...]:
    ((probe,),) = source.stream([Draw(np.zeros(1, dtype=np.int64), (None,))])
    return tuple(model.trunk(probe)[0].movedim(0, -1).shape)  # channels last


@torch.no_grad()
def _outputs(source: Views, model: Model, views: int, console: Console) -> Iterator[tuple[int, int, Tensor]]:
    """(first row, view, trunk features) for every chunk and view; view 0 is the clean one."""
    model.eval()
    chunks = clean_draws(np.arange(len(source)), CHUNK)
    for chunk in track(chunks, "trunk cache", console=console, transient=True, disable=not console.is_terminal):
        first = int(chunk.rows[0])
        seeds = [None, *(rng.number(0, f"cached view {view}", 0, first) for view in range(views))]
        for view, (x,) in enumerate(source.stream([Draw(chunk.rows, (seed,)) for seed in seeds])):
            yield first, view, model.trunk(x)
