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
from unveil.clustering.catalog import CLUSTERERS
from unveil.clustering.clusterer import Evidence
from unveil.data.task import UNLABELED, Task
from unveil.discovery.candidates import KMEANS, Candidate, usual
from unveil.discovery.fit import make_learner, start_clusters
from unveil.discovery.forecast import Forecast, calibration_curve
from unveil.discovery.recognition import recognized_rows
from unveil.discovery.scaled import Shape
from unveil.metrics import clustering_accuracy, in_matched_class
from unveil.numerics import Labels
from unveil.settings import Settings
from unveil.storage import Storage

HIDDEN_ROWS, OTHER_ROWS = 2000, 4000
"""Most items of hidden and of other classes in a rehearsal."""
MOST_HIDDEN = 0.6
"""Largest share of the known classes that is hidden: the others are needed as known classes."""
MOST_STEPS = 150
"""Steps of discovery in a rehearsal, where the recipe counts in steps."""
LEAST_CLASSES, LEAST_ROWS = 4, 40
"""With fewer known classes, or labeled items, there is nothing to rehearse with."""
MARGIN = 0.05
"""Another candidate than the usual one must do better by more than this, and by more than twice its standard error."""


@dataclass(frozen=True)
class Rehearsal:
    """The result of one rehearsal, for each candidate by name."""

    hidden: int
    accuracy: dict[str, float]
    confidence: dict[str, NDArray[np.float32]]
    correct: dict[str, NDArray[np.bool_]]


def not_rehearsed(candidates: Sequence[Candidate], task: Task, reason: str) -> Forecast:
    """The usual candidate, and no forecast."""
    return Forecast(candidate=usual(candidates, task.known_in_unlabeled).name, reason=reason)


def why_not(task: Task, rehearsals: int) -> str:
    """Why nothing can be rehearsed; empty where it can."""
    if rehearsals < 1:
        return "no rehearsals were asked for"
    classes, rows = len(np.unique(task.labels[task.labeled])), len(task.labeled)
    if classes < LEAST_CLASSES or rows < LEAST_ROWS:
        return (
            f"a rehearsal needs {LEAST_CLASSES} known classes and {LEAST_ROWS} labeled items, "
            f"and there are {classes} and {rows}"
        )
    return ""


