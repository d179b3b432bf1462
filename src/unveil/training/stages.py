"""The stages of training as functions: rotation → supervised → discovery.

They share a `Training`, which holds the model and the data. With a `Storage`, finished pre-training is stored and
reused, and an interrupted stage continues from its checkpoint; without one, everything stays in memory.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from unveil import ranks, rng
from unveil.clustering.clusterer import Clusterer, with_known
from unveil.clustering.known_head import known_head
from unveil.data.loader import Loader
from unveil.data.task import UNLABELED
from unveil.errors import UnveilError
from unveil.methods.catalog import make_clusterer, make_method, method_class
from unveil.methods.method import Context, Method
from unveil.methods.rotation import Rotation
from unveil.methods.similarity import LearnSimilarity, PairwiseSettings, Similarity, similarity_of
from unveil.methods.supervised import Supervised
from unveil.models.encoder import load_head
from unveil.models.heads import linear_head, start_from_clusters
from unveil.models.inference import features
from unveil.numerics import Labels
from unveil.settings import Stage
from unveil.training import checkpoint
from unveil.training.evaluation import warnings
from unveil.training.guard import Guard
from unveil.training.loop import Metrics
from unveil.training.stored_stages import (
    cache_trunk,
    kmeans,
    neighbor_clusters,
    starting_point,
    train_or_reuse,
    train_stage,
)
from unveil.training.training import Training


def pretrain_rotation(training: Training) -> None:
    """Self-supervision on all items: the rotation of each image, and where the recipe says so two views of it."""
    config, task = training.settings.rotation, training.task
    if config.epochs == 0:
        return
    method = Rotation(training.model, config).to(training.device)
    loader = _loader(training, config, np.arange(len(task)), config.seed, n_views=method.n_views)
    train_or_reuse(training, "rotation", config, method, loader, with_labels=config.known_weight > 0)
    training.trunk_by = training.trained_by


def pretrain_supervised(training: Training) -> None:
    """Learn the known classes; the trunk stays as self-supervision left it unless the recipe says otherwise."""
    config, task = training.settings.supervised, training.task
    if len(task.labeled) == 0:
        return
    if config.closed_form:
        z = features(training.model, training.views, task.labeled).cpu().numpy()
        head = known_head(z, task.labels[task.labeled], len(task.known), config.seed)
        training.model.known_head = head.to(training.device)
        return
    if config.epochs == 0:
        return
    if config.train == "tail":
        training.model.freeze_trunk()
    loader = _loader(training, config, task.labeled, config.seed, n_views=1)
    train_or_reuse(training, "supervised", config, Supervised(training.model), loader, with_labels=True)
    if config.train == "all":
        training.trunk_by = training.trained_by


def pretrain(training: Training) -> None:
    """Both stages before discovery, then the frozen trunk and its cache."""
    pretrain_rotation(training)
    pretrain_supervised(training)
    if training.settings.discovery.trunk_batchnorm == "training":
        training.model.freeze_trunk_weights()
    else:
        training.model.freeze_trunk()
        cache_trunk(training)


def discovery_stage(training: Training, start: Labels | None = None, recognized: Labels | None = None) -> list[Metrics]:
    """Find the novel classes; returns the metrics by epoch.

    `start`: clusters of the unlabeled rows from which the novel head starts; None: as `discovery.novel_head` says.
    `recognized`: labels of all rows, with the classes of unlabeled rows that were recognized as known.
    """
    config, task, model, seed = training.settings.discovery, training.task, training.model, training.settings.seed
    if (clusterer := make_clusterer(config.method, training.settings.method)) is not None:
        return _cluster(training, clusterer, recognized)
    kind = method_class(config.method)
    similarity = pretrain_similarity(training) if kind is not None and kind.needs_similarity else None
    folder = None if training.storage is None else training.storage.run
    head = linear_head(model.encoder.dim, max(1, task.n_clusters), rng.generator(seed, "novel head"))
    model.novel_head = head = head.to(training.device)
    made_from = ""
    if folder is not None:
        made_from, path = starting_point(training), folder / checkpoint.NAME
        training.tell(ranks.current().from_first(lambda: checkpoint.set_aside_damaged(path)))
        training.tell(ranks.current().from_first(lambda: checkpoint.set_aside_other_cache(path, made_from)))
    if config.novel_head == "weights":
        if not load_head(head, training.settings.encoder, "novel_head"):
            raise UnveilError(
                "discovery.novel_head is 'weights', but encoder.weights names no file with a novel head: "
                "set discovery.novel_head=random"
            )
    elif config.novel_head != "random" and not (folder is not None and (folder / checkpoint.NAME).exists()):
        z = features(model, training.views, task.unlabeled)
        if start is None and config.novel_head == "neighbors":
            start = neighbor_clusters(training)
        elif start is None:
            start = kmeans(training, "tail" if config.novel_head == "inputs" else "features")
        labels = torch.from_numpy(start).to(z.device)
        start_from_clusters(head, z, labels, round_clusters=config.novel_head != "neighbors")
    context = Context(
        settings=training.settings.method,
        seed=seed,
        labels=task.labels,
        features=lambda rows: features(model, training.views, rows),
        similarity=similarity,
    )
    method = make_method(config.method, model, context).to(training.device)
    loader = _discovery_loader(training, method)
    evaluation = _evaluation(training, method)
    watched = partial(features, model, training.views, task.unlabeled)
    guard = Guard(model, watched, seed, training.tell) if config.guard else None
    history = train_stage(training, "discovery", config, method, loader, folder, evaluation, made_from, guard)
    training.seconds["discovery"] = history[-1]["seconds"] if history else 0.0
    return history


def _discovery_loader(training: Training, method: Method) -> Loader:
    config, task, seed = training.settings.discovery, training.task, training.settings.seed
    if method.unlabeled_only and config.unlabeled_batch is not None:
        config = replace(config, batch=config.unlabeled_batch, labeled_per_batch=None)
        return _loader(training, config, task.unlabeled, seed, n_views=2)
    kinds = {"labeled_per_batch": config.labeled_per_batch, "unlabeled_only": method.unlabeled_only}
    return _loader(training, config, np.arange(len(task)), seed, n_views=2, **kinds)


def _evaluation(training: Training, method: Method) -> Callable[[], Metrics]:
    """A function that evaluates the model and prints each kind of warning once."""
    evaluator, seen = training.evaluator(), set[str]()

    def evaluate() -> Metrics:
        metrics = evaluator.discovery(training.model, method)
        for warning in warnings(metrics, training.task.n_clusters, training.settings.discovery, method):
            if (name := warning.partition(":")[0]) not in seen:
                seen.add(name)
                training.tell(warning)
        return metrics

    return evaluate


def _cluster(training: Training, clusterer: Clusterer, recognized: Labels | None) -> list[Metrics]:
    """Cluster the features of the pre-trained encoder; nothing is trained."""
    begun, task, model = time.monotonic(), training.task, training.model
    labels = task.labels if recognized is None else recognized
    z = features(model, training.views, np.arange(len(task))).cpu().numpy()
    clustering = clusterer.fit(z, labels, task.n_novel or 1, training.settings.seed)
    known, head = labels != UNLABELED, clustering.head
    if recognized is not None:
        head = with_known(head, z[known], labels[known], len(task.known))
    model.novel_head = head.to(training.device)
    training.seconds["discovery"] = round(time.monotonic() - begun, 2)
    return [{**training.evaluator().discovery(model), "seconds": training.seconds["discovery"]}]


def pretrain_similarity(training: Training) -> Similarity:
    """Train a network on the labeled items that says whether two items share a class."""
    assert isinstance(training.settings.method, PairwiseSettings)
    config, task = training.settings.method.similarity, training.task
    network = similarity_of(training.model, rng.generator(config.seed, "similarity")).to(training.device)
    loader = _loader(training, config, task.labeled, config.seed, n_views=1, classes_per_batch=config.classes_per_batch)
    method, before = LearnSimilarity(training.model, network), training.trained_by
    train_or_reuse(training, "similarity", config, method, loader, with_labels=True, result=network)
    training.trained_by = before  # the model itself is unchanged
    return network


def _loader(training: Training, config: Stage, rows: Labels, seed: int, *, n_views: int, **options: Any) -> Loader:
    return Loader(
        views=training.views,
        labels=training.task.labels,
        rows=rows,
        batch=config.batch,
        passes=config.passes,
        seed=seed,
        device=training.device,
        n_views=n_views,
        augment_single_view=training.settings.augment.pretraining,
        **options,
    )
