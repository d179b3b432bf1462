"""`unveil predict RUN INPUTS`: label new items by a finished run."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from unveil.data.known_new import read_new
from unveil.data.sheets import Columns
from unveil.discovery.predictor import Predictor
from unveil.runs.corrections import current_state
from unveil.runs.decisions import classes_after
from unveil.runs.reader import load, read_record
from unveil.runs.review_log import LOG

NEITHER = "neither"


def predict_run(
    run: Path,
    inputs: Path,
    *,
    coverage: float | None = None,
    embeddings: Path | None = None,
    console: Console | None = None,
) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """(id, label, kind, probability) of each item that can be read, and the ids of the others. Classes have the names
    that the review gave them.

    `coverage`: label an item `neither` if it lies farther from the training items than this share of them do from each
    other. `embeddings`: the directory of stored embeddings.
    """
    console = console or Console(stderr=True, markup=False)
    record = read_record(run)
    predictor = Predictor.load(run, embeddings=embeddings)
    classes = _classes(run, record)
    columns, table = Columns.from_json(record["source"].get("columns", {})), predictor.preparation.table
    items, ids = read_new(inputs, record["columns"], columns, as_table=table is not None, others_allowed=True)
    encoded, readable = predictor.encoded(items, console, given=str(inputs))
    lines, rows = [], iter(np.flatnonzero(readable))
    for space in predictor.spaces(encoded):
        p = predictor.probabilities(space)
        unlike = np.zeros(len(p), dtype=bool) if coverage is None else predictor.unlikeness(space) > coverage
        for best, probability, neither in zip(p.argmax(axis=1), p.max(axis=1), unlike, strict=True):
            label, kind = (NEITHER, NEITHER) if neither else classes[best]
            lines.append((ids[next(rows)], label, kind, f"{probability:.4f}"))
    return lines, [ids[row] for row in np.flatnonzero(~readable)]


def _classes(run: Path, record: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and kind of each class, as the review left them."""
    if (run / LOG).exists():
        return classes_after(current_state(load(run)))
    return [*((name, "known") for name in record["known"]), *((name, "novel") for name in record["novel"])]
