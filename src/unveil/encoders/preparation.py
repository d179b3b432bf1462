"""Turn items as given into inputs of a model: a frozen encoder, numbers of a table, a common image size, scaling.

New items are prepared in the same way as those of the fit, so the preparation is saved with the predictor.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from unveil import hardware
from unveil.data.items import Items, Vectors
from unveil.data.pictures import KeepPicture
from unveil.data.table import Table
from unveil.data.table_encoding import TableEncoding
from unveil.data.task import Task
from unveil.encoders import gradients as gradients_of
from unveil.encoders import pretrained
from unveil.encoders.scaling import Reduction
from unveil.encoders.stored import Embedding, pictures, square_images
from unveil.encoders.tfidf import NAME as TFIDF
from unveil.encoders.tfidf import Tfidf
from unveil.errors import UnveilError
from unveil.numerics import unit_rows
from unveil.settings import Machine

PIXELS, GRADIENTS = "pixels", "gradients"
TOGETHER = "+"
"""Between names of encoders whose vectors are put side by side."""
PIXEL_SIDE = 32
"""Side in pixels to which larger images are scaled where pixels are used as vectors."""
SMALL, LARGE = 96, 192
"""Side in pixels of the inputs of a pretrained encoder, for images of up to 64 pixels and for larger ones."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What is done to items before a model sees them; every step may be left out."""

    kind: Literal["images", "texts", "table"] | None = None
    """What the items are; None: vectors."""
    encoder: str | None = None
    """A frozen encoder that turns images or texts into vectors: `pixels`, `gradients`, `tfidf`, or a name that
    `models.pretrained` or `models.text_encoders` knows."""
    encoder_side: int = SMALL
    """Side in pixels of the inputs of the frozen encoder."""
    side: int | None = None
    """Images without a frozen encoder: scaled to squares of this side in pixels, in color."""
    tfidf: Tfidf | None = None
    """Texts without a pretrained encoder: words and directions."""
    table: TableEncoding | None = None
    """Tables: how each column becomes numbers."""
    reduction: Reduction | None = None
    """Vectors: scaling and principal components."""
    device: str = "auto"
    folder: Path | None = None
    """Directory of stored embeddings; None: they are not stored."""

    def encoded(
        self, items: Items, console: Console, keep: KeepPicture | None = None
    ) -> tuple[Items, NDArray[np.bool_]]:
        """The readable items after the encoder and before scaling, and a mask (n,) of the items that are readable.
        `keep` is given each image file that a pretrained encoder reads, as it was decoded."""
        if items.kind == "table":
            return Items.of(self._table_vectors(items.table, console)), np.ones(len(items), dtype=bool)
        if self.encoder is not None:
            vectors = self._vectors(items, console, keep)
            readable = ~np.isnan(vectors[:, 0])
            return Items.of(vectors if readable.all() else vectors[readable]), readable
        if self.side is not None:
            images, readable = square_images(items, self.side)
            return Items.of(images if readable.all() else images[readable]), readable
        return items, np.ones(len(items), dtype=bool)

    def shown(self, items: Items) -> Vectors | None:
        """Items as the numbers that people gave: vectors, or the numbers and categories of a table."""
        if items.kind == "table":
            assert self.table is not None
            return self.table.shown(items.table).astype(np.float32) if self.table.has_numbers else None
        return items.array if items.kind == "vectors" and items.array.ndim == 2 else None

    def reduced(self, task: Task) -> Task:
        """A task of encoded items with its vectors scaled and on their principal components."""
        if self.reduction is None:
            return task
        test = None if task.test_items is None else Items.of(self.reduction(task.test_items.array))
        return replace(task, items=Items.of(self.reduction(task.items.array)), test_items=test)

    def _table_vectors(self, table: Table, console: Console) -> Vectors:
        """Numbers and categories scaled; beside a text both weigh as much as it does."""
        assert self.table is not None
        numbers = self.table(table)
        if self.table.text is None:
            return numbers
        texts = unit_rows(self._vectors(Items.of_texts(table.texts(self.table.text)), console))
        weight = np.float32(1 / max(1, len(self.table.columns) - 1) ** 0.5)
        return np.concatenate([texts, numbers * weight], axis=1).astype(np.float32)

    def _vectors(self, items: Items, console: Console, keep: KeepPicture | None = None) -> Vectors:
        assert self.encoder is not None
        if TOGETHER in self.encoder:
            parts = [replace(self, encoder=name)._vectors(items, console) for name in self.encoder.split(TOGETHER)]
            return np.concatenate([unit_rows(part) for part in parts], axis=1)
        if self.encoder in BUILT_IN:
            return BUILT_IN[self.encoder](items)
        if self.encoder == TFIDF:
            assert self.tfidf is not None
            return self.tfidf(items.texts)
        device = hardware.pick_device(self.device)
        embedding = Embedding(
            name=self.encoder,
            size=self.encoder_side if items.are_images else 0,
            device=device,
            precision=hardware.pick_precision(Machine(), device),
            folder=self.folder,
            console=console,
            keep=keep,
        )
        return embedding(items, skip_unreadable=True)

    def check_kind(self, items: Items, given: str) -> None:
        """Raise an error where new items are not of the kind that was fitted."""
        fitted: str = self.kind or ("images" if self.encoder is not None or self.side is not None else "vectors")
        if fitted == "vectors" and self.reduction is None:
            return
        holds = "images" if items.are_images else items.kind
        if fitted != holds:
            what = "their vectors" if fitted == "vectors" else "a table" if fitted == "table" else fitted
            words = "a table" if holds == "table" else holds
            raise UnveilError(f"the fit was on {fitted}, and {given} holds {words}: give {what}")

    def to_json(self) -> dict[str, Any]:
        """The fields for a JSON file: without arrays, folder and device."""
        table = None if self.table is None else self.table.to_json()
        return {**{key: getattr(self, key) for key in ("kind", "encoder", "encoder_side", "side")}, "table": table}

    @staticmethod
    def from_json(values: dict[str, Any], **others: Any) -> "Preparation":
        """What `to_json` gave, and the other fields."""
        table = values.pop("table", None)
        return Preparation(**values, table=None if table is None else TableEncoding.from_json(table), **others)


