"""Train a stage, or load it from the storage.

Finished stages, k-means clusters and the trunk cache are stored under a hash of everything they were computed from.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import nn

from unveil import checksums, files, ranks, recipe, storage
from unveil.clustering.neighbor_consensus import NeighborConsensus, NeighborConsensusSettings
from unveil.data.cached_views import CachedViews
from unveil.data.items import Items
from unveil.data.loader import Loader
from unveil.data.task import UNLABELED
from unveil.data.views import Views
from unveil.errors import DamagedError, UnveilError
from unveil.hardware import commit
from unveil.methods.method import Method
from unveil.models.inference import features, inputs
from unveil.numerics import Labels
from unveil.settings import Settings, Stage
from unveil.training import checkpoint
from unveil.training.guard import Guard
from unveil.training.loop import Metrics, train
from unveil.training.progress import Bar
from unveil.training.training import Training
from unveil.training.trunk_cache import cached_views

Cache = CachedViews | None
_MADE: set[Path] = set()  # stages that this process has trained: nobody needs to be told that they are used again


def train_or_reuse(
    training: Training,
    stage: str,
    config: Stage,
    method: Method,
    loader: Loader,
    *,
    with_labels: bool,
    result: nn.Module | None = None,
) -> None:
    """Train a stage, or load it from the storage. `result`: the module to store; None: encoder and known head."""

    def evaluate() -> Metrics:
        return {} if result is not None else training.evaluator().supervised(training.model)

    if training.storage is None:
        history = train_stage(training, stage, config, method, loader, None, evaluate)
        training.seconds[stage] = history[-1]["seconds"]
        return
    settings, (data, labels) = training.settings, _trained_on(training, loader.rows, with_labels)
    # the novel head is not stored: every discovery seed draws its own
    parts = {"encoder": training.model.encoder} | ({"known_head": training.model.known_head} if labels else {})
    weights_of = result or nn.ModuleDict(parts)
    table = {key: value for key, value in recipe.changed(config).items() if key != "evaluate_every"}
    training.trained_by = storage.identity(
        stage=stage,
        settings=table,
        encoder=_encoder_identity(settings),
        augment=recipe.changed(settings.augment),
        scaling=_scaling(settings),
        data=data,
        labels=labels,
        after=training.trained_by,
    )
    folder = training.storage.stages / training.trained_by
    with storage.locked(folder):
        weights = folder / "model.safetensors"
        for path in (weights, folder / checkpoint.NAME):
            training.tell(ranks.current().from_first(partial(checkpoint.set_aside_damaged, path)))
        description = folder / "stage.json"
        if not weights.exists():
            history = train_stage(training, stage, config, method, loader, folder, evaluate)
            _describe(description, stage, table, history)
            checkpoint.save_model(weights, weights_of)  # last: it marks the stage as finished
            files.remove(folder / checkpoint.NAME)
            ranks.current().wait()  # for the weights, which all load
            _MADE.add(folder)
        elif folder not in _MADE:
            training.console.print(f"{stage}: reused from {folder}", soft_wrap=True)
        checkpoint.load_model(weights, weights_of)
        try:
            training.seconds[stage] = _seconds(description)
        except DamagedError as error:  # the weights are sound, and nothing else is needed
            aside = f"; it was renamed to {checksums.set_aside(description).name}" if description.exists() else ""
            training.tell(f"{error}{aside}")
            _describe(description, stage, table, [])
            training.seconds[stage] = 0.0


def _describe(path: Path, stage: str, settings: dict[str, Any], history: list[Metrics]) -> None:
    """Write stage.json."""
    seconds = history[-1]["seconds"] if history else 0.0
    description = {"stage": stage, "settings": settings, "seconds": seconds, "history": history, "commit": commit()}
    files.write_json(path, checksums.with_checksum(description))


def _seconds(path: Path) -> float:
    """How long a stored stage took."""
    advice = "the time of the stage is not known any more"
    try:
        description = files.read_json(path)
        checksums.check_table(description, path, advice)
        return float(description["seconds"])
    except (UnveilError, KeyError, TypeError, ValueError):
        raise DamagedError(f"{path} is damaged: {advice}") from None


def train_stage(
    training: Training,
    stage: str,
    config: Stage,
    method: Method,
    loader: Loader,
    folder: Path | None,
    evaluate: Callable[[], Metrics],
    made_from: str = "",
    guard: Guard | None = None,
) -> list[Metrics]:
    def after_epoch(epoch: int) -> Metrics:
        last = epoch + 1 == config.epochs
        return evaluate() if last or (epoch + 1) % config.evaluate_every == 0 else {}

    return train(
        method,
        loader,
        config,
        made_from=made_from,
        folder=folder,
        every_seconds=training.settings.machine.checkpoint_seconds,
        progress=Bar(stage, training.console),
        after_epoch=after_epoch,
        guard=guard,
    )


def starting_point(training: Training) -> str:
    """A hash of what a discovery begins with: items, labels, number of classes, weights; with a trunk cache, one of its
    layout follows. A stored stage needs none: the name of its folder is one."""
    task = training.task
    labels = [_labels_id(task.labels), task.n_novel, task.known_in_unlabeled]
    begin = storage.identity(data=training.data_id, labels=labels, after=training.trained_by)
    return begin if training.cache is None else f"{begin} {storage.identity(cache=training.cache)}"


def kmeans(training: Training, where: Literal["items", "tail", "features"]) -> Labels:
    """k-means of the unlabeled items: on the items themselves, the inputs of the tail, or features of unit length."""
    task, seed = training.task, training.settings.seed

    def fit() -> Labels:
        points, algorithm = _points(training, where), KMeans(task.n_clusters, n_init=10, random_state=seed)
        return ranks.current().from_first(lambda: algorithm.fit(points).labels_.astype(np.int64))

    return _stored_clusters(training, where, fit)


def neighbor_clusters(training: Training) -> Labels:
    """Clusters of the unlabeled items that neighbor consensus finds in their features."""
    task = training.task

    def fit() -> Labels:
        z = features(training.model, training.views, np.arange(len(task))).cpu().numpy()
        clusterer = NeighborConsensus(NeighborConsensusSettings())
        clustering = clusterer.fit_weighed(
            z, task.labels, task.n_clusters, training.settings.seed, unscaled=z, rehearsals=training.settings.rehearsals
        )
        return ranks.current().from_first(lambda: clustering.labels)

    return _stored_clusters(training, "neighbors", fit)


def _stored_clusters(training: Training, where: str, fit: Callable[[], Labels]) -> Labels:
    """What `fit` finds. With a storage it is stored: every method with this seed starts from the same clusters."""
    task, seed = training.task, training.settings.seed
    if training.storage is None:
        return fit()
    encoder = training.model.encoder
    network = encoder.trunk if where == "tail" else encoder
    trained = "" if where == "items" else training.trained_by or _untrained(network, training.settings)
    made_from = [where, trained, training.data_id, _labels_id(task.labels), task.n_clusters, seed]
    path = training.storage.stages / storage.identity(kmeans=made_from) / "labels.npy"
    with storage.locked(path.parent):
        if path.exists():
            try:
                return checksums.load_array(path, "it is made again").astype(np.int64)
            except DamagedError as error:
                training.tell(f"{error}; it was renamed to {checksums.set_aside(path).name}")
        fitted = fit()
        checksums.save_array(path, fitted)
    return fitted


def _points(training: Training, where: str) -> NDArray[np.float32]:
    rows = training.task.unlabeled
    if where == "items":
        return training.task.items.array[rows].reshape(len(rows), -1).astype(np.float32)
    z = (inputs if where == "tail" else features)(training.model, training.views, rows)
    points: NDArray[np.float32] = (z if where == "tail" else F.normalize(z, dim=1)).cpu().numpy()
    return points


def cache_trunk(training: Training) -> None:
    """Keep the frozen trunk's outputs on disk, where the recipe asks for it and the disk allows."""
    machine = training.settings.machine
    if machine.cache_views == 0 or training.storage is None:
        return
    budget = None if machine.cache_gb is None else 1e9 * machine.cache_gb
    test_views = None
    if training.test_views is not None:
        test_views = _cached(training, training.test_views, training.task.test_items, 0, budget)
        if test_views is None:
            return
        budget = None if budget is None else budget - test_views.layout.bytes
    train_views = _cached(training, training.views, training.task.items, machine.cache_views, budget)
    if train_views is None:
        return
    training.views, training.test_views = train_views, test_views
    training.model.skip_trunk()
    layout = train_views.layout
    training.cache = {"views": layout.views, "dtype": layout.dtype, "bytes": layout.bytes}
    training.seconds["cache"] = train_views.seconds + (0 if test_views is None else test_views.seconds)


