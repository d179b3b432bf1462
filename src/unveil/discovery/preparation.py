"""How items as people give them become what a model sees: a frozen encoder or a common size, then scaling.

What was done to the items of a fit is done to new items in the same way, so it is saved with the predictor.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from unveil import hardware
from unveil.data.items import Items, Vectors
from unveil.data.scaling import Reduction
from unveil.data.task import Task
from unveil.errors import UnveilError
from unveil.models import pretrained
from unveil.models.embedding import Embedding, pictures, square_images
from unveil.settings import Machine

PIXELS = "pixels"
PIXEL_SIDE = 32
"""Side to which larger images are scaled where their pixels are the vectors."""
SMALL, LARGE = 96, 192
"""Side at which a pretrained encoder sees images: of up to 64 pixels, and larger ones."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What is done to items before a model sees them; every part may be left out."""

    encoder: str | None = None
    """A frozen encoder that turns images into vectors: `pixels`, or a name that `models.pretrained` knows."""
    encoder_side: int = SMALL
    """Side in pixels at which it sees the images."""
    side: int | None = None
    """Images without a frozen encoder: scaled to squares of this side, in colour."""
    reduction: Reduction | None = None
    """Vectors: scaling and principal components."""
    device: str = "auto"
    folder: Path | None = None
    """Where embeddings are kept; None: nowhere."""

    def encoded(self, items: Items, console: Console) -> tuple[Items, NDArray[np.bool_]]:
        """The items that can be read, after the encoder and before scaling, and which of the given ones those are."""
        if self.encoder is not None:
            vectors = self._vectors(items, console)
            readable = ~np.isnan(vectors[:, 0])
            return Items.of(vectors if readable.all() else vectors[readable]), readable
        if self.side is not None:
            images, readable = square_images(items, self.side)
            return Items.of(images if readable.all() else images[readable]), readable
        return items, np.ones(len(items), dtype=bool)

    def reduced(self, task: Task) -> Task:
        """A task of encoded items with its vectors scaled and on their principal components."""
        if self.reduction is None:
            return task
        test = None if task.test_items is None else Items.of(self.reduction(task.test_items.array))
        return replace(task, items=Items.of(self.reduction(task.items.array)), test_items=test)

    def _vectors(self, items: Items, console: Console) -> Vectors:
        if self.encoder == PIXELS:
            return pixels(items)
        assert self.encoder is not None
        device = hardware.pick_device(self.device)
        embedding = Embedding(
            name=self.encoder,
            size=self.encoder_side,
            device=device,
            precision=hardware.pick_precision(Machine(), device),
            folder=self.folder,
            console=console,
        )
        return embedding(items, skip_unreadable=True)

    def check_kind(self, items: Items, given: str) -> None:
        """New items must be of the kind that the fit was on."""
        images = self.encoder is not None or self.side is not None
        if images and items.kind == "vectors":
            raise UnveilError(f"the fit was on images, and {given} holds vectors: give images")
        if self.reduction is not None and not images and items.kind != "vectors":
            raise UnveilError(f"the fit was on vectors, and {given} holds images: give their vectors")

    def to_json(self) -> dict[str, Any]:
        """All but the arrays of the reduction and this machine's own folder and device."""
        return {key: getattr(self, key) for key in ("encoder", "encoder_side", "side")}


def choose_encoder(items: Items, name: str) -> int:
    """The side at which a frozen encoder sees these images; an encoder that cannot be had is an error."""
    small = items.kind == "images" and max(items.array.shape[1:3]) <= 64
    if name != PIXELS:
        pretrained.pretrained(name, torch.device("cpu"))  # an error now rather than after the images are read
    return SMALL if small else LARGE


def pixels(items: Items) -> Vectors:
    """Pixels as vectors in 0..1, scaled to 32x32 where they are more; NaN where a file cannot be read."""
    if items.kind == "images" and max(items.array.shape[1:3]) <= PIXEL_SIDE:
        return (items.array.reshape(len(items), -1) / np.float32(255)).astype(np.float32)
    grey = items.kind == "images" and items.array.shape[-1] == 1
    parts = []
    for piece in items.pieces(512):
        x, readable = pictures(piece, PIXEL_SIDE, skip_unreadable=True)
        vectors = (x[:, :1] if grey else x).flatten(1).numpy()
        vectors[~readable] = np.nan
        parts.append(vectors)
    return np.concatenate(parts)
