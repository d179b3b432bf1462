"""Rehearsals: some known classes are hidden and discovered again as if they were novel.

Nobody can compute the accuracy on novel classes without labels. On hidden known classes it can be computed, and so
rehearsals choose the candidate that suits data like these, forecast its accuracy and calibrate its confidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import rng
from unveil.data.task import UNLABELLED, Task
from unveil.discovery.candidates import KMEANS, Candidate, usual
from unveil.discovery.clusters import kmeans
from unveil.discovery.count import estimate_classes
from unveil.discovery.fit import points_of, pretrained, start_clusters, train_candidate
from unveil.discovery.forecast import Forecast, calibration_curve
from unveil.discovery.scaled import Shape
from unveil.metrics import clustering_accuracy, in_matched_class
from unveil.numerics import Labels, Matrix
from unveil.settings import Settings
from unveil.storage import Storage
from unveil.training.training import Training

MOST_ROWS = 6000
"""Items of a rehearsal."""
MOST_STEPS = 150
"""Steps of discovery in a rehearsal, where the recipe counts in steps."""
COUNTED_ROWS = 800
"""Items among which the classes of a rehearsal are counted."""
KMEANS_DRAWS = 20
"""Rehearsals of k-means alone, which costs little."""
LEAST_CLASSES, LEAST_ROWS = 4, 40
"""With fewer known classes, or labelled items, there is nothing to rehearse with."""
LEAST_SPREAD = 0.03
"""The forecast never has a smaller standard deviation than this."""
MARGIN = 0.02
"""Another candidate than the usual one must do better by more than this in the rehearsals: less is noise."""


@dataclass(frozen=True)
class Rehearsal:
    """The result of one rehearsal, for each candidate by name."""

    hidden: int
    accuracy: dict[str, float]
    confidence: dict[str, NDArray[np.float32]]
    correct: dict[str, NDArray[np.bool_]]
    counted: int
    """The estimated number of classes, of `hidden`."""


def not_rehearsed(candidates: Sequence[Candidate], task: Task, reason: str) -> Forecast:
    """The usual candidate, and no forecast."""
    return Forecast(candidate=usual(candidates, task.known_in_unlabelled).name, reason=reason)


def why_not(task: Task, rehearsals: int) -> str:
    """Why nothing can be rehearsed; empty where it can."""
    if rehearsals < 1:
        return "no rehearsals were asked for"
    classes, rows = len(np.unique(task.labels[task.labelled])), len(task.labelled)
    if classes < LEAST_CLASSES or rows < LEAST_ROWS:
        return (
            f"a rehearsal needs {LEAST_CLASSES} known classes and {LEAST_ROWS} labelled items, "
            f"and there are {classes} and {rows}"
        )
    return ""


def rehearse(
    task: Task,
    points: Matrix,
    settings: Settings,
    candidates: Sequence[Candidate],
    *,
    storage: Storage | None,
    console: Console,
    unshaped: Task | None = None,
    shape: Shape | None = None,
) -> Forecast:
    """Hide known classes `settings.rehearsals` times, discover them again with each candidate, and choose one.

    Where the vectors were shaped by the labels of known classes, `unshaped` has them as they were before, and each
    rehearsal shapes them by the classes that are not hidden.
    """
    if reason := why_not(task, settings.rehearsals):
        return not_rehearsed(candidates, task, reason)
    done = []
    for number in range(settings.rehearsals):
        source = task if unshaped is None else replace(task, items=unshaped.items)
        hidden, truth = hide(source, rng.numpy(settings.seed, "rehearsal", number))
        hidden = hidden if shape is None else shape(hidden)
        own_storage = None if storage is None else storage.within(f"work/rehearsal-{number}")
        own = replace(_shortened(settings), seed=(settings.seed + number) % 2**32)
        done.append(_rehearse_once(hidden, truth, own, candidates, own_storage, console))
    return _forecast(task, points, done, candidates, settings.seed)


def _shortened(settings: Settings) -> Settings:
    steps = settings.discovery.steps
    if steps is None:
        return settings
    return replace(settings, discovery=replace(settings.discovery, steps=min(steps, MOST_STEPS)))


def _forecast(
    task: Task, points: Matrix, done: Sequence[Rehearsal], candidates: Sequence[Candidate], seed: int
) -> Forecast:
    means = {one.name: float(np.mean([r.accuracy[one.name] for r in done])) for one in candidates}
    default = usual(candidates, False).name
    best = max(means, key=lambda name: means[name] - (0 if name == default else MARGIN))
    if task.known_in_unlabelled:
        accuracy, spread = _as_rehearsed(done, best)
    else:
        assert task.n_novel is not None
        labelled = task.labelled
        accuracy, spread = _expected(points[labelled], task.labels[labelled], task.n_novel, done, best, seed)
    rows: list[dict[str, Any]] = [
        {
            "hidden": one.hidden,
            "counted": one.counted,
            "accuracy": {name: round(value, 4) for name, value in one.accuracy.items()},
        }
        for one in done
    ]
    return Forecast(
        candidate=best,
        accuracy=accuracy,
        spread=spread,
        count_error=float(np.mean([abs(one.counted - one.hidden) / one.hidden for one in done])),
        rehearsals=tuple(rows),
        calibration=calibration_curve([one.confidence[best] for one in done], [one.correct[best] for one in done]),
    )


def hide(task: Task, draw: np.random.Generator) -> tuple[Task, Labels]:
    """A task of known classes alone, some of which play the novel ones, and the truth of its unlabelled rows.

    As large a share of the classes is hidden as novel classes have of all. Where unlabelled rows may be of known
    classes, every second row of the other classes loses its label. The truth counts the classes that are left, then
    the hidden ones, as clusters are counted.
    """
    assert task.n_novel is not None
    labelled = task.labelled
    y = task.labels[labelled]
    classes = np.unique(y)
    known, novel = len(classes), task.n_novel
    count = int(np.clip(-(-known * novel // (known + novel)), 2, known - 2))
    hidden = draw.permutation(classes)[:count]
    rows = np.sort(draw.permutation(len(y))[:MOST_ROWS])
    truth = y[rows]
    absent = np.isin(truth, hidden)
    left = np.unique(truth[~absent])
    labels = np.where(absent, UNLABELLED, np.searchsorted(left, truth))
    if task.known_in_unlabelled:
        first = np.zeros(len(labels), dtype=bool)
        first[[np.flatnonzero(truth == label)[0] for label in left]] = True  # no class loses all its labels
        labels = np.where((draw.random(len(labels)) < 0.5) & ~first, UNLABELLED, labels)
    place = {int(label): index for index, label in enumerate([*left, *np.unique(truth[absent])])}
    rehearsed = replace(
        task.take(labelled[rows]),
        labels=labels,
        known=tuple(task.known[label] for label in left),
        n_novel=max(1, len(np.unique(truth[absent]))),
        test_items=None,
        test_ids=(),
    )
    return rehearsed, np.array([place[int(label)] for label in truth[labels == UNLABELLED]])


def _rehearse_once(
    task: Task,
    truth: Labels,
    settings: Settings,
    candidates: Sequence[Candidate],
    storage: Storage | None,
    console: Console,
) -> Rehearsal:
    own_stages = None if storage is None else Storage(storage.run / "stages", storage.run)
    training = pretrained(Training(settings, task, storage=own_stages, console=console))
    points, seed = points_of(training), settings.seed
    start = start_clusters(task, points, seed)
    counted = estimate_classes(
        points[task.labelled],
        task.labels[task.labelled],
        points[task.unlabelled],
        seed=seed,
        rows=COUNTED_ROWS,
        known_in_unlabelled=task.known_in_unlabelled,
    ).number
    start_confidence = start.confidence(points[task.unlabelled])
    clusters, confidence = {KMEANS.name: start.labels}, {KMEANS.name: start_confidence}
    for place, candidate in enumerate(candidates):
        if candidate.method is not None:
            folder = None if own_stages is None else own_stages.within(str(place))
            trained = train_candidate(training, task, candidate, start.labels, folder)
            clusters[candidate.name], confidence[candidate.name] = trained.clusters, trained.confidence
    assert task.n_novel is not None
    return Rehearsal(
        hidden=task.n_novel,
        accuracy={name: clustering_accuracy(truth, labels) for name, labels in clusters.items()},
        confidence=confidence,
        correct={name: in_matched_class(truth, labels) for name, labels in clusters.items()},
        counted=counted,
    )


def _expected(
    x: Matrix, y: Labels, n_novel: int, done: Sequence[Rehearsal], candidate: str, seed: int
) -> tuple[float, float]:
    """Accuracy and its standard deviation for as many classes as there are novel ones.

    More classes are harder than the few that can be hidden. k-means needs no known classes beside the hidden ones, so
    it can be rehearsed often, with (almost) as many classes as there are novel ones; the candidate is taken to make so
    many times the errors of k-means as it made in its own rehearsals.
    """
    classes = np.unique(y)
    count = min(n_novel, len(classes))
    tries = KMEANS_DRAWS // 2 if count < len(classes) else 3
    scores = [_kmeans_accuracy(x, y, classes, count, number, seed, MOST_ROWS) for number in range(tries)]
    fewer = max(2, round(0.6 * count))
    around = [
        _kmeans_accuracy(x, y, classes, fewer, KMEANS_DRAWS + number, seed, MOST_ROWS // 3)
        for number in range(KMEANS_DRAWS)
    ]
    kmeans_errors = np.mean([1 - one.accuracy[KMEANS.name] for one in done])
    candidate_errors = np.mean([1 - one.accuracy[candidate] for one in done])
    errors = float((candidate_errors + 0.01) / (kmeans_errors + 0.01)) * (1 - np.array(scores))
    if n_novel > count > 1:  # even more classes: errors grow about as their logarithm
        errors = errors * np.log(n_novel) / np.log(count)
    expected = float(np.clip(1 - errors.mean(), 1 / max(1, n_novel), 1))
    rehearsed_spread = float(np.std([one.accuracy[candidate] for one in done])) / 2
    return expected, max(LEAST_SPREAD, float(np.std(around)), rehearsed_spread)


def _as_rehearsed(done: Sequence[Rehearsal], candidate: str) -> tuple[float, float]:
    scores = [one.accuracy[candidate] for one in done]
    return float(np.mean(scores)), max(LEAST_SPREAD, float(np.std(scores)))


def _kmeans_accuracy(x: Matrix, y: Labels, classes: Labels, count: int, number: int, seed: int, most: int) -> float:
    draw = rng.numpy(seed, "k-means rehearsal", number)
    chosen = draw.permutation(classes)[:count]
    rows = draw.permutation(np.flatnonzero(np.isin(y, chosen)))[:most]
    return clustering_accuracy(y[rows], kmeans(x[rows], count, seed).labels)
