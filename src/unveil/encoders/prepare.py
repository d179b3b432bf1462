"""Which preparation suits the items of a task: what the settings say, and what follows from the items."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from unveil.data.items import SMALL_SIDE, Items
from unveil.data.table_encoding import fit_table
from unveil.encoders import registry
from unveil.encoders.preparation import Preparation, choose_encoder
from unveil.encoders.scaling import fit_reduction
from unveil.encoders.tfidf import fit_tfidf
from unveil.errors import UnveilError
from unveil.settings import Settings

SIDE = 32
"""Side of own images in pixels, where the recipe does not say."""


def prepare(items: Items, settings: Settings, *, folder: Path | None) -> Preparation:
    """What is done to the items before training; embeddings are kept in `folder`."""
    data = settings.data
    preparation = Preparation(device=settings.machine.device, folder=folder)
    if items.read_as is None:
        if data.encoder is not None:
            raise UnveilError(f"the encoder {data.encoder} needs images, and these are vectors: leave the encoder out")
        if items.are_table:
            return replace(preparation, kind="table", table=fit_table(items.table, items.table.names)[0])
        return preparation
    if not items.are_images:
        return _prepare_texts(items, preparation, data.encoder or registry.TFIDF)
    preparation = replace(preparation, kind="images")
    if data.encoder is not None:
        side = choose_encoder(items, data.encoder, quick=data.quick)
        return replace(preparation, encoder=data.encoder, encoder_side=data.encoder_size or side)
    if items.are_files:
        return preparation if settings.augment.size is not None else replace(preparation, side=SIDE)
    height, width, channels = items.array.shape[1:]
    usable = height == width <= SMALL_SIDE and len(data.mean) in (1, channels)
    return preparation if usable else replace(preparation, side=SIDE)


def _prepare_texts(items: Items, preparation: Preparation, encoder: str) -> Preparation:
    """Texts, alone or in a table, by an encoder."""
    table = fit_table(items.table, items.table.names)[0] if items.are_table else None
    names = encoder.split(registry.TOGETHER)
    for name in names:
        registry.find(name, "texts")
    return replace(
        preparation,
        kind="texts" if table is None else "table",
        encoder=encoder,
        table=table,
        tfidf=fit_tfidf(items.texts) if registry.TFIDF in names else None,
    )


def with_reduction(preparation: Preparation, items: Items, settings: Settings) -> Preparation:
    """The preparation with the unit length and principal components that a recipe asks for."""
    data = settings.data
    if not data.unit and data.pca is None:
        return preparation
    if not items.are_vectors:
        raise UnveilError("data.unit and data.pca are for vectors, and these are images: leave them out")
    vectors = items.array if items.array.ndim == 2 else items.array[:, 0]
    return replace(preparation, reduction=fit_reduction(np.asarray(vectors), unit=data.unit, components=data.pca))
