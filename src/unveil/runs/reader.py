"""Read a run directory: items, labels, confidences, features, pictures, settings. Needs no torch.

Report, review, export and `discover --continue` read a run through this and nothing else.
"""

import csv
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unveil import checksums, files
from unveil.errors import DamagedError, UnveilError
from unveil.runs.writer import ITEM_COLUMNS, SCHEMA

if TYPE_CHECKING:
    from PIL import Image

AGAIN = "run it again in a new directory, or copy it again"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run. Rows are items, in the order of items.csv: those that came with a label, then the new ones."""

    folder: Path
    ids: tuple[str, ...]
    new: NDArray[np.bool_]
    """(n,): the item came without a label."""
    given: tuple[str, ...] = field(repr=False)
    """(n,): the label that the item came with; "" for new items."""
    labels: NDArray[np.int64]
    """(n,): the class of each item, an index into `classes`."""
    classes: tuple[str, ...]
    """Names: known classes first, then novel ones."""
    n_known: int
    confidence: NDArray[np.float32]
    """(n,): estimated probability that the label is right."""
    typicality: NDArray[np.float32]
    """(n,): cosine to the mean direction of the item's class."""
    kmeans: NDArray[np.int64]
    """(n,): the label that k-means without training gives; its clusters have other numbers."""
    paths: tuple[str, ...] = field(repr=False)
    """(n,): image files; "" for an item without one."""
    record: dict[str, Any] = field(repr=False)
    """record.json"""
    gone: frozenset[int] = frozenset()
    """Numbers of novel classes that do not exist any more, because a review merged or emptied them."""

    @property
    def name(self) -> str:
        """The name in the record, or that of the folder."""
        return str(self.record.get("name") or self.folder.resolve().name)

    @property
    def n_novel(self) -> int:
        return len(self.novel)

    @property
    def novel(self) -> list[int]:
        """Numbers of the novel classes."""
        return [number for number in range(self.n_known, len(self.classes)) if number not in self.gone]

    @property
    def has_features(self) -> bool:
        return "features" in self.__dict__ or (self.folder / "features.npy").exists()

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """(n, D), memory-mapped: the vectors in which the classes were found."""
        if (features := self._array("features.npy")) is None:
            raise UnveilError(f"{self.folder} holds no features (features.npy): there were too many to be stored")
        return features

    @cached_property
    def pictures(self) -> NDArray[np.uint8] | None:
        """(n, height, width, channels), memory-mapped; None where images did not come as an array."""
        return self._array("pictures.npy")

    @cached_property
    def inputs(self) -> NDArray[np.float32] | None:
        """(n, d), memory-mapped: the vectors as they were given; None where they were not stored."""
        return self._array("inputs.npy")

    @cached_property
    def column_statistics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Mean and standard deviation of the columns of `inputs`; None where there are none."""
        x = self.inputs
        if x is None or x.ndim != 2:
            return None
        return x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)

    def column_differences(
        self, rows: NDArray[Any], mean: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(d,): the mean of rows in each column, and its difference to `mean` in standard deviations over all rows."""
        assert self.inputs is not None
        assert self.column_statistics is not None
        here, deviation = self.inputs[rows].mean(axis=0, dtype=np.float64), self.column_statistics[1]
        return here, np.divide(here - mean, deviation, out=np.zeros_like(here), where=deviation > 0)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """(n,): the items as text, from texts.json; empty where they are no texts."""
        return self._lines("texts.json")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """(n,): words that fit each image, from words.json; empty where the encoder reads no words."""
        return self._lines("words.json")

    def _lines(self, name: str) -> tuple[str, ...]:
        path = self.folder / name
        lines = tuple(map(str, files.read_json(path))) if path.exists() else ()
        return lines if len(lines) == len(self.ids) else ()

    def _array(self, name: str) -> NDArray[Any] | None:
        path = self.folder / name
        if not path.exists():
            return None
        verify_file(self.folder, self.record, name)
        array = checksums.read_array(path, AGAIN)
        if len(array) != len(self.ids):
            raise UnveilError(f"{path} and items.csv have different numbers of items: {AGAIN}")
        return array

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """Metrics by epoch; empty where nothing was trained."""
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            return []
        verify_file(self.folder, self.record, path.name)
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError, RecursionError) as error:
            raise UnveilError(f"{path} cannot be read ({error}): delete it, or {AGAIN}") from None
        return [line for line in lines if isinstance(line, dict)]

    def column(self, number: int) -> str:
        """The name of a column of `inputs`, counted from 0."""
        names = self.record.get("columns") or ()
        return str(names[number]) if number < len(names) else f"column {number + 1}"

    @property
    def has_pictures(self) -> bool:
        return self.pictures is not None or any(self.paths)

    def picture(self, row: int, size: int) -> "Image.Image | None":
        """The picture of an item, at most size x size; None where there is none or its file cannot be read."""
        from PIL import Image

        from unveil.data.pictures import read_image

        if self.paths[row]:
            try:
                picture = read_image(Path(self.paths[row]), at_least=size)
            except UnveilError:
                return None
        elif self.pictures is not None:
            pixels = np.asarray(self.pictures[row])
            picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("RGB")
        else:
            return None
        if max(picture.size) > size:
            picture.thumbnail((size, size))
        return picture


