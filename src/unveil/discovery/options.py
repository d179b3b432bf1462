"""From what people choose to the settings of a fit. The command line, recipes and the estimator share one object:
`Settings`; this is where it is made for people's own data."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from unveil import recipe as recipes
from unveil.data.items import Items
from unveil.data.scaling import fit_reduction
from unveil.data.task import Task
from unveil.discovery.preparation import PIXELS, Preparation, choose_encoder
from unveil.errors import UnveilError
from unveil.models.pretrained import installed
from unveil.settings import Settings

DEFAULT_ENCODER = "efficientnet-lite0"
TRAINED_HERE = "compact"
ENOUGH_IMAGES = 5000
"""Images from which an encoder can be trained from scratch."""
SIDE = 32
"""Side of own images in pixels, where the recipe does not say."""


def own_settings(items: Items, settings: Settings | None, encoder: str, *, labels: bool) -> tuple[Settings, str | None]:
    """The settings for these items, and the frozen encoder for images; None: the recipe trains one.

    `settings` are those of a recipe that was asked for; without one, vectors (and images, through a frozen encoder) go
    by the recipe `vectors`. `auto` takes the pretrained encoder where it is installed, else it trains one here where
    there are enough images, else pixels are the vectors.
    """
    if settings is not None:
        return settings, settings.data.encoder
    if items.kind == "vectors":
        return recipes.load("vectors"), None
    if encoder == "auto":
        trainable = TRAINED_HERE if len(items) >= ENOUGH_IMAGES and labels else PIXELS
        encoder = DEFAULT_ENCODER if installed(DEFAULT_ENCODER) else trainable
    if encoder == TRAINED_HERE:
        return recipes.load("images"), None
    return recipes.load("vectors"), encoder


def prepare(task: Task, settings: Settings, encoder: str | None, *, folder: Path | None, device: str) -> Preparation:
    """What is done to the items before training; embeddings are kept in `folder`."""
    items, size = task.items, None
    preparation = Preparation(device=device, folder=folder)
    if items.kind == "vectors":
        if encoder is not None:
            raise UnveilError(f"the encoder {encoder} needs images, and these are vectors: leave the encoder out")
        return preparation
    if encoder is not None:
        name, side = choose_encoder(items, encoder)
        size = settings.data.encoder_size
        return replace(preparation, encoder=name, encoder_side=size or side)
    if items.kind == "files":
        return preparation if settings.augment.size is not None else replace(preparation, side=SIDE)
    height, width, channels = items.array.shape[1:]
    alike = height == width and channels == len(settings.data.mean)
    return preparation if alike else replace(preparation, side=min(max(height, width), 2 * SIDE))


def with_reduction(preparation: Preparation, items: Items, settings: Settings) -> Preparation:
    """The preparation with the unit length and principal components that a recipe asks for."""
    data = settings.data
    if not data.unit and data.pca is None:
        return preparation
    if items.kind != "vectors":
        raise UnveilError("data.unit and data.pca are for vectors, and these are images: leave them out")
    vectors = items.array if items.array.ndim == 2 else items.array[:, 0]
    return replace(preparation, reduction=fit_reduction(np.asarray(vectors), unit=data.unit, components=data.pca))
