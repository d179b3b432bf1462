"""Embeddings of images by a pretrained encoder, computed once and kept in the store by content.

`data.embed=efficientnet-lite0` turns a data set of images into one of vectors before anything else sees it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import track
from torch import Tensor

from unveil import files
from unveil import storage as store
from unveil.data.dataset import Dataset, Images, Items, Split, Vectors
from unveil.data.image_files import read_image
from unveil.errors import UnveilError
from unveil.models import pretrained as backbones

PIXELS = 32
"""Side to which images are scaled where no pretrained encoder looks at them."""
CHUNK = 32  # images at a time: their activations stay in a CPU's cache


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """A pretrained encoder by name, the side of the images it sees, and where its embeddings are kept."""

    name: str
    size: int
    device: torch.device
    precision: torch.dtype
    folder: Path
    console: Console

    def of(self, dataset: Dataset) -> Dataset:
        """The data set with every image replaced by its embedding."""
        if dataset.kind == "vectors":
            raise UnveilError(
                f"data.embed={self.name} wants images, and {dataset.name} has vectors: leave data.embed out"
            )

        def split(part: Split) -> Split:
            return replace(part, items=self(part.items))

        return replace(dataset, train=split(dataset.train), test=None if dataset.test is None else split(dataset.test))

    def __call__(self, items: Items, *, skip_unreadable: bool = False) -> Vectors:
        """(n, D), memory-mapped. With `skip_unreadable` the rows of files that are no images are NaN."""
        identity = store.identity(embed=[self.name, self.size], data=store.fingerprint(items))
        path = self.folder / identity / "embeddings.npy"
        with store.locked(path.parent):
            if not path.exists():
                found = np.concatenate(list(self._made(items, path.parent, skip_unreadable)))
                files.write_with(path, lambda file: np.save(file, found, allow_pickle=False))
        vectors: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        if not skip_unreadable and np.isnan(vectors[:, 0]).any():
            assert isinstance(items, tuple)
            bad = items[int(np.isnan(vectors[:, 0]).argmax())]
            raise UnveilError(f"cannot read the image {bad}: replace or remove the file")
        return vectors

    @torch.no_grad()
    def _made(self, items: Items, where: Path, skip_unreadable: bool) -> Iterator[Vectors]:
        encoder, device, console = backbones.pretrained(self.name, self.device), self.device, self.console
        size = encoder.size or self.size
        told = f"embeddings of {len(items):,} images by {self.name} at {size} pixels, in {where}"
        console.print(told, soft_wrap=True)
        mean = torch.tensor(encoder.mean, device=device).view(1, 3, 1, 1)
        std = torch.tensor(encoder.std, device=device).view(1, 3, 1, 1)
        starts = range(0, len(items), CHUNK)
        for start in track(starts, "embeddings", console=console, transient=True, disable=not console.is_terminal):
            x, read = pictures(items[start : start + CHUNK], size, skip_unreadable)
            x = ((x.to(device) - mean) / std).contiguous(memory_format=torch.channels_last)
            with torch.autocast(device.type, self.precision, enabled=self.precision != torch.float32):
                found = encoder.features(x).float().cpu().numpy()
            found[~read] = np.nan
            yield found


def pictures(items: Items, size: int, skip_unreadable: bool = False) -> tuple[Tensor, np.ndarray]:
    """(B, 3, size, size) in 0..1, and which could be read: arrays scaled as a whole, files one by one."""
    if isinstance(items, tuple):
        read = np.ones(len(items), dtype=bool)
        found = np.zeros((len(items), size, size, 3), dtype=np.uint8)
        for place, path in enumerate(items):
            try:
                found[place] = np.asarray(read_image(path, at_least=size).resize((size, size)))
            except UnveilError:
                if not skip_unreadable:
                    raise
                read[place] = False
        return torch.from_numpy(found).permute(0, 3, 1, 2).float() / 255, read
    x = torch.from_numpy(np.ascontiguousarray(items)).permute(0, 3, 1, 2).float() / 255
    x = x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x
    x = F.interpolate(x, (size, size), mode="bicubic", align_corners=False, antialias=True).clamp_(0, 1)
    return x, np.ones(len(x), dtype=bool)


def images_of(given: Items) -> Images:
    """(n, 32, 32, 3): what an encoder that is trained here sees."""
    found = []
    for start in range(0, len(given), 512):
        x, read = pictures(given[start : start + 512], PIXELS, skip_unreadable=True)
        if not read.all():
            assert isinstance(given, tuple)
            raise UnveilError(
                f"cannot read the image {given[start + int((~read).argmax())]}: replace or remove the file"
            )
        found.append((x * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy())
    return np.concatenate(found)