def load(folder: Path) -> Run:
    """Read a finished run."""
    record = read_record(folder)
    items, rows = _items(folder, record), _rows(folder, record)
    if any(len(values) != len(items) for values in rows.values()):
        raise UnveilError(f"{folder / 'rows.npz'} and items.csv have different numbers of items: {AGAIN}")
    return Run(
        folder=folder,
        ids=tuple(item["id"] for item in items),
        new=np.array([item["part"] == "new" for item in items], dtype=bool),
        given=tuple(item["given"] for item in items),
        labels=rows["labels"].astype(np.int64),
        classes=(*map(str, record["known"]), *map(str, record["novel"])),
        n_known=len(record["known"]),
        confidence=rows["confidence"].astype(np.float32),
        typicality=rows["typicality"].astype(np.float32),
        kmeans=rows["kmeans"].astype(np.int64),
        paths=tuple(item["path"] for item in items),
        record=record,
    )


def read_record(folder: Path) -> dict[str, Any]:
    """record.json of a finished run."""
    path = folder / "record.json"
    if not path.is_file():
        if (folder / "config.toml").is_file() or (folder / "request.json").is_file():
            raise UnveilError(f"{folder} is not finished: run the same command again, `unveil run` with --resume")
        advice = "give the run directory of `discover` or `run`"
        raise UnveilError(f"{folder} holds no finished discovery (record.json): {advice}")
    record: dict[str, Any] = files.read_json(path)
    checksums.check_table(record, path, AGAIN)
    if record.get("schema") != SCHEMA:
        raise UnveilError(f"{path} was written by another version of unveil: run it again in a new directory")
    if not all(isinstance(record.get(key), list) for key in ("known", "novel")):
        raise DamagedError(f"{path} is damaged (it names no classes): {AGAIN}")
    return record


def verify_file(folder: Path, record: dict[str, Any], name: str) -> None:
    """Raise an error where a file of the run is not the one that the record knows."""
    sums = record.get("checksums") or {}
    if isinstance(sums, dict) and name in sums:
        checksums.verify(folder / name, str(sums[name]), AGAIN)


def check_files(folder: Path) -> None:
    """Raise an error where any file of a finished run is missing or damaged."""
    record = read_record(folder)
    for name in record.get("checksums") or {}:
        verify_file(folder, record, name)


def read_items(folder: Path) -> list[dict[str, str]]:
    """The lines of items.csv of a finished run, with its columns as keys."""
    return _items(folder, read_record(folder))


def _items(folder: Path, record: dict[str, Any]) -> list[dict[str, str]]:
    path = folder / "items.csv"
    verify_file(folder, record, path.name)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.DictReader(file)
            columns, items = tuple(lines.fieldnames or ()), list(lines)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnveilError(f"{path} cannot be read ({error}): {AGAIN}") from None
    if columns != ITEM_COLUMNS or any(None in item or None in item.values() for item in items):
        raise UnveilError(f"{path} is damaged (its columns are not {', '.join(ITEM_COLUMNS)}): {AGAIN}")
    return items


def _rows(folder: Path, record: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of rows.npz."""
    path = folder / "rows.npz"
    verify_file(folder, record, path.name)
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in ("labels", "confidence", "typicality", "kmeans")}
    except Exception as error:  # a damaged archive can raise nearly anything
        raise UnveilError(f"{path} cannot be read ({error}): {AGAIN}") from None


def read_truth(run: Run) -> dict[str, str] | None:
    """The true class of new items by id, from truth.csv; None where there is none."""
    path = run.folder / "truth.csv"
    if not path.exists():
        return None
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.DictReader(file)
            if not {"id", "label"} <= set(lines.fieldnames or ()):
                raise UnveilError(f"{path} has the columns {lines.fieldnames}: give it a first line `id,label`")
            return {line["id"]: line["label"] for line in lines if line["label"]}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnveilError(f"{path} cannot be read ({error}): give UTF-8 with the columns id and label") from None
