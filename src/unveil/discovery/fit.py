"""Fit a candidate: by training a network, or by clustering vectors as they are.

Two learners do the same for both kinds: they hold the points in which clusters are looked for, and fit a candidate.
"""

import copy
import time
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from sklearn.cluster import KMeans

from unveil import rng
from unveil.clustering.clusterer import Evidence, with_known
from unveil.clustering.kmeans import Clusters, assigned, kmeans, semi_kmeans
from unveil.clustering.known_head import known_head
from unveil.clustering.neighbor_consensus import NeighborConsensusSettings
from unveil.counting.estimate import check_count
from unveil.counting.known_neighbors import recognize
from unveil.data.items import Rows
from unveil.data.task import UNLABELED, Task, Truth
from unveil.data.views import VectorViews, common_scale, mean_and_spread
from unveil.discovery.candidates import Candidate
from unveil.hardware import pick_device, pick_precision
from unveil.methods.catalog import algorithm, make_clusterer, method_class
from unveil.models.heads import Head, Heads, linear_head
from unveil.models.inference import features
from unveil.models.model import Model
from unveil.numerics import Labels, Matrix, sums_by_label, unit_rows
from unveil.settings import Settings
from unveil.storage import Storage
from unveil.training import stored_stages
from unveil.training.evaluation import Evaluator
from unveil.training.loop import Metrics
from unveil.training.stages import discovery_stage, pretrain
from unveil.training.training import Training, check_network

PLAIN_ROWS = 5000
"""Rows that k-means is fitted to where it is only compared with."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A fitted candidate, and its clusters of the unlabeled rows."""

    model: Model | Heads
    clusters: Labels
    confidence: NDArray[np.float32]
    """(n_u,): largest probability of the novel head, not calibrated: the softmax is overconfident."""
    history: list[Metrics]
    warnings: tuple[str, ...] = ()
    evidence: Evidence | None = None
    """What speaks for the clusters, of a clusterer that rehearses by itself."""


class Learner(Protocol):
    """Holds what is learned from, and fits candidates to it."""

    seconds: dict[str, float]
    warnings: list[str]

    @property
    def points(self) -> Matrix:
        """(n, d): the points in which clusters are looked for."""
        ...

    @property
    def cache(self) -> dict[str, Any] | None:
        """What the trunk cache holds; None without one."""
        ...

    @property
    def task(self) -> Task: ...

    @task.setter
    def task(self, task: Task) -> None: ...

    def fit(
        self, candidate: Candidate, start: Labels | None, storage: Storage | None, recognized: Labels | None
    ) -> Fitted:
        """Fit a candidate; several can be fitted one after another.

        `start`: k-means clusters of the unlabeled rows, which the candidate k-means keeps. `recognized`: labels of all
        rows, with those of unlabeled rows that were recognized as known.
        """
        ...

    def plain_kmeans(self) -> Labels:
        """k-means clusters of the unlabeled rows on their features."""
        ...

    def kmeans_on_items(self) -> Labels:
        """k-means clusters of the unlabeled rows on the items as they came."""
        ...

    def input_scale(self) -> tuple[Matrix | None, Matrix | None]:
        """Mean and scale by which vectors are normalized before the model; None for images."""
        ...

    def features(self, fitted: Fitted, rows: Rows) -> Matrix:
        """Features of rows by the fitted model."""
        ...


def needs_network(task: Task, settings: Settings) -> bool:
    """Whether a network is trained: not for vectors that are clustered as they are."""
    frozen = settings.encoder.name == "identity" and settings.supervised.closed_form
    return not task.items.are_vectors or not frozen or method_class(settings.discovery.method) is not None


def make_learner(
    task: Task,
    settings: Settings,
    truth: Truth | None = None,
    storage: Storage | None = None,
    console: Console | None = None,
    unscaled: Matrix | None = None,
) -> Learner:
    """The learner that suits the task, pre-trained where there is a network. `unscaled`: the vectors before scaling."""
    if task.known and needs_network(task, settings):
        return NetworkLearner(task, settings, truth, storage, console)
    return VectorLearner(task, settings, truth, unscaled)


def check_settings(settings: Settings, task: Task) -> None:
    """Raise errors of the settings before anything is written or trained."""
    if task.n_novel is not None and len(task.unlabeled):
        check_count(task.n_novel, len(task.unlabeled))
    algorithm(settings.discovery.method)
    pick_precision(settings.machine, pick_device(settings.machine.device))
    if needs_network(task, settings):
        check_network(settings, task)


def clean_vectors(task: Task) -> Matrix:
    """(n, d): the vectors of a task; the first view of items with several."""
    x: Matrix = task.items.array
    return x if x.ndim == 2 else x[:, 0]


