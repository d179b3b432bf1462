"""The steps of a fit: pre-training, start clusters, training of a candidate."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.clustering.kmeans import Clusters, assigned, kmeans, semi_kmeans
from unveil.counting.known_neighbors import recognise
from unveil.data.task import UNLABELLED, Task
from unveil.discovery.candidates import Candidate
from unveil.models.inference import features
from unveil.models.model import Model
from unveil.numerics import Labels, Matrix, sums_by_label
from unveil.storage import Storage
from unveil.training.loop import Metrics
from unveil.training.stages import discover, pretrain
from unveil.training.training import Training


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The trained network, and its clusters of the unlabelled rows."""

    model: Model
    clusters: Labels
    confidence: NDArray[np.float32]
    """(n_u,): largest probability of the novel head, not calibrated: the softmax is overconfident."""
    history: list[Metrics]
    warnings: tuple[str, ...]


def clean_vectors(task: Task) -> Matrix:
    """(n, d): the vectors of a task; the first view of items with several."""
    x: Matrix = task.items.array
    return x if x.ndim == 2 else x[:, 0]


def pretrained(training: Training) -> Training:
    """Run the stages before discovery; returns the training."""
    pretrain(training)
    return training


def points_of(training: Training) -> Matrix:
    """(n, d): the points that are clustered: vectors as they are, images as pre-trained features of unit length."""
    if training.task.items.kind == "vectors":
        return clean_vectors(training.task)
    z = features(training.model, training.views, np.arange(len(training.task)))
    points: Matrix = torch.nn.functional.normalize(z, dim=1).cpu().numpy()
    return points


def start_clusters(task: Task, points: Matrix, seed: int, recognised: Labels | None = None) -> Clusters:
    """k-means clusters of the unlabelled rows, from which training starts.

    Where unlabelled rows may be of known classes, each known class has its mean as center, and k-means runs on the rows
    that are not recognised as known. With too few rows to recognise known classes, k-means runs on all rows and keeps
    labelled rows in their classes. `recognised`: labels of all rows, where known ones have been recognised already.
    """
    rows = task.unlabelled
    if not task.known_in_unlabelled:
        return kmeans(points[rows], task.n_clusters, seed)
    assert task.n_novel is not None
    n_known, labelled, y = len(task.known), points[task.labelled], task.labels[task.labelled]
    if recognised is None:
        recognised = _recognised(task, points, seed)
    if recognised is None or (recognised == UNLABELLED).sum() <= task.n_novel:
        return semi_kmeans(points[rows], labelled, y, task.n_clusters, seed)
    known = recognised >= 0
    sizes = np.bincount(recognised[known], minlength=n_known)
    means = sums_by_label(points[known], recognised[known], n_known) / np.maximum(sizes, 1)[:, None]
    novel = kmeans(points[recognised == UNLABELLED], task.n_novel, seed)
    return assigned(points[rows], np.concatenate([means.astype(np.float32), novel.centers]))


def _recognised(task: Task, points: Matrix, seed: int) -> Labels | None:
    """(n,): the labels, with those of unlabelled rows that are recognised as known; -2 for rows that were not drawn."""
    labelled, rows = task.labelled, task.unlabelled
    found = recognise(points[labelled], task.labels[labelled], points[rows], seed)
    if found is None:
        return None
    labels = np.where(task.labels == UNLABELLED, -2, task.labels)
    labels[rows[found.unlabelled]] = np.where(found.known, found.label, UNLABELLED)
    return labels


def train_candidate(
    training: Training,
    task: Task,
    candidate: Candidate,
    start: Labels | None,
    storage: Storage | None,
    recognised: Labels | None = None,
) -> Trained:
    """Train a candidate from pre-trained weights, which are not changed: several candidates share them.

    With k-means nothing is trained and the start clusters are kept. `recognised`: labels of all rows, with those of
    unlabelled rows that were recognised as known.
    """
    copied = copy.copy(training)
    copied.model = copy.deepcopy(training.model)
    copied.settings = candidate.applied_to(training.settings)
    copied.task, copied.storage, copied.warnings = task, storage, []
    if copied.settings.augment != training.settings.augment:
        copied.views = copied.make_views(task.items)
    clusters = start if start is not None else np.zeros(len(task.unlabelled), dtype=np.int64)
    confidence, history = np.ones(len(clusters), dtype=np.float32), list[Metrics]()
    if recognised is None and task.known_in_unlabelled and start is not None:
        recognised = task.labels.copy()
        recognised[task.unlabelled] = np.where(start < len(task.known), start, UNLABELLED)
    if candidate.method is not None:
        history = discover(copied, start, recognised)
        training.seconds["discovery"] = copied.seconds["discovery"]
        z = features(copied.model, copied.views, task.unlabelled)
        with torch.no_grad():
            best = copied.model.novel_head(z).softmax(dim=1).max(dim=1)
        confidence, clusters = best.values.cpu().numpy(), best.indices.cpu().numpy()
    return Trained(
        model=copied.model.eval(),
        clusters=clusters,
        confidence=confidence,
        history=history,
        warnings=tuple(copied.warnings),
    )