def choose_encoder(items: Items, name: str) -> int:
    """The side in pixels of the encoder's inputs for these images; an encoder that is not available is an error."""
    small = items.kind == "images" and max(items.array.shape[1:3]) <= 64
    for part in name.split(TOGETHER):
        if part not in BUILT_IN:
            pretrained.pretrained(part, torch.device("cpu"))  # an error now rather than after the images are read
    return SMALL if small else LARGE


def pixels(items: Items) -> Vectors:
    """Pixels as vectors in 0..1; larger images are scaled to 32x32. Rows of unreadable files are NaN."""
    if items.kind == "images" and max(items.array.shape[1:3]) <= PIXEL_SIDE:
        return (items.array.reshape(len(items), -1) / np.float32(255)).astype(np.float32)
    gray = items.kind == "images" and items.array.shape[-1] == 1
    pieces = []
    for piece in items.pieces(512):
        x, readable = pictures(piece, PIXEL_SIDE, skip_unreadable=True)
        vectors = (x[:, :1] if gray else x).flatten(1).numpy()
        vectors[~readable] = np.nan
        pieces.append(vectors)
    return np.concatenate(pieces)


def gradients(items: Items) -> Vectors:
    """Histograms of the gradients of gray images. Rows of unreadable files are NaN."""
    pieces = []
    for piece in items.pieces(512):
        x, readable = pictures(piece, gradients_of.SIDE, skip_unreadable=True)
        vectors = gradients_of.gradient_histograms(x.mean(dim=1).numpy())
        vectors[~readable] = np.nan
        pieces.append(vectors)
    return np.concatenate(pieces)


BUILT_IN: dict[str, Callable[[Items], Vectors]] = {PIXELS: pixels, GRADIENTS: gradients}
"""Encoders of images that need no other package."""