class NetworkLearner:
    """A network, pre-trained on rotations and known classes as the settings say."""

    def __init__(
        self, task: Task, settings: Settings, truth: Truth | None, storage: Storage | None, console: Console | None
    ) -> None:
        self.training = Training(settings, task, truth, storage, console or Console(quiet=True))
        pretrain(self.training)
        self.seconds, self.warnings = self.training.seconds, self.training.warnings
        if task.items.are_vectors:
            self.points = clean_vectors(task)
        else:
            z = features(self.training.model, self.training.views, np.arange(len(task)))
            self.points = torch.nn.functional.normalize(z, dim=1).cpu().numpy()

    @property
    def task(self) -> Task:
        return self.training.task

    @task.setter
    def task(self, task: Task) -> None:
        self.training.task = task

    @property
    def cache(self) -> dict[str, Any] | None:
        return self.training.cache

    def fit(
        self, candidate: Candidate, start: Labels | None, storage: Storage | None, recognized: Labels | None
    ) -> Fitted:
        """Train from the pre-trained weights, which are not changed: several candidates share them."""
        task, copied = self.task, copy.copy(self.training)
        copied.model = copy.deepcopy(self.training.model)
        copied.settings = candidate.applied_to(self.training.settings)
        copied.storage, copied.warnings = storage, []
        if copied.settings.augment != self.training.settings.augment:
            copied.views = copied.make_views(task.items)
        if candidate.method is None:
            return _kept(copied.model.eval(), task, start)
        history = discovery_stage(copied, start, with_start(task, start, recognized))
        self.training.seconds["discovery"] = copied.seconds["discovery"]
        z = features(copied.model, copied.views, task.unlabeled)
        with torch.no_grad():
            best = copied.model.novel_head(z).softmax(dim=1).max(dim=1)
        return Fitted(
            model=copied.model.eval(),
            clusters=best.indices.cpu().numpy(),
            confidence=best.values.cpu().numpy(),
            history=history,
            warnings=tuple(copied.warnings),
        )

    def plain_kmeans(self) -> Labels:
        return stored_stages.kmeans(self.training, "features")

    def kmeans_on_items(self) -> Labels:
        return stored_stages.kmeans(self.training, "items")

    def input_scale(self) -> tuple[Matrix | None, Matrix | None]:
        views = self.training.item_views
        if not isinstance(views, VectorViews):
            return None, None
        return views.mean.cpu().numpy(), views.scale.cpu().numpy()

    def features(self, fitted: Fitted, rows: Rows) -> Matrix:
        assert isinstance(fitted.model, Model)
        z: Matrix = features(fitted.model, self.training.views, rows).cpu().numpy()
        return z


