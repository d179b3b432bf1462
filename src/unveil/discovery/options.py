"""The settings of a fit on people's own data. The command line, recipes and the estimator share one object, `Settings`:
what people choose are overrides of a recipe, and the recipe follows from the items where nobody names one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from unveil import recipe as recipes
from unveil.data.items import Items
from unveil.data.scaling import fit_reduction
from unveil.discovery.preparation import PIXELS, Preparation, choose_encoder
from unveil.errors import UnveilError
from unveil.methods.catalog import method_class
from unveil.models.pretrained import installed
from unveil.settings import Settings

DEFAULT_ENCODER = "efficientnet-lite0"
TRAINED_HERE = "compact"
ENOUGH_IMAGES = 5000
"""Images from which an encoder can be trained from scratch."""
SIDE = 32
"""Side of own images in pixels, where the recipe does not say."""
LARGEST_SIDE = 64
"""Square images of an array are trained on at their own size up to this."""


def own_settings(
    items: Items, recipe: str | None, overrides: Sequence[str], *, encoder: str = "auto", any_labels: bool = True
) -> Settings:
    """The settings for these items.

    Without a recipe, vectors go by the recipe `vectors`, and so do images, whose vectors come from a frozen encoder.
    `auto` is the pretrained encoder where it is installed, else an encoder that is trained here (recipe `images`) where
    there are enough images, else pixels.
    """
    if recipe is not None:
        return recipes.load(recipe, overrides)
    if items.kind == "vectors":
        return recipes.load(_recipe_for_vectors(overrides), overrides)
    if encoder == "auto":
        trainable = TRAINED_HERE if len(items) >= ENOUGH_IMAGES and any_labels else PIXELS
        encoder = DEFAULT_ENCODER if installed(DEFAULT_ENCODER) else trainable
    if encoder == TRAINED_HERE:
        return recipes.load("images", overrides)
    return recipes.load(_recipe_for_vectors(overrides), [f"data.encoder={encoder}", *overrides])


def _recipe_for_vectors(overrides: Sequence[str]) -> str:
    """`vectors`, or `trained-vectors` where a method was asked for that trains."""
    values = dict(override.split("=", 1) for override in overrides if "=" in override)
    trains = "discovery.method" in values and method_class(values["discovery.method"]).trains
    return "trained-vectors" if trains else "vectors"


def encoder_warning(items: Items, settings: Settings, encoder: str) -> list[str]:
    """A warning where images are compared by their pixels although nobody asked for that."""
    if items.kind == "vectors" or encoder != "auto" or settings.data.encoder != PIXELS:
        return []
    return [
        "images are compared by their pixels, because no pretrained encoder is installed: pip install 'unveil[images]'"
        ", or train on the images with --recipe images"
    ]


def prepare(items: Items, settings: Settings, *, folder: Path | None) -> Preparation:
    """What is done to the items before training; embeddings are kept in `folder`."""
    data = settings.data
    preparation = Preparation(device=settings.machine.device, folder=folder)
    if items.kind == "vectors":
        if data.encoder is not None:
            raise UnveilError(f"the encoder {data.encoder} needs images, and these are vectors: leave the encoder out")
        return preparation
    if data.encoder is not None:
        side = choose_encoder(items, data.encoder)
        return replace(preparation, encoder=data.encoder, encoder_side=data.encoder_size or side)
    if items.kind == "files":
        return preparation if settings.augment.size is not None else replace(preparation, side=SIDE)
    height, width, channels = items.array.shape[1:]
    usable = height == width <= LARGEST_SIDE and len(data.mean) in (1, channels)
    return preparation if usable else replace(preparation, side=SIDE)


def with_reduction(preparation: Preparation, items: Items, settings: Settings) -> Preparation:
    """The preparation with the unit length and principal components that a recipe asks for."""
    data = settings.data
    if not data.unit and data.pca is None:
        return preparation
    if items.kind != "vectors":
        raise UnveilError("data.unit and data.pca are for vectors, and these are images: leave them out")
    vectors = items.array if items.array.ndim == 2 else items.array[:, 0]
    return replace(preparation, reduction=fit_reduction(np.asarray(vectors), unit=data.unit, components=data.pca))
