"""`Training`: a model and its data, which pass through the stages, with settings adapted to the data."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rich.console import Console

from unveil import ranks, rng
from unveil.data.items import Items
from unveil.data.task import Task, Truth
from unveil.data.views import Views, make_views
from unveil.errors import UnveilError
from unveil.hardware import pick_device, pick_precision
from unveil.methods.catalog import algorithm, method_class
from unveil.models import build_encoder
from unveil.models.encoder import load_head
from unveil.models.heads import linear_head
from unveil.models.inference import features, trunk
from unveil.models.model import Model
from unveil.settings import Settings, Stage
from unveil.storage import Storage
from unveil.training.evaluation import Evaluator


@dataclass
class Training:
    """A model, its data and settings, which pass through the stages."""

    settings: Settings
    task: Task
    truth: Truth | None = None
    storage: Storage | None = None
    console: Console = field(default_factory=lambda: Console(quiet=True))
    seconds: dict[str, float] = field(default_factory=dict)
    """Training seconds by stage; a reused stage has those of its original training."""
    warnings: list[str] = field(default_factory=list)  # warnings of the evaluations
    cache: dict[str, Any] | None = None  # views, type and bytes of the trunk cache; None without one

    def __post_init__(self) -> None:
        self.settings = fit_to_data(self.settings, self.task)
        machine = self.settings.machine
        self.device = pick_device(machine.device)
        self.precision = pick_precision(machine, self.device)
        self.views = self.make_views(self.task.items)
        self.item_views = self.views  # views of the items themselves: a trunk cache may replace `views`
        check(self.settings, self.task, self.views)
        test = self.task.test_items
        self.test_views = None if test is None or len(test) == 0 else self.make_views(test, like=self.views)
        self.trained_by = ""  # identity of the last stage that changed the weights
        self.trunk_by = ""  # identity of the last stage that changed the trunk
        self.unlabeled_seen = False  # whether a stage has trained on unlabeled items
        self.model = self._fresh_model()
        self._data_id = ""

    @property
    def data_id(self) -> str:
        """A hash of the items; computed once, and only where something is stored."""
        store = None if self.storage is None else self.storage.stages
        self._data_id = self._data_id or self.task.items.fingerprint(store)
        return self._data_id

    def tell(self, warning: str) -> None:
        """Print a warning, and keep it for the record; an empty one is none."""
        if warning:
            self.warnings.append(warning)
            self.console.print(f"warning: {warning}", style="yellow", soft_wrap=True)

    def make_views(self, items: Items, like: Views | None = None) -> Views:
        """Views of items as the settings say; test items are scaled `like` the training items."""
        s = self.settings
        return make_views(items, s.data, s.augment, self.device, s.machine.workers, like)

    def _fresh_model(self) -> Model:
        s = self.settings
        seed = s.rotation.seed if s.rotation.epochs else s.supervised.seed
        encoder = build_encoder(s.encoder, self.views.shape, rng.generator(seed, "encoder"))
        if s.machine.sync_batchnorm:
            encoder.tail = ranks.current().sync_batchnorm(encoder.tail)
        known = linear_head(encoder.dim, max(1, len(self.task.known)), rng.generator(seed, "known head"))
        load_head(known, s.encoder, "known_head")
        novel = linear_head(encoder.dim, 1, rng.generator(s.seed, "novel head"))  # discovery draws its own
        return Model(encoder, known, novel, self.precision).to(self.device)

    def evaluator(self) -> Evaluator:
        """An evaluator of the current model and views."""
        test = self.test_views
        every = np.arange(0 if test is None else len(test))
        return Evaluator(
            task=self.task,
            truth=self.truth,
            features=lambda rows: features(self.model, self.views, rows),
            test_features=None if test is None or len(test) == 0 else lambda: features(self.model, test, every),
            trunk=lambda rows: trunk(self.model, self.views, rows),
            config=self.settings.discovery,
            seed=self.settings.seed,
        )


def fit_to_data(settings: Settings, task: Task) -> Settings:
    """The settings with batches that are no larger than the data, and with the passes that `steps` asks for."""
    n_l, n_u = len(task.labeled), len(task.unlabeled)
    discovery, supervised = settings.discovery, settings.supervised
    labeled = discovery.labeled_per_batch
    if labeled is not None:
        unlabeled = min(discovery.batch - labeled, max(n_u, 1))
        labeled = max(1, min(labeled, n_l))
        discovery = replace(discovery, batch=labeled + unlabeled, labeled_per_batch=labeled)
    rows_in_pass, per_step = (n_l, labeled) if labeled is not None else (len(task), discovery.batch)
    method = method_class(discovery.method)
    if discovery.unlabeled_batch is not None and method is not None and method.unlabeled_only:
        rows_in_pass, per_step = n_u, discovery.unlabeled_batch
    discovery = replace(discovery, passes=passes(discovery, rows_in_pass, per_step))
    supervised = replace(supervised, passes=passes(supervised, n_l, supervised.batch))
    return replace(settings, supervised=supervised, discovery=discovery)


def passes(config: Stage, rows: int, per_step: int) -> int:
    """How often an epoch goes through `rows`, so that the stage has about `config.steps` steps."""
    if config.steps is None or config.epochs == 0:
        return config.passes
    return max(1, round(config.steps / config.epochs / max(1, -(-rows // max(1, per_step)))))


def check_network(settings: Settings, task: Task) -> None:
    """Raise errors about items, augmentation and encoder that do not fit each other, by looking at two items."""
    machine, few = settings.machine, task.items.take(np.arange(min(2, len(task))))
    device = pick_device(machine.device)
    views = make_views(few, settings.data, settings.augment, device, machine.workers)
    check(settings, task, views)
    encoder = build_encoder(settings.encoder, views.shape, rng.generator(0, "check"))
    head = linear_head(encoder.dim, max(1, len(task.known)), rng.generator(0, "check"))
    load_head(head, settings.encoder, "known_head")


def check(settings: Settings, task: Task, views: Views) -> None:
    """Raise errors now that would otherwise appear after hours of pre-training."""
    algorithm(settings.discovery.method)
    if settings.discovery.trunk_batchnorm == "training" and settings.machine.cache_views:
        raise UnveilError(
            f"machine.cache_views is {settings.machine.cache_views}, but with discovery.trunk_batchnorm=training the "
            "trunk's outputs change in every step: set machine.cache_views=0, or discovery.trunk_batchnorm=fixed"
        )
    if settings.rotation.epochs == 0:
        return
    if task.items.are_vectors:
        raise UnveilError("vectors cannot be rotated: set rotation.epochs=0")
    if views.shape[1] != views.shape[2]:
        raise UnveilError(
            f"rotation needs square images, got {views.shape[1]}x{views.shape[2]}: "
            "set rotation.epochs=0, or make the images square"
        )
