"""Write a run directory: the items with their labels, features and pictures, the settings and the record.

Every command that produces labels writes through `write`, so that report, review, export, predict and continue work on
every run. The files and the keys of record.json are described in docs/run-directory.md.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil import checksums, files

SCHEMA = 1  # version of the layout of the directory; the reader refuses others
ITEM_COLUMNS = ("id", "part", "given", "label", "kind", "confidence", "path")
PREDICTION_COLUMNS = ("id", "label", "kind", "confidence")
ARRAYS, MODELS = ("features.npy", "pictures.npy", "inputs.npy"), ("model.safetensors", "predictor.safetensors")
SUMMED = ("config.toml", "items.csv", "predictions.csv", "rows.npz", *ARRAYS, "metrics.jsonl", *MODELS)
"""Files whose checksums are in the record."""
PICTURE_SIDE = 64  # pictures that came as an array are reduced to at most this many pixels a side
MOST_INPUTS = 20_000_000
"""Input matrices with more values than this are not stored: they are only for display, and may be huge."""
DEFAULTS: dict[str, Any] = {
    **{"name": None, "source": {"kind": "arrays"}, "recipe": None, "method": None, "seed": None},
    **{"summary": {}, "estimate": None, "forecast": None, "metrics": {}, "seconds": {}, "warnings": [], "skipped": []},
    **{"config": {}, "environment": {}},
}
"""Keys of record.json that a caller may leave out, and the values that are written then."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything about a finished run. Rows (n) are items: those that came with a label, then the new ones."""

    ids: Sequence[str]  # (n,): unique
    new: NDArray[np.bool_]  # (n,): the item came without a label
    given: Sequence[str]  # (n,): the label that the item came with, as text; "" for new items
    labels: NDArray[np.int64]  # (n,): the class of each item, an index into `classes`
    classes: Sequence[str]  # names of the classes: known ones first, then novel ones
    n_known: int  # how many of `classes` are known
    confidence: NDArray[np.float32]
    """(n,): estimated probability that the label is right; 1 for items that came with it."""
    typicality: NDArray[np.float32]  # (n,): cosine to the mean direction of the item's class
    kmeans: NDArray[np.int64]
    """(n,): the label that k-means without training gives. Its clusters are numbered from `n_known` in any order."""
    features: NDArray[np.float32] | None
    """(n, D): the vectors in which the classes were found; None where they were not kept."""
    paths: Sequence[str] = ()  # (n,): image files; "" for an item without one. Empty: no item has one.
    pictures: NDArray[np.uint8] | None = None  # (n, height, width, channels), where images came as an array
    inputs: NDArray[np.floating[Any]] | None = None  # (n, d), where vectors or tables were given
    columns: Sequence[str] = ()  # (d,): names of the columns of `inputs`, where they have any
    texts: Sequence[str] = ()  # (n,): the items as text, where they are texts. Names of classes are suggested from it.
    words: Sequence[str] = ()
    """(n,): words that fit each image, where the encoder reads words. Names of classes are suggested from them."""
    truth: Mapping[str, str] | None = None  # the true class of new items by id, where it is known
    record: Mapping[str, Any]
    """record.json without the keys that follow from the fields above; `DEFAULTS` fills in missing ones."""
    config: str  # the settings, as TOML
    history: Sequence[Mapping[str, Any]] = ()
    """Metrics by epoch. Empty: a metrics.jsonl that training has written is left as it is."""

    def __post_init__(self) -> None:
        fields = ("new", "given", "labels", "confidence", "typicality", "kmeans", "features", "pictures", "inputs")
        for name in (*fields, *(name for name in ("paths", "texts", "words") if getattr(self, name))):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.ids):
                raise ValueError(f"{name} has {len(value)} rows and there are {len(self.ids)} items")
        if not 0 <= self.n_known <= len(self.classes):
            raise ValueError(f"n_known is {self.n_known} of {len(self.classes)} classes")
        if len(self.labels) and not (self.labels.min() >= 0 and self.labels.max() < len(self.classes)):
            raise ValueError(f"labels are {self.labels.min()} to {self.labels.max()} for {len(self.classes)} classes")


def write(folder: Path, contents: Contents) -> dict[str, Any]:
    """Write all files; record.json comes last and marks the run as finished. Returns the record."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "record.json").unlink(missing_ok=True)
    files.write(folder / "config.toml", contents.config)
    _write_arrays(folder, contents)
    _write_tables(folder, contents)
    for name, lines in (("texts", contents.texts), ("words", contents.words)):
        if lines:
            files.write_json(folder / f"{name}.json", list(lines))
    if contents.history:
        files.write(folder / "metrics.jsonl", "".join(json.dumps(dict(line)) + "\n" for line in contents.history))
    record: dict[str, Any] = json.loads(json.dumps(_complete(contents)))
    sums = {name: checksums.of_file(folder / name) for name in SUMMED if (folder / name).exists()}
    record = checksums.with_checksum({**record, "checksums": sums})
    files.write_json(folder / "record.json", record)
    return record


def _complete(contents: Contents) -> dict[str, Any]:
    """The record with everything that follows from the other fields."""
    given = {**DEFAULTS, **contents.record}
    first = ("name", "source", "recipe", "method", "seed")
    new = int(np.count_nonzero(contents.new))
    return {
        "schema": SCHEMA,
        **{key: given[key] for key in first},
        "known": list(contents.classes[: contents.n_known]),
        "novel": list(contents.classes[contents.n_known :]),
        "n_novel": len(contents.classes) - contents.n_known,
        "items": {"known": len(contents.ids) - new, "new": new},
        "columns": list(contents.columns),
        **{key: value for key, value in given.items() if key not in first},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _write_arrays(folder: Path, contents: Contents) -> None:
    def save(name: str, array: NDArray[Any]) -> None:
        files.write_with(folder / name, lambda file: np.save(file, array, allow_pickle=False))

    types = {"labels": np.int64, "confidence": np.float32, "typicality": np.float32, "kmeans": np.int64}
    rows: dict[str, Any] = {name: getattr(contents, name).astype(kind) for name, kind in types.items()}
    files.write_with(folder / "rows.npz", lambda file: np.savez(file, **rows))
    if contents.features is not None:
        save("features.npy", contents.features.astype(np.float32, copy=False))
    if contents.pictures is not None:
        step = max(1, -(-max(contents.pictures.shape[1:3]) // PICTURE_SIDE))
        save("pictures.npy", contents.pictures[:, ::step, ::step])
    if contents.inputs is not None and contents.inputs.size <= MOST_INPUTS:
        save("inputs.npy", contents.inputs.astype(np.float32, copy=False))


def _write_tables(folder: Path, contents: Contents) -> None:
    """items.csv, predictions.csv and, where the truth is known, truth.csv."""
    paths = contents.paths or [""] * len(contents.ids)
    lines = []
    for row, name in enumerate(contents.ids):
        part = "new" if contents.new[row] else "known"
        label = contents.classes[contents.labels[row]]
        kind = "known" if contents.labels[row] < contents.n_known else "novel"
        lines.append((name, part, contents.given[row], label, kind, f"{contents.confidence[row]:.6f}", paths[row]))
    files.write(folder / "items.csv", files.csv_text(ITEM_COLUMNS, lines))
    new = [(name, label, kind, confidence) for name, part, _, label, kind, confidence, _ in lines if part == "new"]
    files.write(folder / "predictions.csv", files.sheet_text(PREDICTION_COLUMNS, new))
    if contents.truth is not None:
        files.write(folder / "truth.csv", files.csv_text(("id", "label"), contents.truth.items()))
