"""A finished discovery as something to look at: items with pictures or numbers, classes, features, words.

Report and review page read a run directory through this and nothing else.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unveil import files
from unveil.data.views import read_image
from unveil.discovery.own_data import read_items
from unveil.errors import UnveilError


@dataclass(frozen=True, kw_only=True)
class Look:
    """Rows are in the order of items.csv: known items first, then new ones."""

    run: Path
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    """Known ones first, then the clusters."""
    n_known: int
    labels: NDArray[np.int64]
    """(n,): index into `classes`."""
    new: NDArray[np.bool_]
    """(n,): which rows came without a label."""
    confidence: NDArray[np.float32]
    typicality: NDArray[np.float32]
    """(n,): cosine to the mean of its class; the most typical first."""
    kmeans: NDArray[np.int64]
    """(n,): what k-means says; clusters have other numbers there."""
    record: dict[str, Any]
    paths: tuple[str, ...] = field(repr=False)
    """Image files, or empty texts."""

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """(n, D), memory-mapped."""
        found: NDArray[np.float32] = np.load(self.run / "features.npy", mmap_mode="r", allow_pickle=False)
        return found

    @cached_property
    def pictures(self) -> NDArray[np.uint8] | None:
        """(n, h, w, channels) where images came as an array."""
        path = self.run / "pictures.npy"
        return np.load(path, mmap_mode="r", allow_pickle=False) if path.exists() else None

    @cached_property
    def inputs(self) -> NDArray[np.float32] | None:
        """(n, d): the vectors as they were given, where they are few enough."""
        path = self.run / "inputs.npy"
        return np.load(path, mmap_mode="r", allow_pickle=False) if path.exists() else None

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """Losses and diagnostics by epoch; empty where nothing was trained."""
        import json

        path = self.run / "work" / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def name(self) -> str:
        """What the run is called."""
        return str(self.record.get("name") or self.run.resolve().name)

    def column(self, number: int) -> str:
        """What a column of `inputs`, counted from 0, is called."""
        names = self.record.get("columns") or ()
        return str(names[number]) if number < len(names) else f"column {number + 1}"

    @property
    def has_pictures(self) -> bool:
        return self.pictures is not None or any(self.paths)

    def picture(self, row: int, size: int) -> Image.Image | None:
        """At most size x size, or None where there is none or it cannot be read."""
        if self.paths[row]:
            try:
                found = read_image(Path(self.paths[row]), at_least=size)
            except UnveilError:
                return None
        elif self.pictures is not None:
            pixels = np.asarray(self.pictures[row])
            found = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("RGB")
        else:
            return None
        if max(found.size) > size:
            found.thumbnail((size, size))
        return found


def load(run: Path) -> Look:
    """The finished discovery in a run directory."""
    rows = read_items(run)
    record, stored = files.read_json(run / "record.json"), files.read_json(run / "estimator.json")
    known = [str(name) for name in stored["known"]]
    with np.load(run / "rows.npz", allow_pickle=False) as arrays:
        kept = {key: arrays[key] for key in arrays.files}
    names = {int(index): row["label"] for index, row in zip(kept["labels"], rows, strict=True)}
    clusters = [names.get(len(known) + i, f"novel-{i}") for i in range(stored["n_novel"])]
    return Look(
        run=run,
        ids=tuple(row["id"] for row in rows),
        classes=(*known, *clusters),
        n_known=len(known),
        labels=kept["labels"].astype(np.int64),
        new=np.array([row["part"] == "new" for row in rows]),
        confidence=kept["confidence"].astype(np.float32),
        typicality=kept["typicality"].astype(np.float32),
        kmeans=kept["kmeans"].astype(np.int64),
        record=record,
        paths=tuple(row["path"] for row in rows),
    )