def rehearse(
    task: Task,
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
        before, hidden = hidden, hidden if shape is None else shape(hidden)
        own_storage = None if storage is None else storage.within(f"work/rehearsal-{number}")
        own = replace(_shortened(settings), seed=(settings.seed + number) % 2**32)
        once = _Once(hidden, truth, own, candidates, own_storage, console, before, shape)
        done.append(once.rehearsal())
    assert task.n_novel is not None
    return _forecast(done, candidates, task.n_novel)


def of_evidence(candidate: Candidate, evidence: Evidence, task: Task) -> Forecast:
    """The forecast of a clusterer that has rehearsed by itself."""
    done = [
        Rehearsal(
            hidden=one.hidden,
            accuracy={candidate.name: one.accuracy},
            confidence={candidate.name: one.certainty},
            correct={candidate.name: one.correct},
        )
        for one in evidence.rehearsals
    ]
    if not done:
        return Forecast(candidate=candidate.name, reason=why_not(task, 1) or "nothing was rehearsed")
    return _forecast(done, (candidate,), evidence.clusters)


def _shortened(settings: Settings) -> Settings:
    steps = settings.discovery.steps
    if steps is None:
        return settings
    return replace(settings, discovery=replace(settings.discovery, steps=min(steps, MOST_STEPS)))


def _forecast(done: Sequence[Rehearsal], candidates: Sequence[Candidate], n_novel: int) -> Forecast:
    best = _chosen(done, candidates)
    rows: list[dict[str, Any]] = [
        {
            "hidden": one.hidden,
            "accuracy": {name: round(value, 4) for name, value in one.accuracy.items()},
            "confidence": {name: round(float(value.mean()), 4) for name, value in one.confidence.items()},
        }
        for one in done
    ]
    return Forecast(
        candidate=best,
        rehearsals=tuple(rows),
        calibration=calibration_curve([one.confidence[best] for one in done], [one.correct[best] for one in done]),
    ).expected(n_novel)


def _chosen(done: Sequence[Rehearsal], candidates: Sequence[Candidate]) -> str:
    """The usual candidate, or the best of those that did clearly better."""
    default = usual(candidates, False).name
    ahead = {default: 0.0}
    for name in (one.name for one in candidates if one.name != default):
        gains = np.array([one.accuracy[name] - one.accuracy[default] for one in done])
        error = float(gains.std(ddof=1)) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
        if gains.mean() > max(MARGIN, 2 * error):
            ahead[name] = float(gains.mean())
    return max(ahead, key=lambda name: ahead[name])


def hide(task: Task, draw: np.random.Generator) -> tuple[Task, Labels]:
    """A task of known classes alone, some of which play the novel ones, and the truth of its unlabeled rows.

    As many classes are hidden as there are novel ones, as far as enough known classes are left. Where unlabeled rows
    may be of known classes, every second row of the other classes loses its label. The truth counts the classes that
    are left, then the hidden ones, as clusters are counted.
    """
    assert task.n_novel is not None
    labeled = task.labeled
    y = task.labels[labeled]
    classes = np.unique(y)
    count = max(2, min(task.n_novel, round(MOST_HIDDEN * len(classes)), len(classes) - 2))
    hidden = draw.permutation(classes)[:count]
    order = draw.permutation(len(y))
    of_hidden = np.isin(y[order], hidden)
    rows = np.sort(np.concatenate([order[of_hidden][:HIDDEN_ROWS], order[~of_hidden][:OTHER_ROWS]]))
    truth = y[rows]
    absent = np.isin(truth, hidden)
    left = np.unique(truth[~absent])
    labels = np.where(absent, UNLABELED, np.searchsorted(left, truth))
    if task.known_in_unlabeled:
        first = np.zeros(len(labels), dtype=bool)
        first[[np.flatnonzero(truth == label)[0] for label in left]] = True  # no class loses all its labels
        labels = np.where((draw.random(len(labels)) < 0.5) & ~first, UNLABELED, labels)
    place = {int(label): index for index, label in enumerate([*left, *np.unique(truth[absent])])}
    rehearsed = replace(
        task.take(labeled[rows]),
        labels=labels,
        known=tuple(task.known[label] for label in left),
        n_novel=max(1, len(np.unique(truth[absent]))),
        test_items=None,
        test_ids=(),
    )
    return rehearsed, np.array([place[int(label)] for label in truth[labels == UNLABELED]])


@dataclass(frozen=True)
class _Once:
    """One rehearsal."""

    task: Task
    truth: Labels
    settings: Settings
    candidates: Sequence[Candidate]
    storage: Storage | None
    console: Console
    unshaped: Task
    shape: Shape | None

    def rehearsal(self) -> Rehearsal:
        """Recognize known rows, cluster with each candidate, and score."""
        task, truth, seed, hidden = self.task, self.truth, self.settings.seed, self.task.n_novel
        assert hidden is not None
        stages = None if self.storage is None else Storage(self.storage.run / "stages", self.storage.run)
        learner = make_learner(task, self.settings, storage=stages, console=self.console)
        points, recognized = learner.points, None
        if task.known_in_unlabeled and self.settings.discovery.method in CLUSTERERS:
            recognized = recognized_rows(task, points, seed, self.unshaped, self.shape)
        start = start_clusters(task, points, seed, recognized)
        clusters = {KMEANS.name: start.labels}
        confidence = {KMEANS.name: start.confidence(points[task.unlabeled])}
        for place, candidate in enumerate(self.candidates):
            if candidate.method is not None:
                folder = None if stages is None else stages.within(str(place))
                fitted = learner.fit(candidate, start.labels, folder, recognized)
                clusters[candidate.name], confidence[candidate.name] = fitted.clusters, fitted.confidence
        return Rehearsal(
            hidden=hidden,
            accuracy={name: clustering_accuracy(truth, labels) for name, labels in clusters.items()},
            confidence=confidence,
            correct={name: in_matched_class(truth, labels) for name, labels in clusters.items()},
        )
