"""The stages of training as functions: rotation → supervised → discovery.

All of them work on one `Training`: the model and the data on their way through the stages. With a `Storage`, finished
pre-training is stored and found again, and an interrupted stage goes on from its checkpoint; without one, everything
stays in memory.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from rich.console import Console
from sklearn.cluster import KMeans
from torch import nn

from unveil import files, recipe, rng, storage
from unveil.data.items import Items
from unveil.data.loader import Loader
from unveil.data.task import Task, Truth
from unveil.data.views import Views, make_views
from unveil.errors import UnveilError
from unveil.hardware import commit, pick_device, pick_precision
from unveil.methods.catalog import make_method, method_class
from unveil.methods.method import Context, Method
from unveil.methods.rotation import Rotation
from unveil.methods.similarity import LearnSimilarity, PairwiseSettings, similarity_of
from unveil.methods.supervised import Supervised
from unveil.models import build_encoder
from unveil.models.heads import linear_head, start_from_clusters
from unveil.models.inference import features, inputs
from unveil.models.model import Model
from unveil.models.similarity import Similarity
from unveil.settings import Settings, Stage
from unveil.storage import Storage
from unveil.training import checkpoint
from unveil.training.evaluation import Evaluator, warnings
from unveil.training.loop import Metrics, train
from unveil.training.progress import Bar
from unveil.training.trunk_cache import cached_views

Labels = NDArray[np.int64]


@dataclass
class Training:
    """One model and its data on their way through the stages."""

    settings: Settings
    task: Task
    truth: Truth | None = None
    storage: Storage | None = None
    console: Console = field(default_factory=lambda: Console(quiet=True))
    seconds: dict[str, float] = field(default_factory=dict)
    """Training time of each stage, as stored with it: a reused stage still says what it cost."""
    warnings: list[str] = field(default_factory=list)
    """What looked wrong while it ran."""
    cache: dict[str, Any] | None = None
    """What the trunk cache holds, where there is one."""

    def __post_init__(self) -> None:
        self.settings = fit_to_data(self.settings, self.task)
        machine = self.settings.machine
        self.device = pick_device(machine.device)
        self.precision = pick_precision(machine, self.device)
        self.views = self.make_views(self.task.items)
        check(self.settings, self.task, self.views)
        test = self.task.test_items
        self.test_views = None if test is None or len(test) == 0 else self.make_views(test, like=self.views)
        self.trained_by = ""  # identity of the last stage that changed the weights
        self.trunk_by = ""  # and of the last that changed the trunk
        self.model = self._fresh_model()
        self._data_id = ""

    @property
    def data_id(self) -> str:
        """The content of the items; computed once, and only where something is stored."""
        self._data_id = self._data_id or self.task.items.fingerprint()
        return self._data_id

    def make_views(self, items: Items, like: Views | None = None) -> Views:
        """Views of items as the settings say; test items are scaled `like` the training items."""
        s = self.settings
        return make_views(items, s.data, s.augment, self.device, s.machine.workers, like)

    def _fresh_model(self) -> Model:
        s = self.settings
        seed = s.rotation.seed if s.rotation.epochs else s.supervised.seed
        encoder = build_encoder(s.encoder, self.views.shape, rng.generator(seed, "encoder"))
        known = linear_head(encoder.dim, max(1, len(self.task.known)), rng.generator(seed, "known head"))
        novel = linear_head(encoder.dim, 1, rng.generator(s.seed, "novel head"))  # discovery draws its own
        return Model(encoder, known, novel, self.precision).to(self.device)

    def evaluator(self) -> Evaluator:
        """Scores for the current views."""
        return Evaluator(
            task=self.task,
            truth=self.truth,
            views=self.views,
            test_views=self.test_views,
            config=self.settings.discovery,
            seed=self.settings.seed,
        )


def fit_to_data(settings: Settings, task: Task) -> Settings:
    """The settings with batches that are no larger than the data, and with the passes that `steps` asks for."""
    n_l, n_u = len(task.labelled), len(task.unlabelled)
    discovery, supervised = settings.discovery, settings.supervised
    each = discovery.labelled_per_batch
    if each is not None:
        rest = min(discovery.batch - each, max(n_u, 1))
        each = max(1, min(each, n_l))
        discovery = replace(discovery, batch=each + rest, labelled_per_batch=each)
    rows_in_pass, per_step = (n_l, each) if each is not None else (len(task), discovery.batch)
    discovery = replace(discovery, passes=passes(discovery, rows_in_pass, per_step))
    supervised = replace(supervised, passes=passes(supervised, n_l, supervised.batch))
    return replace(settings, supervised=supervised, discovery=discovery)


def passes(config: Stage, rows: int, per_step: int) -> int:
    """How often an epoch goes through `rows`, so that the stage has about `config.steps` steps."""
    if config.steps is None or config.epochs == 0:
        return config.passes
    return max(1, round(config.steps / config.epochs / max(1, -(-rows // max(1, per_step)))))


def check(settings: Settings, task: Task, views: Views) -> None:
    """Tell at once what would otherwise be noticed after hours of pre-training."""
    method_class(settings.discovery.method)
    if settings.rotation.epochs == 0:
        return
    if task.items.kind == "vectors":
        raise UnveilError("vectors cannot be rotated: set rotation.epochs=0")
    if views.shape[1] != views.shape[2]:
        raise UnveilError(
            f"rotation needs square images, got {views.shape[1]}x{views.shape[2]}: "
            "set rotation.epochs=0, or make the images square"
        )


def pretrain_rotation(training: Training) -> None:
    """Self-supervision on all items: which way up is the image?"""
    config, task = training.settings.rotation, training.task
    if config.epochs == 0:
        return
    method = Rotation(training.model, config).to(training.device)
    loader = _loader(training, config, np.arange(len(task)), config.seed, n_views=1)
    _stored(training, "rotation", config, method, loader, with_labels=config.known_weight > 0)
    training.trunk_by = training.trained_by


def pretrain_supervised(training: Training) -> None:
    """Learn the known classes; the trunk stays as self-supervision left it unless the recipe says otherwise."""
    config, task = training.settings.supervised, training.task
    if config.epochs == 0 or len(task.labelled) == 0:
        return
    if config.train == "tail":
        training.model.freeze_trunk()
    loader = _loader(training, config, task.labelled, config.seed, n_views=1)
    _stored(training, "supervised", config, Supervised(training.model), loader, with_labels=True)
    if config.train == "all":
        training.trunk_by = training.trained_by


def pretrain(training: Training) -> None:
    """Both stages before discovery, then the frozen trunk and its cache."""
    pretrain_rotation(training)
    pretrain_supervised(training)
    training.model.freeze_trunk()
    cache_trunk(training)


def discover(training: Training, start: Labels | None = None) -> list[Metrics]:
    """Find the novel classes; returns the metrics by epoch.

    `start`: clusters of the unlabelled rows from which the novel head starts, in place of those that the settings name.
    """
    config, task, model, seed = training.settings.discovery, training.task, training.model, training.settings.seed
    similarity = pretrain_similarity(training) if method_class(config.method).needs_similarity else None
    folder = None if training.storage is None else training.storage.run
    drawn = linear_head(model.encoder.dim, max(1, task.n_clusters), rng.generator(seed, "novel head"))
    model.novel_head = drawn = drawn.to(training.device)
    if config.novel_head != "random" and not (folder is not None and (folder / "checkpoint.safetensors").exists()):
        z = features(model, training.views, task.unlabelled)
        if start is None:
            start = kmeans(training, "tail" if config.novel_head == "inputs" else "features")
        start_from_clusters(drawn, z, torch.from_numpy(start).to(z.device))
    context = Context(
        settings=training.settings.method,
        seed=seed,
        labels=task.labels,
        features=lambda rows: features(model, training.views, rows),
        similarity=similarity,
    )
    method = make_method(config.method, model, context).to(training.device)
    if not method.trains:
        return _without_training(training, method)
    loader = _loader(
        training,
        config,
        np.arange(len(task)),
        seed,
        n_views=2,
        labelled_per_batch=config.labelled_per_batch,
        unlabelled_only=method.unlabelled_only,
    )
    history = _train(training, "discovery", config, method, loader, folder, _evaluation(training, method))
    training.seconds["discovery"] = history[-1]["seconds"] if history else 0.0
    return history


def _evaluation(training: Training, method: Method) -> Callable[[], Metrics]:
    """Evaluates the model and tells each warning once."""
    evaluator, seen = training.evaluator(), set[str]()

    def evaluate() -> Metrics:
        metrics = evaluator.discovery(training.model, method)
        for warning in warnings(metrics, training.task.n_clusters, training.settings.discovery, method):
            if (name := warning.partition(":")[0]) not in seen:
                seen.add(name)
                training.warnings.append(warning)
                training.console.print(f"warning: {warning}", style="yellow", soft_wrap=True)
        return metrics

    return evaluate


def _without_training(training: Training, method: Method) -> list[Metrics]:
    begun = time.monotonic()
    method.after_epoch()
    training.seconds["discovery"] = round(time.monotonic() - begun, 2)
    metrics = training.evaluator().discovery(training.model, method)
    return [{**metrics, "seconds": training.seconds["discovery"]}]


def pretrain_similarity(training: Training) -> Similarity:
    """A network that tells pairs of one class from pairs of two, learned from the labelled items."""
    assert isinstance(training.settings.method, PairwiseSettings)
    config, task = training.settings.method.similarity, training.task
    network = similarity_of(training.model, rng.generator(config.seed, "similarity")).to(training.device)
    loader = _loader(
        training, config, task.labelled, config.seed, n_views=1, classes_per_batch=config.classes_per_batch
    )
    method, before = LearnSimilarity(training.model, network), training.trained_by
    _stored(training, "similarity", config, method, loader, with_labels=True, kept=network)
    training.trained_by = before  # the model itself is as it was
    return network


def kmeans(training: Training, where: Literal["items", "tail", "features"]) -> Labels:
    """k-means of the unlabelled items: as they are, as they go into the tail, or by features of unit length.

    With a storage it is kept there: every method with this seed starts from the same clusters.
    """
    task, seed = training.task, training.settings.seed

    def fit() -> Labels:
        labels: Labels = KMeans(task.n_clusters, n_init=10, random_state=seed).fit(_points(training, where)).labels_
        return labels.astype(np.int64)

    if training.storage is None:
        return fit()
    trained = "" if where == "items" else training.trained_by or _untrained(training)
    made_from = [where, trained, training.data_id, _labels_id(task), task.n_clusters, seed]
    path = training.storage.stages / storage.identity(kmeans=made_from) / "labels.npy"
    with storage.locked(path.parent):
        if not path.exists():
            fitted = fit()
            files.write_with(path, lambda file: np.save(file, fitted, allow_pickle=False))
    stored: Labels = np.load(path, allow_pickle=False)
    return stored


def _points(training: Training, where: str) -> NDArray[np.float32]:
    rows = training.task.unlabelled
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
    room = None if machine.cache_gb is None else 1e9 * machine.cache_gb
    test_views = None
    if training.test_views is not None:
        test_views = _cached(training, training.test_views, training.task.test_items, 0, room)
        if test_views is None:
            return
        room = None if room is None else room - test_views.layout.bytes
    train_views = _cached(training, training.views, training.task.items, machine.cache_views, room)
    if train_views is None:
        return
    training.views, training.test_views = train_views, test_views
    training.model.skip_trunk()
    layout = train_views.layout
    training.cache = {"views": layout.views, "dtype": layout.dtype, "bytes": layout.bytes}
    training.seconds["cache"] = train_views.seconds + (0 if test_views is None else test_views.seconds)


def _cached(training: Training, source: Views, items: Items | None, count: int, most: float | None) -> Any:
    assert training.storage is not None
    assert items is not None
    made_from = {
        "trunk": training.trunk_by or _untrained(training),
        "data": items.fingerprint(),
        "augment": recipe.changed(training.settings.augment),
        **({"scaled_by": training.data_id} if items.kind == "vectors" else {}),
    }
    folder, console = training.storage.stages, training.console
    return cached_views(source, training.model, count, most=most, made_from=made_from, folder=folder, console=console)


def _stored(
    training: Training,
    stage: str,
    config: Stage,
    method: Method,
    loader: Loader,
    *,
    with_labels: bool,
    kept: nn.Module | None = None,
) -> None:
    """Train a stage, or take it from the storage; `kept` is what it leaves, if not the encoder."""

    def evaluate() -> Metrics:
        return {} if kept is not None else training.evaluator().supervised(training.model)

    if training.storage is None:
        history = _train(training, stage, config, method, loader, None, evaluate)
        training.seconds[stage] = history[-1]["seconds"]
        return
    settings, labels = training.settings, _labels_id(training.task) if with_labels else ""
    weights_of = kept or _pretrained(training.model, labels)
    table = {key: value for key, value in recipe.changed(config).items() if key != "evaluate_every"}
    training.trained_by = storage.identity(
        stage=stage,
        settings=table,
        encoder=_encoder_identity(settings),
        augment=recipe.changed(settings.augment),
        scaling=_scaling(settings),
        data=training.data_id,
        labels=labels,
        after=training.trained_by,
    )
    folder = training.storage.stages / training.trained_by
    with storage.locked(folder):
        weights = folder / "model.safetensors"
        if not weights.exists():
            history = _train(training, stage, config, method, loader, folder, evaluate)
            lines = {
                "stage": stage,
                "settings": table,
                "seconds": history[-1]["seconds"],
                "history": history,
                "commit": commit(),
            }
            files.write_json(folder / "stage.json", lines)
            checkpoint.save_model(weights, weights_of)  # last: it marks the stage as finished
            (folder / "checkpoint.safetensors").unlink(missing_ok=True)
        else:
            training.console.print(f"{stage}: reused from {folder}", soft_wrap=True)
        checkpoint.load_model(weights, weights_of)
        training.seconds[stage] = files.read_json(folder / "stage.json")["seconds"]


def _train(
    training: Training,
    stage: str,
    config: Stage,
    method: Method,
    loader: Loader,
    folder: Path | None,
    evaluate: Callable[[], Metrics],
) -> list[Metrics]:
    def after_epoch(epoch: int) -> Metrics:
        last = epoch + 1 == config.epochs
        return evaluate() if last or (epoch + 1) % config.evaluate_every == 0 else {}

    return train(
        method,
        loader,
        config,
        folder=folder,
        every_seconds=training.settings.machine.checkpoint_seconds,
        progress=Bar(stage, training.console),
        after_epoch=after_epoch,
    )


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


def _pretrained(model: Model, labels: str) -> nn.ModuleDict:
    """What a stage leaves behind: the known head only where labels were used, and never the novel head, which every
    discovery seed draws for itself."""
    return nn.ModuleDict({"encoder": model.encoder} | ({"known_head": model.known_head} if labels else {}))


def _labels_id(task: Task) -> str:
    return task.labels.tobytes().hex()


def _encoder_identity(settings: Settings) -> dict[str, Any]:
    """The encoder's settings, with the content of a weights file in place of its path."""
    config = settings.encoder
    weights = {} if config.weights is None else {"weights": storage.fingerprint_file(Path(config.weights))}
    return recipe.changed(config) | weights


def _scaling(settings: Settings) -> list[Any]:
    """How items are scaled before a network sees them."""
    data = settings.data
    return [data.mean, data.std, *([data.scaling] if data.scaling != "feature" else [])]


def _untrained(training: Training) -> str:
    """What a trunk depends on that no stage has trained."""
    state = training.model.encoder.trunk.state_dict()
    weights = {name: Items.of(value.cpu().float().flatten().numpy()).fingerprint() for name, value in state.items()}
    return storage.identity(weights=weights, scaling=_scaling(training.settings))
