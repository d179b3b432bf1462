"""`unveil predict RUN INPUTS`: label new items by a finished run."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil.data.items import Items, Rows, Vectors
from unveil.data.known_new import read_new
from unveil.data.sheets import Columns
from unveil.discovery.forecast import Forecast
from unveil.discovery.predictor import Predictor, summed
from unveil.review.corrections import current_state
from unveil.review.decisions import classes_after
from unveil.review.log import LOG
from unveil.runs.reader import load, read_record

NEITHER = "neither"


@dataclass(frozen=True)
class Labels:
    """Labels of the items that can be read."""

    label: list[str]
    kind: list[str]  # known, novel or neither
    confidence: NDArray[np.float32]
    readable: NDArray[np.bool_]  # (n,): which of the items these are


@dataclass(frozen=True)
class Labeler:
    """A finished run as something that labels items.

    `coverage`: label an item `neither` if it lies farther from the training items than this share of them do from each
    other.
    """

    predictor: Predictor
    classes: list[tuple[str, str]]  # name and kind of each class
    names: tuple[str, ...]  # the columns that the items of the run had
    columns: Columns
    coverage: float | None = None
    forecast: Forecast | None = None
    """Of the run, where the items are more of those that it labeled: they get novel classes alone (known ones too
    where the run was told so), and confidences are calibrated. None: they may be of any class."""

    @staticmethod
    def load(
        run: Path,
        *,
        coverage: float | None = None,
        embeddings: Path | None = None,
        device: str = "auto",
        of_the_run: bool = False,
    ) -> "Labeler":
        """`embeddings`: the directory of stored embeddings; None: they are not stored. `of_the_run`: the items are more
        of those that the run labeled."""
        record = read_record(run)
        predictor = Predictor.load(run, device=device, embeddings=embeddings)
        columns = Columns.from_json(record["source"].get("columns", {}))
        forecast = Forecast.from_json(record["forecast"]) if of_the_run else None
        return Labeler(predictor, class_kinds(run), tuple(record["columns"]), columns, coverage, forecast)

    def read(self, path: Path) -> tuple[Items, tuple[str, ...]]:
        """The items of a file or folder, with the columns of the run, and their ids."""
        table = self.predictor.preparation.table
        return read_new(path, self.names, self.columns, as_table=table is not None, others_allowed=True)

    def __call__(self, items: Items, given: str, console: Console) -> Labels:
        """The labels of items; `given` names them in errors."""
        encoded, readable = self.predictor.encoded(items, console, given=given)
        different = list(dict.fromkeys(self.classes))  # clusters that were merged in the review are one class
        class_of = np.array([different.index(one) for one in self.classes], dtype=np.int64)
        found, confidence = list[tuple[str, str]](), [np.zeros(0, dtype=np.float32)]
        for space in self.predictor.spaces(encoded):
            best, certainty = self._best(space, class_of)
            unlike = np.zeros(len(space), dtype=bool)
            if self.coverage is not None:
                unlike = self.predictor.unlikeness(space) > self.coverage
            found += [(NEITHER, NEITHER) if far else different[one] for one, far in zip(best, unlike, strict=True)]
            confidence.append(certainty)
        label, kind = [name for name, _ in found], [kind for _, kind in found]
        return Labels(label, kind, np.concatenate(confidence), readable)

    def _best(self, space: Vectors, class_of: Rows) -> tuple[Rows, Vectors]:
        """The most likely class of each row, and how likely it is; `class_of`: which class a cluster belongs to."""
        if self.forecast is None:
            p = summed(self.predictor.probabilities(space), class_of)
            return p.argmax(axis=1), p.max(axis=1)
        p, certainty = self.predictor.novel(space)
        first = 0 if self.predictor.known_in_unlabeled else self.predictor.n_known
        return class_of[first + p.argmax(axis=1)], self.forecast.calibrated(certainty)


def predict_run(
    run: Path,
    inputs: Path,
    *,
    coverage: float | None = None,
    embeddings: Path | None = None,
    console: Console | None = None,
) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """(id, label, kind, probability) of each item that can be read, and the ids of the others."""
    labeler = Labeler.load(run, coverage=coverage, embeddings=embeddings)
    items, ids = labeler.read(inputs)
    labels = labeler(items, str(inputs), console or Console(stderr=True, markup=False))
    read, unread = ([ids[row] for row in np.flatnonzero(chosen)] for chosen in (labels.readable, ~labels.readable))
    confidence = (f"{one:.4f}" for one in labels.confidence)
    return list(zip(read, labels.label, labels.kind, confidence, strict=True)), unread


def class_kinds(run: Path) -> list[tuple[str, str]]:
    """Name and kind of each class of a run, as the review left them."""
    record = read_record(run)
    if (run / LOG).exists():
        return classes_after(current_state(load(run)))
    return [*((name, "known") for name in record["known"]), *((name, "novel") for name in record["novel"])]
