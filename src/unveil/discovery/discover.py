"""From a task to its novel classes: scale, pre-train, count, rehearse, choose a candidate, train, label every row.

The same steps serve vectors and images, data sets and people's own data; the settings say which of them happen.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console

from unveil.clustering.catalog import CLUSTERERS
from unveil.clustering.clusterer import Evidence
from unveil.clustering.kmeans import Clusters
from unveil.counting.estimate import check_count
from unveil.counting.known_neighbors import warn_of_known_classes
from unveil.data.items import PIECE, Rows
from unveil.data.task import UNLABELED, Task, Truth
from unveil.discovery.candidates import KMEANS, Candidate, candidates, fitted_to_sizes
from unveil.discovery.fit import Fitted, Learner, VectorLearner, make_learner, needs_network, start_clusters
from unveil.discovery.forecast import Forecast
from unveil.discovery.predictor import Predictor
from unveil.discovery.recognition import estimate_novel, recognized_rows
from unveil.discovery.rehearsal import not_rehearsed, of_evidence, rehearse
from unveil.discovery.result import Result
from unveil.discovery.scaled import scale
from unveil.discovery.steps import Step, unseen
from unveil.encoders.preparation import Preparation
from unveil.errors import UnveilError
from unveil.hardware import threads_for
from unveil.methods.catalog import method_class, names
from unveil.models.model import Model
from unveil.numerics import Labels, Matrix, mean_directions, squared_distances, unit_rows
from unveil.settings import Augment, Data, Settings
from unveil.storage import Storage


def discover(
    task: Task,
    settings: Settings,
    preparation: Preparation | None = None,
    *,
    truth: Truth | None = None,
    storage: Storage | None = None,
    console: Console | None = None,
    rows: Rows | None = None,
    keep_features: bool = False,
    step: Step = unseen,
) -> Result:
    """Find the novel classes among the unlabeled rows of a task, whose items have gone through the encoder.

    `truth` is only for scores in the history. `rows`: the rows to label; None: all. `keep_features`: return them too.
    `step` is told what is being done.
    """
    console, preparation = console or Console(quiet=True), preparation or Preparation()
    if task.n_novel is not None and len(task.unlabeled):
        check_count(task.n_novel, len(task.unlabeled))

    # Scaling: nobody has said how to scale vectors of people's own, and there may be very many.
    scaled = scale(task, settings, preparation, console)
    smaller, preparation = scaled.task, scaled.preparation

    # What is learned from: vectors as they are, or a network, pre-trained as the settings say.
    learner = make_learner(smaller, settings, truth, storage, console, scaled.unscaled)
    points = learner.points
    if len(task.unlabeled) == 0:
        return _known_only(task, learner, settings, preparation, rows, keep_features)

    # Unlabeled rows of known classes.
    smaller = replace(smaller, known_in_unlabeled=task.known_in_unlabeled and bool(task.known))
    recognized = None
    if smaller.known_in_unlabeled and settings.discovery.method in CLUSTERERS:
        recognized = recognized_rows(smaller, points, settings.seed, scaled.unshaped, scaled.shape)

    # The number of novel classes.
    estimate = None
    counted = points if scaled.for_counting is None else scaled.for_counting
    if task.n_novel is None:
        step("number of classes")
        estimate = estimate_novel(smaller, counted, recognized)
        console.print(estimate.sentence(), soft_wrap=True)
        smaller = replace(smaller, n_novel=max(1, estimate.number))
    learner.task = smaller
    notes = list(scaled.notes)
    if smaller.known_in_unlabeled:
        _check_start(settings)
    elif truth is None:
        notes += warn_of_known_classes(smaller, counted, settings.seed)

    # The clusters that training starts from, and the candidates that are compared.
    options = candidates(settings)
    clusters_vectors = isinstance(learner, VectorLearner) and options[-1].method in CLUSTERERS
    options = options[-1:] if clusters_vectors else options
    start = None
    if (
        smaller.known_in_unlabeled
        or not (task.known or clusters_vectors)
        or (settings.compare and not clusters_vectors)
    ):
        start = start_clusters(smaller, points, settings.seed, recognized)
    if start is not None:
        options = tuple(fitted_to_sizes(one, start.labels, settings) for one in options)

    def rehearsed() -> Forecast:
        return rehearse(
            smaller,
            settings,
            options,
            storage=storage,
            console=console,
            unshaped=scaled.unshaped,
            shape=scaled.shape,
        )

    # Clusters: a clusterer weighs its evidence by itself; of methods that train, rehearsals choose one before.
    step("clusters" if clusters_vectors else "rehearsals on hidden known classes")
    if clusters_vectors:
        fitted = learner.fit(options[0], None if start is None else start.labels, storage, recognized)
        candidate = options[0]
        forecast = rehearsed() if fitted.evidence is None else of_evidence(candidate, fitted.evidence, smaller)
    else:
        forecast = rehearsed()
        candidate = next(one for one in options if one.name == forecast.candidate)
        step("clusters")
        fitted = learner.fit(candidate, None if start is None else start.labels, storage, recognized)
    if estimate is not None:
        forecast = replace(forecast, counted=True, number_spread=estimate.spread).expected(estimate.number)
    notes += [*learner.warnings, *fitted.warnings]
    choice = explain(candidate, options, forecast, fitted.evidence)
    console.print(choice, soft_wrap=True)

    # What the clusters leave behind.
    plain = learner.plain_kmeans() if start is None else start.labels
    predictor = _predictor(learner, fitted, settings, preparation, candidate, start)
    step("labels and confidence")
    finished = _Finished(task, smaller, learner, predictor, fitted, start, plain, scaled.rows)
    return finished.result(
        rows,
        keep_features=keep_features,
        estimate=estimate,
        forecast=forecast,
        choice=choice,
        warnings=tuple(notes),
        seed=settings.seed,
    )


def few_threads(task: Task, settings: Settings) -> AbstractContextManager[None]:
    """One thread for a discovery on few vectors that trains nothing: there it is quicker than several."""
    return nullcontext() if needs_network(task, settings) else threads_for(len(task))


def _check_start(settings: Settings) -> None:
    """Where clusters must stand for known classes too, the method has to start from the clusters that it is given."""
    if not _finds_known(settings.discovery.method):
        usable = [name for name in names() if _finds_known(name)]
        raise UnveilError(
            f"the method {settings.discovery.method} looks for novel classes alone, and unlabeled items may be of "
            f"known classes here: use {', '.join(usable)}"
        )


def _finds_known(name: str) -> bool:
    method = method_class(name)
    return method is None or method.starts_from_clusters


def explain(candidate: Candidate, options: tuple[Candidate, ...], forecast: Forecast, evidence: Evidence | None) -> str:
    """Which candidate was taken and why, in words."""
    if evidence is not None and evidence.names:
        how = "how they agree and how they find hidden known classes" if evidence.rehearsals else "how they agree"
        return f"{candidate.description}: {len(evidence.names)} clusterings, weighed by {how}"
    if len(options) == 1:
        return f"{candidate.description}, as asked"
    if not forecast.rehearsals:
        return f"{candidate.description}: not rehearsed"
    count = len(forecast.rehearsals)
    others = ", ".join(
        f"{one.description} {100 * forecast.mean_accuracy(one.name):.1f} %" for one in options if one is not candidate
    )
    return (
        f"{candidate.description}: in {count} rehearsal{'s' if count != 1 else ''} on hidden known classes its "
        f"accuracy was {100 * forecast.mean_accuracy(candidate.name):.1f} % ({others})"
    )


def _predictor(
    learner: Learner,
    fitted: Fitted | None,
    settings: Settings,
    preparation: Preparation,
    candidate: Candidate,
    start: Clusters | None,
) -> Predictor:
    task, points = learner.task, learner.points
    centers = start.centers if start is not None and (candidate.method is None or fitted is None) else None
    values: dict[str, Any] = {
        "n_known": len(task.known),
        "n_novel": task.n_novel or 0,
        "known_in_unlabeled": task.known_in_unlabeled,
        "centers": centers,
        "softness": 1.0 if start is None else max(1e-12, 2 * start.inertia / max(1, points.shape[1])),
    }
    if fitted is None:
        return Predictor(preparation=preparation, data=Data(name="vectors"), augment=Augment(), **values)
    mean, scale = learner.input_scale()
    data, augment = settings.data, settings.augment
    return Predictor(
        preparation=preparation, data=data, augment=augment, model=fitted.model, mean=mean, scale=scale, **values
    )


@dataclass(frozen=True)
class _Finished:
    """Everything that labeling the rows needs."""

    task: Task
    smaller: Task
    """The rows that were trained on, reduced."""
    learner: Learner
    predictor: Predictor
    fitted: Fitted | None
    start: Clusters | None
    plain: Labels | None
    """k-means clusters of the unlabeled rows that were trained on."""
    trained_rows: Rows

    def result(self, rows: Rows | None, *, keep_features: bool, seed: int, **values: Any) -> Result:
        """Go through the rows once: label, confidence, typicality."""
        task = self.task
        forecast: Forecast = values.pop("forecast")
        in_vectors = task.items.are_vectors

        def space_of(some: Rows) -> Matrix:
            """Of rows that were trained on."""
            if in_vectors:
                return np.concatenate(list(self.predictor.spaces(task.items, self.trained_rows[some])))
            assert self.fitted is not None
            return self.learner.features(self.fitted, some)

        network = self.fitted.model if self.fitted is not None and isinstance(self.fitted.model, Model) else None
        if in_vectors and network is not None:
            network.freeze_trunk()  # a cached trunk was skipped; vectors go through the real one
        known = self.smaller.labels != UNLABELED
        predictor = self.predictor.completed(space_of, known, seed)
        means = self._mean_directions(predictor, space_of)
        rows = np.arange(len(task)) if rows is None else rows
        labels, plain = task.labels[rows], self._plain(rows)
        certainty = np.ones(len(rows), dtype=np.float32)  # before calibration
        typicality = np.zeros(len(rows), dtype=np.float32)
        kept: list[Matrix] = []
        first = 0 if self.smaller.known_in_unlabeled else len(task.known)
        for begin in range(0, len(rows), PIECE):
            here = slice(begin, begin + PIECE)
            part = rows[here]
            space = np.concatenate(list(predictor.spaces(task.items, part))) if in_vectors else space_of(part)
            hidden = labels[here] == UNLABELED
            if hidden.any():
                if in_vectors and self.start is not None:
                    plain[here][hidden] = first + squared_distances(space[hidden], self.start.centers).argmin(axis=1)
                scores, certainty[here][hidden] = predictor.novel(space[hidden])
                labels[here][hidden] = first + scores.argmax(axis=1)
            z = predictor.features(space)
            typicality[here] = (unit_rows(z) * means[labels[here]]).sum(axis=1)
            if keep_features:
                kept.append(z)
        if network is not None:
            network.freeze_trunk()  # a cached trunk was skipped; new items go through the real one
        if self.fitted is not None and self.fitted.evidence is not None:
            labels, certainty = self._of_the_fit(rows, labels, certainty)
        new = task.labels[rows] == UNLABELED
        confidence = certainty.copy()
        if new.any():
            forecast = forecast.expected(predictor.n_novel, float(certainty[new].mean()))
            if forecast.from_consensus:
                forecast = forecast.calibrated_by(certainty[new])
            confidence[new] = forecast.calibrated(certainty[new])
        return Result(
            predictor=predictor,
            labels=labels,
            kmeans=plain,
            confidence=confidence,
            typicality=typicality,
            features=np.concatenate(kept) if kept else None,
            forecast=forecast,
            history=[] if self.fitted is None else self.fitted.history,
            seconds=self.learner.seconds,
            cache=self.learner.cache,
            learner=self.learner,
            **values,
        )

    def _of_the_fit(self, rows: Rows, labels: Labels, certainty: Matrix) -> tuple[Labels, Matrix]:
        """Rows that were clustered keep their cluster, and how certain that is."""
        assert self.fitted is not None
        first = 0 if self.smaller.known_in_unlabeled else len(self.task.known)
        clusters, certain = np.full(len(self.task), -1), np.zeros(len(self.task), dtype=np.float32)
        fitted = self.trained_rows[self.smaller.unlabeled]
        clusters[fitted], certain[fitted] = first + self.fitted.clusters, self.fitted.confidence
        inside = clusters[rows] >= 0
        return np.where(inside, clusters[rows], labels), np.where(inside, certain[rows], certainty).astype(np.float32)

    def _plain(self, rows: Rows) -> Labels:
        """k-means labels of the rows, as far as they were trained on."""
        every = self.task.labels.copy()
        if self.plain is not None:
            first = 0 if self.smaller.known_in_unlabeled else len(self.task.known)
            every[self.trained_rows[self.smaller.unlabeled]] = first + self.plain
        return every[rows]

    def _mean_directions(self, predictor: Predictor, space_of: Callable[[Rows], Matrix]) -> Matrix:
        """Mean direction of each class and cluster, of the rows that were trained on."""
        labels = self.smaller.labels.copy()
        if len(self.smaller.unlabeled):
            first = 0 if self.smaller.known_in_unlabeled else predictor.n_known
            clusters = self.plain if self.fitted is None else self.fitted.clusters
            assert clusters is not None
            labels[self.smaller.unlabeled] = first + clusters
        count = predictor.n_known + predictor.n_novel
        parts = np.array_split(np.arange(len(labels)), max(1, -(-len(labels) // PIECE)))
        z = np.concatenate([predictor.features(space_of(some)) for some in parts])
        return mean_directions(z, labels, count)


def _known_only(
    task: Task,
    learner: Learner,
    settings: Settings,
    preparation: Preparation,
    rows: Rows | None,
    keep_features: bool,
) -> Result:
    """Nothing is unlabeled: the known classes were learned, and there is nothing to discover."""
    reason = "no row is unlabeled: there is nothing to discover"
    learner.task = smaller = replace(learner.task, n_novel=0)
    fitted = learner.fit(KMEANS, None, None, None)
    predictor = _predictor(learner, fitted, settings, preparation, KMEANS, None)
    finished = _Finished(task, smaller, learner, predictor, fitted, None, None, np.arange(len(task)))
    return finished.result(
        rows,
        keep_features=keep_features,
        estimate=None,
        forecast=not_rehearsed((KMEANS,), smaller, reason),
        choice=reason,
        warnings=(f"{reason} (y == -1 marks unlabeled rows)",),
        seed=settings.seed,
    )
