"""Where the truth is known: RUN/truth.csv, with the columns id and label, says what new items really are."""

import csv
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from unveil import rng
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy, clustering_scores, contingency
from unveil.runs.reader import Look

EXAMPLES = 24


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Clusters against classes, for the new items whose truth is told."""

    items: int
    strangers: int
    """Ids in truth.csv that no new item has."""
    scores: dict[str, float]
    kmeans: float
    """ACC of k-means on the same items."""
    clusters: tuple[str, ...]
    classes: tuple[str, ...]
    counts: NDArray[np.int64]
    """(clusters, classes), ordered so that what is matched stands on the diagonal."""
    matched: int
    """How many pairs are matched: min(clusters, classes)."""
    misplaced: tuple[tuple[int, str, str], ...]
    """(row, the class it is, the class its cluster stands for), spread over the data."""


def compare(look: Look) -> Comparison | None:
    """None where there is no truth.csv."""
    if (told := _read(look)) is None:
        return None
    rows = np.array([row for row in np.flatnonzero(look.new).tolist() if look.ids[row] in told], dtype=np.int64)
    if len(rows) == 0:
        raise UnveilError(
            f"{look.run / 'truth.csv'} tells of no new item: its column id must hold ids as predictions.csv has them"
        )
    truth, found = np.array([told[look.ids[row]] for row in rows]), look.labels[rows]
    classes, clusters = np.unique(truth), np.unique(found)
    counts = contingency(truth, found)
    lines, columns = linear_sum_assignment(counts, maximize=True)
    order = np.argsort(-counts[lines, columns], kind="stable")
    lines = np.concatenate([lines[order], np.setdiff1d(np.arange(len(clusters)), lines)])
    columns = np.concatenate([columns[order], np.setdiff1d(np.arange(len(classes)), columns)])
    meant = {
        int(clusters[i]): str(classes[j]) for i, j in zip(lines, columns, strict=False)
    }  # the rest stands for none
    wrong = [place for place in range(len(rows)) if meant.get(int(found[place])) != truth[place]]
    some = rng.numpy(0, "misplaced").permutation(len(wrong))[:EXAMPLES]
    return Comparison(
        items=len(rows),
        strangers=len(set(told) - {look.ids[row] for row in np.flatnonzero(look.new).tolist()}),
        scores=clustering_scores(truth, found),
        kmeans=look.record.get("kmeans_accuracy") or clustering_accuracy(truth, look.kmeans[rows]),
        clusters=tuple(look.classes[clusters[i]] for i in lines),
        classes=tuple(str(classes[j]) for j in columns),
        counts=counts[np.ix_(lines, columns)],
        matched=len(order),
        misplaced=tuple(
            (int(rows[place]), str(truth[place]), meant.get(int(found[place]), "no class"))
            for place in sorted((wrong[i] for i in some), key=lambda place: (int(found[place]), place))
        ),
    )


def _read(look: Look) -> dict[str, str] | None:
    path = look.run / "truth.csv"
    if not path.exists():
        return None
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.DictReader(file)
            if not {"id", "label"} <= set(lines.fieldnames or ()):
                raise UnveilError(f"{path} has the columns {lines.fieldnames}: give it a first line `id,label`")
            return {line["id"]: line["label"] for line in lines if line["label"]}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnveilError(
            f"{path} cannot be read ({error}): give a UTF-8 table with the columns id and label"
        ) from None