def _cached(training: Training, source: Views, items: Items | None, views: int, most: float | None) -> Cache:
    assert training.storage is not None
    assert items is not None
    made_from = {
        "trunk": training.trunk_by or _untrained(training.model.encoder.trunk, training.settings),
        "data": items.fingerprint(training.storage.stages),
        "augment": recipe.changed(training.settings.augment),
        **({"scaled_by": training.data_id} if items.are_vectors else {}),
    }
    return cached_views(
        source,
        training.model,
        views,
        most=most,
        made_from=made_from,
        folder=training.storage.stages,
        console=training.console,
        tell=training.tell,
    )


def _trained_on(training: Training, rows: Labels, with_labels: bool) -> tuple[str, str]:
    """Hashes of the items and labels that a stage depends on.

    A stage on labeled images alone, after stages on labeled images alone, does not depend on the unlabeled ones:
    tasks with the same labeled images share it, such as the three subsets of ImageNet. Vectors are scaled by all rows.
    """
    task = training.task
    training.unlabeled_seen |= bool((task.labels[rows] == UNLABELED).any())
    if training.unlabeled_seen or not with_labels or task.items.are_vectors:
        return training.data_id, _labels_id(task.labels) if with_labels else ""
    return task.items.take(rows).fingerprint(), _labels_id(task.labels[rows])


def _labels_id(labels: Labels) -> str:
    return labels.tobytes().hex()


def _encoder_identity(settings: Settings) -> dict[str, Any]:
    """The encoder's settings, with the content of a weights file in place of its path.

    A precision that the recipe pins belongs to them: float32 must not go on from a stage that was trained in bfloat16.
    With `auto` either will do.
    """
    config, precision = settings.encoder, settings.machine.precision
    weights = {} if config.weights is None else {"weights": storage.fingerprint_file(Path(config.weights))}
    return recipe.changed(config) | weights | ({} if precision == "auto" else {"precision": precision})


def _scaling(settings: Settings) -> list[Any]:
    """The settings that scale the inputs of the network."""
    data = settings.data
    return [data.mean, data.std, *([data.scaling] if data.scaling != "feature" else [])]


def _untrained(network: nn.Module, settings: Settings) -> str:
    """The identity of a network that no stage has trained: its weights and the scaling of its inputs."""
    state = network.state_dict()
    weights = {name: Items.of(value.cpu().float().flatten().numpy()).fingerprint() for name, value in state.items()}
    return storage.identity(weights=weights, scaling=_scaling(settings))