@dataclass
class VectorLearner:
    """Vectors that are clustered as they are; nothing is trained."""

    task: Task
    settings: Settings
    truth: Truth | None = None
    unscaled: Matrix | None = None
    """The vectors before they were scaled; None: as those of the task."""
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    cache: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.points = clean_vectors(self.task)
        mean, spread = mean_and_spread(self.task.items.array)
        scale = spread if self.settings.data.scaling == "feature" else common_scale(spread)
        self.mean, self.scale = mean.numpy(), scale.numpy()

    def fit(
        self, candidate: Candidate, start: Labels | None, storage: Storage | None, recognized: Labels | None
    ) -> Fitted:
        """The known head in closed form, and the clusters of the candidate's clusterer."""
        begun, task, z = time.monotonic(), self.task, self._scaled(self.points)
        settings, known = candidate.applied_to(self.settings), self._known_head(z)
        given, method = settings.data.vector_scaling, settings.method
        if given != "auto" and isinstance(method, NeighborConsensusSettings):
            method = replace(method, scalings=(given,))
        clusterer = None if candidate.method is None else make_clusterer(candidate.method, method)
        if clusterer is None:
            novel = linear_head(z.shape[1], 1, rng.generator(settings.seed, "novel head"))
            return _kept(Heads(known, novel), task, start)
        recognized = with_start(task, start, recognized)
        labels = task.labels if recognized is None else recognized
        unscaled = z if self.unscaled is None else self.unscaled
        clustering = clusterer.fit_weighed(
            z, labels, task.n_novel or 1, settings.seed, unscaled=unscaled, rehearsals=settings.rehearsals
        )
        head, clusters, confidence = clustering.head, clustering.labels, clustering.certainty
        if recognized is not None:
            of_known = labels != UNLABELED
            head = with_known(head, z[of_known], labels[of_known], len(task.known))
            with torch.no_grad():
                best = head(torch.from_numpy(z[task.unlabeled])).softmax(dim=1).max(dim=1)
            clusters, confidence = best.indices.numpy(), best.values.numpy()
        heads = Heads(known, head)
        self.seconds["discovery"] = round(time.monotonic() - begun, 2)
        history = [{**self._evaluator(z).discovery(heads), "seconds": self.seconds["discovery"]}]
        return Fitted(
            model=heads, clusters=clusters, confidence=confidence, history=history, evidence=clustering.evidence
        )

    def _known_head(self, z: Matrix) -> Head:
        task, seed = self.task, self.settings.supervised.seed
        if len(task.labeled) == 0:
            return linear_head(z.shape[1], max(1, len(task.known)), rng.generator(seed, "known head"))
        return known_head(z[task.labeled], task.labels[task.labeled], len(task.known), seed)

    def _scaled(self, x: Matrix) -> Matrix:
        scaled: Matrix = ((x - self.mean) / self.scale).astype(np.float32)
        return scaled

    def _evaluator(self, z: Matrix) -> Evaluator:
        test = self.task.test_items
        test_z = None if test is None or len(test) == 0 else self._scaled(clean_vectors(replace(self.task, items=test)))
        return Evaluator(
            task=self.task,
            truth=self.truth,
            features=lambda rows: torch.from_numpy(z[rows]),
            test_features=None if test_z is None else lambda: torch.from_numpy(test_z),
            config=self.settings.discovery,
            seed=self.settings.seed,
        )

    def plain_kmeans(self) -> Labels:
        unit = unit_rows(self._scaled(self.points[self.task.unlabeled]))
        return kmeans(unit, self.task.n_clusters, self.settings.seed, n_init=3, rows=PLAIN_ROWS).labels

    def kmeans_on_items(self) -> Labels:
        rows = self.task.unlabeled
        return self._kmeans(self.task.items.array[rows].reshape(len(rows), -1).astype(np.float32))

    def _kmeans(self, x: Matrix) -> Labels:
        fitted = KMeans(self.task.n_clusters, n_init=10, random_state=self.settings.seed).fit(x)
        labels: Labels = fitted.labels_.astype(np.int64)
        return labels

    def input_scale(self) -> tuple[Matrix | None, Matrix | None]:
        return self.mean, self.scale

    def features(self, fitted: Fitted, rows: Rows) -> Matrix:
        return self._scaled(self.points[rows])


def _kept(model: Model | Heads, task: Task, start: Labels | None) -> Fitted:
    """k-means: the start clusters are kept."""
    clusters = np.zeros(len(task.unlabeled), dtype=np.int64) if start is None else start
    return Fitted(model=model, clusters=clusters, confidence=np.ones(len(clusters), dtype=np.float32), history=[])


def with_start(task: Task, start: Labels | None, recognized: Labels | None) -> Labels | None:
    """The recognized rows; where nothing was recognized, those that start in the cluster of a known class."""
    if recognized is not None or not task.known_in_unlabeled or start is None:
        return recognized
    labels = task.labels.copy()
    labels[task.unlabeled] = np.where(start < len(task.known), start, UNLABELED)
    return labels


def start_clusters(task: Task, points: Matrix, seed: int, recognized: Labels | None = None) -> Clusters:
    """k-means clusters of the unlabeled rows, from which training starts.

    Where unlabeled rows may be of known classes, each known class has its mean as center, and k-means runs on the rows
    that are not recognized as known. With too few rows to recognize known classes, k-means runs on all rows and keeps
    labeled rows in their classes. `recognized`: labels of all rows, where known ones have been recognized already.
    """
    rows = task.unlabeled
    if not task.known_in_unlabeled:
        return kmeans(points[rows], task.n_clusters, seed)
    assert task.n_novel is not None
    n_known, labeled, y = len(task.known), points[task.labeled], task.labels[task.labeled]
    if recognized is None:
        recognized = _recognized(task, points, seed)
    if recognized is None or (recognized == UNLABELED).sum() <= task.n_novel:
        return semi_kmeans(points[rows], labeled, y, task.n_clusters, seed)
    known = recognized >= 0
    sizes = np.bincount(recognized[known], minlength=n_known)
    means = sums_by_label(points[known], recognized[known], n_known) / np.maximum(sizes, 1)[:, None]
    novel = kmeans(points[recognized == UNLABELED], task.n_novel, seed)
    return assigned(points[rows], np.concatenate([means.astype(np.float32), novel.centers]))


def _recognized(task: Task, points: Matrix, seed: int) -> Labels | None:
    """(n,): the labels, with those of unlabeled rows that are recognized as known; -2 for rows that were not drawn."""
    labeled, rows = task.labeled, task.unlabeled
    found = recognize(points[labeled], task.labels[labeled], points[rows], seed)
    if found is None:
        return None
    labels = np.where(task.labels == UNLABELED, -2, task.labels)
    labels[rows[found.unlabeled]] = np.where(found.known, found.label, UNLABELED)
    return labels
