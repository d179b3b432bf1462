"""Views of items: clean, or a random augmentation that is a function of a seed.

A `Draw` says which rows and, for each view, which seed (None: the clean item). `stream` turns draws into tensors, in
order; for image files worker processes decode ahead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from unveil import rng
from unveil.data import augment
from unveil.data.items import Images, Items, Vectors
from unveil.data.pictures import center, crop, read_image
from unveil.errors import UnveilError
from unveil.settings import Augment, Data


@dataclass(frozen=True)
class Draw:
    """The rows of one batch and the seed of each view."""

    rows: NDArray[np.int64]
    seeds: tuple[int | None, ...]
    part: slice = field(default_factory=lambda: slice(None))
    """The rows whose views are wanted. They are the same as in the views of all rows."""


class Views(Protocol):
    """A source of views of items."""

    shape: tuple[int, ...]  # shape of one item as the network sees it
    first_view_clean: bool  # only the second view is augmented

    def __len__(self) -> int: ...

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        """The views of each draw."""
        ...


class ImageViews:
    """Images that fit into memory: one uint8 tensor on the device."""

    def __init__(self, items: Images, data: Data, config: Augment, device: torch.device) -> None:
        self.items = torch.from_numpy(np.ascontiguousarray(items)).to(device)
        _, height, width, channels = items.shape
        self.shape: tuple[int, ...] = (channels, height, width)
        self.config, self.device = config, device
        self.first_view_clean = config.first_view == "clean"
        self.mean, self.std = _statistics(data, channels, device)

    def __len__(self) -> int:
        return len(self.items)

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        for draw in draws:
            x = self.items.index_select(0, torch.from_numpy(draw.rows).to(self.device, non_blocking=True))
            yield tuple(self._view(x, seed, draw.part) for seed in draw.seeds)

    def _view(self, x: Tensor, seed: int | None, part: slice) -> Tensor:
        if seed is None:
            return augment.normalize(x[part], self.mean, self.std)
        generator = rng.seeded(seed, self.device)
        x = augment.draw(x, self.config, generator)
        if not self.config.noise:
            return augment.normalize(x[part], self.mean, self.std)
        return augment.noisy(augment.normalize(x, self.mean, self.std), self.config.noise, generator)[part]


class VectorViews:
    """Embeddings or table rows. By the settings, a perturbed view is moved toward a neighbor, loses some features, or
    gets noise in proportion to the spread of each feature.

    Items (n, views, features) contain their own views: the first is the clean one, and a random one of the others is
    used as the perturbed view.
    """

    first_view_clean = True
    mean: Tensor
    scale: Tensor
    noise: Tensor

    def __init__(
        self, items: Vectors, data: Data, config: Augment, device: torch.device, like: "VectorViews | None" = None
    ) -> None:
        """`like`: views whose mean and spread are used to scale these items."""
        self.items, self.config, self.device = items, config, device
        self.shape: tuple[int, ...] = (items.shape[-1],)
        if like is not None:
            self.mean, self.scale, self.noise = like.mean, like.scale, like.noise
            return
        self.mean, spread = (values.to(device) for values in mean_and_spread(items))
        self.scale = spread if data.scaling == "feature" else common_scale(spread)
        self.noise = config.noise * spread / self.scale

    def __len__(self) -> int:
        return len(self.items)

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        for draw in draws:
            x = (torch.from_numpy(self.items[draw.rows]).to(self.device, non_blocking=True) - self.mean) / self.scale
            x = x.float()
            clean = x if x.ndim == 2 else x[:, 0]
            yield tuple((clean if seed is None else self._perturbed(x, seed))[draw.part] for seed in draw.seeds)

    def _perturbed(self, x: Tensor, seed: int) -> Tensor:
        generator = rng.seeded(seed, self.device)
        if x.ndim == 2:
            moved = augment.mixed(x, self.config.mix, generator) if self.config.mix else x
            dropped = augment.dropped(moved, self.config.dropout, generator) if self.config.dropout else moved
            return augment.noisy(dropped, self.noise, generator) if self.config.noise else dropped
        chosen = torch.randint(1, x.shape[1], (len(x),), generator=generator, device=self.device)
        return x[torch.arange(len(x), device=self.device), chosen]


def mean_and_spread(items: NDArray[np.floating[Any]]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (d,) of the columns of vectors (n, d), or (n, views, d)."""
    sample = items[:: max(1, len(items) // 10_000)].reshape(-1, items.shape[-1])
    mean, spread = (torch.from_numpy(np.asarray(values)) for values in (sample.mean(axis=0), sample.std(axis=0)))
    return mean, spread.clamp_min(1e-6)


def common_scale(spread: Tensor) -> Tensor:
    """One scale for all columns."""
    return spread.square().mean().sqrt()


class FileViews:
    """Image files that are decoded, cropped and scaled by worker processes while the network trains."""

    def __init__(self, items: Items, data: Data, config: Augment, device: torch.device, workers: int) -> None:
        if config.size is None:
            raise UnveilError("image files need augment.size, the side of a view in pixels (224 for ImageNet)")
        self.files, self.config, self.device, self.workers = items.paths, config, device, workers
        self.first_view_clean = config.first_view == "clean"
        self.shape: tuple[int, ...] = (3, config.size, config.size)
        self.mean, self.std = _statistics(data, 3, device)

    def __len__(self) -> int:
        return len(self.files)

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        decoder = _Decoder(self.files, draws, self.config)
        workers = min(self.workers, len(draws))
        loader = DataLoader(decoder, batch_size=None, num_workers=workers, pin_memory=self.device.type == "cuda")
        for views in loader:
            if isinstance(views, str):
                raise UnveilError(views)
            yield tuple(augment.normalize(x.to(self.device, non_blocking=True), self.mean, self.std) for x in views)


class _Decoder(TorchDataset[list[Tensor] | str]):
    """Decodes the views of one draw; runs in a worker process. An error is handed over as its message."""

    def __init__(self, files: Sequence[Path], draws: Sequence[Draw], config: Augment) -> None:
        self.files, self.draws, self.config = files, draws, config

    def __len__(self) -> int:
        return len(self.draws)

    def __getitem__(self, index: int) -> list[Tensor] | str:
        draw = self.draws[index]
        views: list[list[Tensor]] = [[] for _ in draw.seeds]
        for place in range(len(draw.rows))[draw.part]:
            try:
                picture = read_image(self.files[draw.rows[place]], at_least=self.config.size or 0)
            except UnveilError as error:
                return str(error)
            for view, seed in zip(views, draw.seeds, strict=True):
                # a generator for each row: no row has to be decoded for the draws of another
                generator = None if seed is None else np.random.default_rng((seed, place))
                view.append(self._view(picture, generator))
        return [torch.stack(view) for view in views]

    def _view(self, picture: Image, generator: np.random.Generator | None) -> Tensor:
        if generator is None:
            return torch.tensor(center(picture, self.config))
        x = torch.tensor(crop(picture, self.config, generator))
        colors = rng.seeded(int(generator.integers(2**63)), torch.device("cpu"))
        return augment.recolored(x[None], self.config, colors)[0].to(torch.uint8)


def make_views(
    items: Items, data: Data, config: Augment, device: torch.device, workers: int, like: Views | None = None
) -> Views:
    """The views of a data set's items, by their kind; test items are scaled `like` the training items."""
    match items.kind:
        case "files":
            return FileViews(items, data, config, device, workers)
        case "images":
            return ImageViews(items.array, data, config, device)
        case "vectors":
            return VectorViews(items.array, data, config, device, like if isinstance(like, VectorViews) else None)
        case _:
            raise UnveilError(f"{items.kind} have to become vectors first: give an encoder")


def _statistics(data: Data, channels: int, device: torch.device) -> tuple[Tensor, Tensor]:
    def per_channel(values: tuple[float, ...], key: str) -> Any:
        if len(values) not in (1, channels):
            wanted = f"for images of {channels} channel(s): give 1 or {channels}"
            raise UnveilError(f"data.{key} has {len(values)} values {wanted}")
        return torch.tensor(values * (channels // len(values)), device=device)

    return per_channel(data.mean, "mean"), per_channel(data.std, "std")
