"""Turn items as given into inputs of a model: a frozen encoder, numbers of a table, a common image size, scaling.

New items are prepared in the same way as those of the fit, so the preparation is saved with the predictor.
"""

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
from unveil.encoders import pretrained, registry
from unveil.encoders.registry import TFIDF, TOGETHER
from unveil.encoders.scaling import Reduction
from unveil.encoders.stored import Embedding, square_images
from unveil.encoders.tfidf import Tfidf
from unveil.errors import UnveilError
from unveil.numerics import unit_rows
from unveil.settings import Machine


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What is done to items before a model sees them; every step may be left out."""

    kind: Literal["images", "texts", "table"] | None = None
    """What the items are; None: vectors."""
    encoder: str | None = None
    """A frozen encoder that turns images or texts into vectors: a name of the registry, or several with
    `+` between them."""
    encoder_side: int = 96
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
        if items.are_table:
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
        if items.are_table:
            assert self.table is not None
            return self.table.shown(items.table).astype(np.float32) if self.table.has_numbers else None
        return items.array if items.are_vectors and items.array.ndim == 2 else None

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
        if self.encoder == TFIDF:
            assert self.tfidf is not None
            return self.tfidf(items.texts)
        if (plain := registry.plain(self.encoder)) is not None:
            vectors: Vectors = plain(items)
            return vectors
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
        fitted = "a table" if fitted == "table" else fitted
        if fitted != items.called:
            what = "their vectors" if fitted == "vectors" else fitted
            raise UnveilError(f"the fit was on {fitted}, and {given} holds {items.called}: give {what}")

    def to_json(self) -> dict[str, Any]:
        """The fields for a JSON file: without arrays, folder and device."""
        table = None if self.table is None else self.table.to_json()
        return {**{key: getattr(self, key) for key in ("kind", "encoder", "encoder_side", "side")}, "table": table}

    @staticmethod
    def from_json(values: dict[str, Any], **others: Any) -> "Preparation":
        """What `to_json` gave, and the other fields."""
        table = values.pop("table", None)
        return Preparation(**values, table=None if table is None else TableEncoding.from_json(table), **others)


def choose_encoder(items: Items, names: str, *, quick: bool) -> int:
    """The side in pixels at which encoders see these images; an encoder that is not available is an error."""
    entries = [registry.find(name, "images") for name in names.split(TOGETHER)]
    for name, entry in zip(names.split(TOGETHER), entries, strict=True):
        if entry.stored:
            pretrained.pretrained(name, torch.device("cpu"))  # an error now rather than after the images are read
    small, large = registry.sides(next((entry for entry in entries if entry.stored), entries[0]), quick=quick)
    return small if items.are_small else large
