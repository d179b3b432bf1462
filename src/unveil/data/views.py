"""Views of items: clean, or a random augmentation that is a function of a seed.

A `Draw` says which rows and, for each view, which seed (None: the clean item). `stream` turns draws into tensors, in
order; for image files worker processes decode ahead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from unveil.data import augment
from unveil.data.dataset import Files, Images, Items, Vectors
from unveil.data.image_files import read_image
from unveil.errors import UnveilError
from unveil.settings import Augment, Data


@dataclass(frozen=True)
class Draw:
    """The rows of one batch and the seed of each view."""

    rows: NDArray[np.int64]
    seeds: tuple[int | None, ...]


class Views(Protocol):
    """Where batches come from."""

    shape: tuple[int, ...]
    """Of one item as the network sees it."""
    first_view_clean: bool
    """Only the second view is augmented."""

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
            yield tuple(self._view(x, seed) for seed in draw.seeds)

    def _view(self, x: Tensor, seed: int | None) -> Tensor:
        if seed is None:
            return augment.normalise(x, self.mean, self.std)
        generator = torch.Generator(self.device).manual_seed(seed)
        x = augment.normalise(augment.draw(x, self.config, generator), self.mean, self.std)
        return augment.noisy(x, self.config.noise, generator) if self.config.noise else x


class VectorViews:
    """Embeddings or table rows. A perturbed view is moved to a neighbour, loses features, or has noise in proportion to
    each feature's spread, as the settings say.

    Items (n, views, features) bring their views along: the first is the clean one, and a random one of the others takes
    the place of the perturbed one.
    """

    first_view_clean = True
    mean: Tensor
    scale: Tensor
    noise: Tensor

    def __init__(
        self, items: Vectors, data: Data, config: Augment, device: torch.device, like: "VectorViews | None" = None
    ) -> None:
        """`like`: other items by whose mean and spread these are scaled."""
        self.items, self.config, self.device = items, config, device
        self.shape: tuple[int, ...] = (items.shape[-1],)
        if like is not None:
            self.mean, self.scale, self.noise = like.mean, like.scale, like.noise
            return
        sample = items[:: max(1, len(items) // 10_000)].reshape(-1, items.shape[-1])
        self.mean = torch.from_numpy(np.asarray(sample.mean(axis=0))).to(device)
        spread = torch.from_numpy(np.asarray(sample.std(axis=0))).to(device).clamp_min(1e-6)
        self.scale = spread if data.scaling == "feature" else spread.square().mean().sqrt()
        self.noise = config.noise * spread / self.scale

    def __len__(self) -> int:
        return len(self.items)

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        for draw in draws:
            x = (torch.from_numpy(self.items[draw.rows]).to(self.device, non_blocking=True) - self.mean) / self.scale
            clean = x if x.ndim == 2 else x[:, 0]
            yield tuple(clean if seed is None else self._other(x, seed) for seed in draw.seeds)

    def _other(self, x: Tensor, seed: int) -> Tensor:
        generator = torch.Generator(self.device).manual_seed(seed)
        if x.ndim == 2:
            moved = augment.mixed(x, self.config.mix, generator) if self.config.mix else x
            kept = augment.dropped(moved, self.config.dropout, generator) if self.config.dropout else moved
            return augment.noisy(kept, self.noise, generator) if self.config.noise else kept
        which = torch.randint(1, x.shape[1], (len(x),), generator=generator, device=self.device)
        return x[torch.arange(len(x), device=self.device), which]


class FileViews:
    """Image files that are decoded, cropped and scaled by worker processes while the network trains."""

    first_view_clean = False

    def __init__(self, items: Files, data: Data, config: Augment, device: torch.device, workers: int) -> None:
        if config.size is None:
            raise UnveilError("image files need augment.size, the side of a view in pixels (224 for ImageNet)")
        self.items, self.config, self.device, self.workers = items, config, device, workers
        self.shape: tuple[int, ...] = (3, config.size, config.size)
        self.mean, self.std = _statistics(data, 3, device)

    def __len__(self) -> int:
        return len(self.items)

    def stream(self, draws: Sequence[Draw]) -> Iterator[tuple[Tensor, ...]]:
        decoder = _Decoder(self.items, draws, self.config)
        workers = min(self.workers, len(draws))
        loader = DataLoader(decoder, batch_size=None, num_workers=workers, pin_memory=self.device.type == "cuda")
        for views in loader:
            if isinstance(views, str):
                raise UnveilError(views)
            yield tuple(augment.normalise(x.to(self.device, non_blocking=True), self.mean, self.std) for x in views)


class _Decoder(TorchDataset[list[Tensor] | str]):
    """Decodes the views of one draw; runs in a worker process. An error is handed over as its message."""

    def __init__(self, files: Files, draws: Sequence[Draw], config: Augment) -> None:
        self.files, self.draws, self.config = files, draws, config

    def __len__(self) -> int:
        return len(self.draws)

    def __getitem__(self, index: int) -> list[Tensor] | str:
        try:
            return self._decode(self.draws[index])
        except UnveilError as error:
            return str(error)

    def _decode(self, draw: Draw) -> list[Tensor]:
        generators = [None if seed is None else np.random.default_rng(seed) for seed in draw.seeds]
        views: list[list[NDArray[np.uint8]]] = [[] for _ in generators]
        for row in draw.rows:
            picture = read_image(self.files[row], at_least=self.config.size or 0)
            for view, generator in zip(views, generators, strict=True):
                view.append(
                    center(picture, self.config) if generator is None else crop(picture, self.config, generator)
                )
        return [torch.from_numpy(np.stack(view)) for view in views]


def crop(picture: Image.Image, config: Augment, generator: np.random.Generator) -> NDArray[np.uint8]:
    """A random resized crop (area share and a ratio of sides from 3/4 to 4/3), mirrored every second time."""
    assert config.size is not None
    low, high = config.crop or (1.0, 1.0)
    area = picture.width * picture.height * generator.uniform(low, high)
    ratio = np.exp(generator.uniform(np.log(3 / 4), np.log(4 / 3)))
    width, height = min(np.sqrt(area * ratio), picture.width), min(np.sqrt(area / ratio), picture.height)
    left, top = generator.uniform(0, picture.width - width), generator.uniform(0, picture.height - height)
    size = (config.size, config.size)
    view = picture.resize(size, Image.Resampling.BILINEAR, box=(left, top, left + width, top + height))
    if config.flip and generator.random() < 0.5:
        view = view.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(view)


def center(picture: Image.Image, config: Augment) -> NDArray[np.uint8]:
    """The clean view: the middle 7/8 of the short side, as a square."""
    assert config.size is not None
    side = min(picture.size) * 7 / 8
    left, top = (picture.width - side) / 2, (picture.height - side) / 2
    size = (config.size, config.size)
    return np.asarray(picture.resize(size, Image.Resampling.BILINEAR, box=(left, top, left + side, top + side)))


def make_views(
    items: Items, data: Data, config: Augment, device: torch.device, workers: int, like: Views | None = None
) -> Views:
    """The views of a data set's items, by their kind; test items are scaled `like` the training items."""
    if isinstance(items, tuple):
        return FileViews(items, data, config, device, workers)
    if items.dtype == np.uint8:
        return ImageViews(items, data, config, device)  # type: ignore[arg-type]
    return VectorViews(items, data, config, device, like if isinstance(like, VectorViews) else None)  # type: ignore[arg-type]


def _statistics(data: Data, channels: int, device: torch.device) -> tuple[Tensor, Tensor]:
    def spread(values: tuple[float, ...], key: str) -> Any:
        if len(values) not in (1, channels):
            raise UnveilError(
                f"data.{key} has {len(values)} values for images of {channels} channel(s): give 1 or {channels}"
            )
        return torch.tensor(values * (channels // len(values)), device=device)

    return spread(data.mean, "mean"), spread(data.std, "std")
