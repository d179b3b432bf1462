"""`unveil predict RUN INPUTS`: label new items by a finished run."""

from pathlib import Path

import numpy as np
from rich.console import Console

from unveil.data.known_new import read_new
from unveil.discovery.predictor import Predictor
from unveil.runs.reader import read_record

NEITHER = "neither"


def predict_run(
    run: Path,
    inputs: Path,
    *,
    coverage: float | None = None,
    embeddings: Path | None = None,
    console: Console | None = None,
) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """(id, label, kind, probability) of each item that can be read, and the ids of the others.

    `coverage`: label an item `neither` if it lies farther from the training items than this share of them do from each
    other. `embeddings`: the directory of stored embeddings.
    """
    console = console or Console(stderr=True, markup=False)
    record = read_record(run)
    predictor = Predictor.load(run, embeddings=embeddings)
    classes = [*record["known"], *record["novel"]]
    items, ids = read_new(inputs, record["columns"])
    encoded, readable = predictor.encoded(items, console, given=str(inputs))
    lines, rows = [], iter(np.flatnonzero(readable))
    for space in predictor.spaces(encoded):
        p = predictor.probabilities(space)
        unlike = np.zeros(len(p), dtype=bool) if coverage is None else predictor.unlikeness(space) > coverage
        for best, probability, neither in zip(p.argmax(axis=1), p.max(axis=1), unlike, strict=True):
            kind = NEITHER if neither else "known" if best < predictor.n_known else "novel"
            lines.append((ids[next(rows)], NEITHER if neither else classes[best], kind, f"{probability:.4f}"))
    return lines, [ids[row] for row in np.flatnonzero(~readable)]
