"""The settings of a fit on people's own data. The command line, recipes and the estimator share one object, `Settings`:
what people choose are overrides of a recipe, and the recipe follows from the items where nobody names one."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from unveil import recipe as recipes
from unveil.data.items import Items
from unveil.data.pictures import open_image
from unveil.data.table_encoding import fit_table
from unveil.encoders.preparation import GRADIENTS, TOGETHER, Preparation, choose_encoder
from unveil.encoders.pretrained import installed
from unveil.encoders.scaling import fit_reduction
from unveil.encoders.text import MINILM, has_minilm, not_for_texts, reads_texts
from unveil.encoders.tfidf import NAME as TFIDF
from unveil.encoders.tfidf import fit_tfidf
from unveil.errors import UnveilError
from unveil.methods.catalog import method_class
from unveil.settings import Settings

DEFAULT_ENCODER = "efficientnet-lite0"
TRAINED_HERE = "compact"
ENOUGH_IMAGES = 5000
"""Images from which an encoder can be trained from scratch."""
SIDE = 32
"""Side of own images in pixels, where the recipe does not say."""
LARGEST_SIDE = 64
"""Images are small up to this side in pixels; square ones of an array are trained on at their own size."""
SOME_FILES = 16
"""Files by which it is judged whether images are small."""


def own_settings(
    items: Items, recipe: str | None, overrides: Sequence[str], *, encoder: str = "auto", any_labels: bool = True
) -> Settings:
    """The settings for these items.

    Without a recipe, vectors go by the recipe `vectors`, and so do images and texts, whose vectors come from a frozen
    encoder. `auto` is the pretrained encoder where it is installed, and for small images that or their gradients,
    whichever suits the known classes. Else small images go by their gradients, an encoder is trained on larger ones
    (recipe `images`) where there are enough, and texts go by their words (TF-IDF).
    """
    if recipe is not None and items.kind in ("texts", "table"):
        _check_recipe(recipes.load(recipe, overrides), items.kind)
    elif recipe is not None:
        return recipes.load(recipe, overrides)
    vectors = recipe or _recipe_for_vectors(overrides)
    if not reads_items(items):
        if encoder != "auto":
            what = "vectors" if items.kind == "vectors" else "rows of a table without text"
            raise UnveilError(f"the encoder {encoder} needs images or texts, and these are {what}: leave it out")
        return recipes.load(vectors, overrides)
    if not items.are_images:
        if encoder == "auto":
            encoder = MINILM if has_minilm() else TFIDF
        return recipes.load(vectors, [f"data.encoder={encoder}", *overrides])
    if encoder == "auto":
        encoder = _usual_encoder(items, any_labels)
    if encoder == TRAINED_HERE:
        return recipes.load("images", overrides)
    return recipes.load(_recipe_for_vectors(overrides), [f"data.encoder={encoder}", *overrides])


def reads_items(items: Items) -> bool:
    """Whether an encoder has something to read: images or texts."""
    return items.are_images or items.kind == "texts" or (items.kind == "table" and items.table.text is not None)


def _check_recipe(settings: Settings, kind: str) -> None:
    """Only a recipe for vectors suits texts and tables."""
    if settings.encoder.name not in ("identity", "tail", "mlp") or settings.rotation.epochs:
        what = "texts" if kind == "texts" else "rows of a table"
        raise UnveilError(f"the recipe {settings.name} trains on images, and these are {what}: leave the recipe out")


def _usual_encoder(items: Items, any_labels: bool) -> str:
    """How images become vectors where nobody says."""
    small = _are_small(items)
    if installed(DEFAULT_ENCODER):
        return f"{DEFAULT_ENCODER}{TOGETHER}{GRADIENTS}" if small and any_labels else DEFAULT_ENCODER
    if small:
        return GRADIENTS
    if len(items) >= ENOUGH_IMAGES and any_labels:
        return TRAINED_HERE
    raise UnveilError(
        "no pretrained encoder is installed, and photographs compared by their gradients or pixels give little: "
        "pip install 'unveil[images]'; or choose --encoder gradients for drawings, --recipe images to train on them"
    )


def _are_small(items: Items) -> bool:
    """Whether no image, or none of some files, has a side of more than 64 pixels."""
    if items.kind == "images":
        return bool(max(items.array.shape[1:3]) <= LARGEST_SIDE)
    sides = []
    for path in items.paths[:: max(1, len(items) // SOME_FILES)]:
        with suppress(UnveilError), open_image(path) as picture:
            sides.append(max(picture.size))
    return bool(sides) and max(sides) <= LARGEST_SIDE


def _recipe_for_vectors(overrides: Sequence[str]) -> str:
    """`vectors`, or `trained-vectors` where a method was asked for that trains."""
    values = dict(override.split("=", 1) for override in overrides if "=" in override)
    trains = "discovery.method" in values and method_class(values["discovery.method"]) is not None
    return "trained-vectors" if trains else "vectors"


def encoder_warning(items: Items, settings: Settings, encoder: str) -> list[str]:
    """A warning where images go by their gradients, or texts by their words, although nobody asked for that."""
    if encoder != "auto" or settings.data.encoder not in (GRADIENTS, TFIDF) or not reads_items(items):
        return []
    if not items.are_images:
        return [
            "texts are compared by their words (TF-IDF), because no encoder of sentences is installed: "
            "pip install 'unveil[text]' for one that knows what they mean"
        ]
    return [
        "images are compared by their gradients, because no pretrained encoder is installed; where they show more than "
        "plain shapes: "
        "pip install 'unveil[images]', or train on the images with --recipe images"
    ]


def prepare(items: Items, settings: Settings, *, folder: Path | None) -> Preparation:
    """What is done to the items before training; embeddings are kept in `folder`."""
    data = settings.data
    preparation = Preparation(device=settings.machine.device, folder=folder)
    if not reads_items(items):
        if data.encoder is not None:
            raise UnveilError(f"the encoder {data.encoder} needs images, and these are vectors: leave the encoder out")
        if items.kind == "table":
            return replace(preparation, kind="table", table=fit_table(items.table, items.table.names)[0])
        return preparation
    if not items.are_images:
        return _prepare_texts(items, preparation, data.encoder or TFIDF)
    preparation = replace(preparation, kind="images")
    if data.encoder is not None:
        side = choose_encoder(items, data.encoder)
        return replace(preparation, encoder=data.encoder, encoder_side=data.encoder_size or side)
    if items.kind == "files":
        return preparation if settings.augment.size is not None else replace(preparation, side=SIDE)
    height, width, channels = items.array.shape[1:]
    usable = height == width <= LARGEST_SIDE and len(data.mean) in (1, channels)
    return preparation if usable else replace(preparation, side=SIDE)


def _prepare_texts(items: Items, preparation: Preparation, encoder: str) -> Preparation:
    """Texts, alone or in a table, by an encoder."""
    table = fit_table(items.table, items.table.names)[0] if items.kind == "table" else None
    names = encoder.split(TOGETHER)
    if bad := [name for name in names if name != TFIDF and not reads_texts(name)]:
        raise not_for_texts(bad[0])
    return replace(
        preparation,
        kind="texts" if table is None else "table",
        encoder=encoder,
        table=table,
        tfidf=fit_tfidf(items.texts) if TFIDF in names else None,
    )


def with_reduction(preparation: Preparation, items: Items, settings: Settings) -> Preparation:
    """The preparation with the unit length and principal components that a recipe asks for."""
    data = settings.data
    if not data.unit and data.pca is None:
        return preparation
    if items.kind != "vectors":
        raise UnveilError("data.unit and data.pca are for vectors, and these are images: leave them out")
    vectors = items.array if items.array.ndim == 2 else items.array[:, 0]
    return replace(preparation, reduction=fit_reduction(np.asarray(vectors), unit=data.unit, components=data.pca))
