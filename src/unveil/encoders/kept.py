"""Embeddings on disk, found again by the content of each item: what stands beside it, in which order and with which
labels, does not matter."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil import checksums, storage
from unveil.data.file_hashes import UNREADABLE
from unveil.data.items import Vectors
from unveil.errors import DamagedError

Keys = NDArray[np.bytes_]
EMBEDDINGS = "embeddings.npy"


@dataclass(frozen=True)
class KeptEmbeddings:
    """What one encoder at one size made of items, in the folders of a store: one folder for each set of items that was
    asked for, with its embeddings and the keys of its items."""

    store: Path
    encoder: str
    size: int

    @property
    def _keys_name(self) -> str:
        return f"items-{storage.identity(embed=[self.encoder, self.size])}.npy"

    def folder(self, keys: Keys) -> Path:
        """The folder of the items with these keys, in this order."""
        items = hashlib.sha256(keys.tobytes()).hexdigest()
        return self.store / storage.identity(embed=[self.encoder, self.size], data=items)

    def save(self, folder: Path, keys: Keys, vectors: Vectors) -> None:
        """Keep the embeddings of the items with these keys."""
        checksums.save_array(folder / self._keys_name, keys)
        checksums.save_array(folder / EMBEDDINGS, vectors)

    def reused(self, keys: Keys) -> tuple[Vectors | None, NDArray[np.int64]]:
        """Embeddings of the items that are in any of the folders, and the rows of the others (NaN)."""
        vectors: Vectors | None = None
        missing = np.arange(len(keys))
        for path in sorted(self.store.glob(f"*/{self._keys_name}")):
            if not len(missing):
                break
            try:
                kept = checksums.load_array(path, "it is left out")
                order = np.argsort(kept)
                places = order[np.minimum(np.searchsorted(kept[order], keys[missing]), len(kept) - 1)]
                there = (kept[places] == keys[missing]) & (keys[missing] != UNREADABLE.encode())
                if not there.any():
                    continue
                others = checksums.load_array(path.with_name(EMBEDDINGS), "it is left out", mapped=True)
            except DamagedError:
                continue
            there[there] = np.isfinite(others[places[there], 0])  # files that could not be read then
            vectors = np.full((len(keys), others.shape[1]), np.nan, np.float32) if vectors is None else vectors
            vectors[missing[there]] = others[places[there]]
            missing = missing[~there]
        return vectors, missing
