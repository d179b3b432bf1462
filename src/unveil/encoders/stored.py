"""Embeddings of images or texts by a pretrained encoder, kept for the next time where a folder is given."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from torch import Tensor

from unveil import checksums, ranks, storage
from unveil.data.items import Images, Items, Vectors
from unveil.data.pictures import THUMBNAIL_SIDE, KeepPicture, read_image
from unveil.encoders import registry
from unveil.encoders.kept import EMBEDDINGS, KeptEmbeddings
from unveil.encoders.pretrained import pretrained
from unveil.encoders.text import text_encoder
from unveil.encoders.text_pieces import InPieces
from unveil.errors import DamagedError, UnveilError

CHUNK = 32  # images at a time: their activations stay in a CPU's cache
TEXTS = 256  # texts at a time
LONG = 30
"""Seconds from which a computation is announced."""


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """Computes embeddings: a pretrained encoder by name, the side of its images, and where embeddings are stored."""

    name: str
    size: int
    """Side of images in pixels; 0 for texts."""
    device: torch.device
    precision: torch.dtype
    folder: Path | None
    """Directory of stored embeddings; None: they are not stored."""
    console: Console
    keep: KeepPicture | None = None
    """Given each image file that is decoded, where it has the pixels that a thumbnail needs."""

    def __call__(self, items: Items, *, skip_unreadable: bool = False) -> Vectors:
        """(n, D). With `skip_unreadable` the rows of files that are not images are NaN; else they are an error."""
        if items.are_vectors:
            raise UnveilError(
                f"the encoder {self.name} needs images or texts, and these are vectors: leave the encoder out"
            )
        read = self._computed if self.folder is None else self._stored
        vectors = read(items, skip_unreadable)
        unreadable = np.isnan(vectors[:, 0])
        if not skip_unreadable and unreadable.any():
            bad = items.paths[int(unreadable.argmax())]
            raise UnveilError(f"cannot read the image {bad}: replace or remove the file")
        return vectors

    def _stored(self, items: Items, skip_unreadable: bool) -> Vectors:
        """Load embeddings from the folder, memory-mapped; compute and store them first where they are missing."""
        assert self.folder is not None
        kept, keys = KeptEmbeddings(self.folder, self.name, self.size), items.keys(self.folder)
        path = kept.folder(keys) / EMBEDDINGS
        with storage.locked(path.parent):
            vectors = self._sound(path)
            if vectors is None:
                vectors, missing = ranks.current().from_first(lambda: kept.reused(keys))
                if len(missing):
                    made = self._computed(items if vectors is None else items.take(missing), skip_unreadable)
                    if vectors is None:
                        vectors = made
                    else:
                        vectors[missing] = made
                if items.are_files and (items.keys(self.folder) != keys).any():
                    raise UnveilError("some items changed while they were read: run again when all are in place")
                assert vectors is not None
                kept.save(path.parent, keys, vectors)
            elif (rows := _readable_now(items, vectors)).size:
                vectors = np.array(vectors)
                vectors[rows] = self._computed(items.take(rows), skip_unreadable=True)
                kept.save(path.parent, keys, vectors)
        return checksums.load_array(path, "run again", mapped=True)

    def _sound(self, path: Path) -> Vectors | None:
        """Stored embeddings; None where there are none. Damaged ones are set aside."""
        try:
            return checksums.load_array(path, "it is made again", mapped=True) if path.exists() else None
        except DamagedError as error:
            aside = checksums.set_aside(path).name
            self.console.print(f"warning: {error}; it was renamed to {aside}", style="yellow", soft_wrap=True)
            return None

    def _computed(self, items: Items, skip_unreadable: bool) -> Vectors:
        together = ranks.current()
        own = items.take(together.part(len(items)))
        read = self._of_texts(own) if items.read_as == "texts" else self._of_images(own, skip_unreadable)
        return together.gather(torch.from_numpy(np.concatenate(list(read))), len(items)).numpy()

    def _of_texts(self, items: Items) -> Iterator[Vectors]:
        encode = text_encoder(self.name, self.device)
        self.console.print(f"embeddings of {len(items):,} texts by {self.name}", soft_wrap=True)
        for piece in self._announced(items.pieces(TEXTS)):
            yield encode(piece.texts)
        if isinstance(encode, InPieces) and encode.longer:
            self.console.print(
                f"{encode.longer:,} of {len(items):,} texts are longer than the {encode.most} tokens that {self.name} "
                "reads at once: the mean over their pieces is taken",
                soft_wrap=True,
            )

    def _announced(self, pieces: Sequence[Items]) -> Iterator[Items]:
        """The pieces with a progress bar; where they take long, how long is said after the first ones."""
        console, begun = self.console, time.monotonic()
        shown = track(pieces, "embeddings", console=console, transient=True, disable=not console.is_terminal)
        for number, piece in enumerate(shown):
            if number == 2 and (seconds := (time.monotonic() - begun) / 2 * len(pieces)) > LONG:
                kept = "" if self.folder is None else "; embeddings are kept for the next time"
                faster = "; --quick (quick=True) is faster" if registry.has_quicker(self.name) else ""
                console.print(f"about {_duration(seconds)}{kept}{faster}", soft_wrap=True)
            yield piece

    @torch.no_grad()
    def _of_images(self, items: Items, skip_unreadable: bool) -> Iterator[Vectors]:
        encoder, device, console = pretrained(self.name, self.device), self.device, self.console
        size = encoder.size or self.size
        console.print(f"embeddings of {len(items):,} images by {self.name} at {size} pixels", soft_wrap=True)
        mean = torch.tensor(encoder.mean, device=device).view(1, 3, 1, 1)
        std = torch.tensor(encoder.std, device=device).view(1, 3, 1, 1)
        keep = self.keep if 2 * size >= THUMBNAIL_SIDE else None  # `read_image` decodes at twice the size
        for piece in self._announced(items.pieces(CHUNK)):
            x, readable = pictures(piece, size, skip_unreadable, keep)
            x = ((x.to(device) - mean) / std).contiguous(memory_format=torch.channels_last)
            with torch.autocast(device.type, self.precision, enabled=self.precision != torch.float32):
                vectors = encoder.features(x).float().cpu().numpy()
            vectors[~readable] = np.nan
            yield vectors


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"


def _readable_now(items: Items, vectors: Vectors) -> NDArray[np.int64]:
    """Rows of images that could not be read when their embeddings were stored, and can be read now."""
    missing = np.flatnonzero(np.isnan(vectors[:, 0])) if items.are_files else np.zeros(0, dtype=np.int64)
    return missing[[_is_readable(items.paths[row]) for row in missing]] if len(missing) else missing


def _is_readable(path: Path) -> bool:
    try:
        read_image(path)
    except UnveilError:
        return False
    return True


def pictures(
    items: Items, size: int, skip_unreadable: bool = False, keep: KeepPicture | None = None
) -> tuple[Tensor, NDArray[np.bool_]]:
    """Images as a tensor (B, 3, size, size) in 0..1, and a mask (B,) of those that could be read. `keep` is given each
    file as it was decoded."""
    if not items.are_files:
        x = torch.from_numpy(np.ascontiguousarray(items.array)).permute(0, 3, 1, 2).float() / 255
        x = x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x
        x = F.interpolate(x, (size, size), mode="bicubic", align_corners=False, antialias=True).clamp_(0, 1)
        return x, np.ones(len(x), dtype=bool)
    readable = np.ones(len(items), dtype=bool)
    pixels = np.zeros((len(items), size, size, 3), dtype=np.uint8)
    for row, path in enumerate(items.paths):
        try:
            picture = read_image(path, at_least=size)
        except UnveilError:
            if not skip_unreadable:
                raise
            readable[row] = False
            continue
        pixels[row] = np.asarray(picture.resize((size, size)))
        if keep is not None:
            keep(path, picture)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255, readable


def square_images(items: Items, side: int) -> tuple[Images, NDArray[np.bool_]]:
    """Images (n, side, side, 3) in memory, and a mask (n,) of those that could be read; the others are black."""
    images, readable = [], []
    for piece in items.pieces(512):
        x, read = pictures(piece, side, skip_unreadable=True)
        images.append((x * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy())
        readable.append(read)
    return np.concatenate(images), np.concatenate(readable)
