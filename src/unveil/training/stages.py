"""rotation → supervised → discovery. Each stage can be run, resumed and reused alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from rich.console import Console
from sklearn.cluster import KMeans
from torch import nn

from unveil import files, recipe, rng
from unveil import storage as store
from unveil.data.cached_views import CachedViews
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
from unveil.models.model import Model
from unveil.models.similarity import Similarity
from unveil.settings import Settings, Stage
from unveil.training import checkpoint
from unveil.training.evaluation import Evaluator, features, inputs, warnings
from unveil.training.loop import Metrics, train
from unveil.training.progress import Bar
from unveil.training.trunk_cache import cached_views


@dataclass
class Pipeline:
    """One run's model and data on their way through the stages."""

    settings: Settings
    task: Task
    truth: Truth | None
    store: Path
    console: Console
    seconds: dict[str, float] = field(default_factory=dict)
    """Training time of each stage, as stored with it: a reused stage still says what it cost."""
    warned: list[str] = field(default_factory=list)
    """What looked wrong while it ran."""
    cache: dict[str, Any] | None = None
    """What the trunk cache holds, where there is one."""
    start: NDArray[np.int64] | None = None
    """Clusters of the unlabelled items from which the novel head starts, in place of those that the settings name."""

    def __post_init__(self) -> None:
        machine = self.settings.machine
        self.device = pick_device(machine.device)
        self.precision = pick_precision(machine, self.device)
        self.views = self._views(self.task.items)
        self._check()
        self.test_views = self._views(self.task.test_items, like=self.views) if len(self.task.test_ids) else None
        self.data_id = store.fingerprint(self.task.items)
        self.trained_by = ""  # identity of the last stage that changed the weights
        self.trunk_by = ""  # and of the last that changed the trunk
        self.model = self._fresh_model()

    def _views(self, items: object, like: Views | None = None) -> Views:
        s = self.settings
        return make_views(items, s.data, s.augment, self.device, s.machine.workers, like)  # type: ignore[arg-type]

    def _fresh_model(self) -> Model:
        s = self.settings
        seed = s.rotation.seed if s.rotation.epochs else s.supervised.seed
        encoder = build_encoder(s.encoder, self.views.shape, rng.generator(seed, "encoder"))
        known = linear_head(encoder.dim, len(self.task.known), rng.generator(seed, "known head"))
        novel = linear_head(encoder.dim, self.task.n_novel, rng.generator(s.seed, "novel head"))
        return Model(encoder, known, novel, self.precision).to(self.device)

    def _check(self) -> None:
        """What would otherwise be noticed after hours of pre-training, or when the run directory has been begun."""
        s = self.settings
        method_class(s.discovery.method)
        if s.rotation.epochs == 0:
            return
        if self.task.kind == "vectors":
            raise UnveilError("vectors cannot be rotated: set rotation.epochs=0")
        if self.views.shape[1] != self.views.shape[2]:
            raise UnveilError(
                f"rotation needs square images, got {self.views.shape[1]}x{self.views.shape[2]}: "
                "set rotation.epochs=0, or make the images square"
            )

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

    def rotation(self) -> None:
        """Self-supervision on all items."""
        config = self.settings.rotation
        if config.epochs == 0:
            return
        labels = self.task.labels.tobytes().hex() if config.known_weight else ""
        method = Rotation(self.model, config).to(self.device)
        loader = self._loader(config, np.arange(len(self.task.ids)), config.seed, n_views=1)
        self._stored("rotation", config, method, loader, labels, lambda: self.evaluator().supervised(self.model))
        self.trunk_by = self.trained_by

    def supervised(self) -> None:
        """Known classes; the trunk stays as self-supervision left it unless the recipe says otherwise."""
        config = self.settings.supervised
        if config.epochs == 0:
            return
        if config.train == "tail":
            self.model.freeze_trunk()
        method = Supervised(self.model)
        loader = self._loader(config, self.task.labelled, config.seed, n_views=1)
        labels = self.task.labels.tobytes().hex()
        self._stored("supervised", config, method, loader, labels, lambda: self.evaluator().supervised(self.model))
        if config.train == "all":
            self.trunk_by = self.trained_by

    def _stored(
        self,
        stage: str,
        config: Stage,
        method: Method,
        loader: Loader,
        labels: str,
        evaluate: Callable[[], Metrics],
        kept: nn.Module | None = None,
    ) -> None:
        """Train a stage into the store, or take it from there; `kept` is what it leaves, if not the encoder."""
        s = self.settings
        kept = kept or _pretrained(self.model, labels)
        table = {key: value for key, value in recipe.changed(config).items() if key != "evaluate_every"}
        self.trained_by = store.identity(
            stage=stage,
            settings=table,
            encoder=self._encoder_identity(),
            augment=recipe.changed(s.augment),
            scaling=self._scaling(),
            data=self.data_id,
            labels=labels,
            after=self.trained_by,
        )
        folder = self.store / self.trained_by
        with store.locked(folder):
            weights = folder / "model.safetensors"
            if not weights.exists():
                history = self._train(stage, config, method, loader, folder, evaluate)
                lines = {
                    "stage": stage,
                    "settings": table,
                    "seconds": history[-1]["seconds"],
                    "history": history,
                    "commit": commit(),
                }
                files.write_json(folder / "stage.json", lines)
                checkpoint.save_model(weights, kept)  # last: it marks the stage as finished
                (folder / "checkpoint.safetensors").unlink(missing_ok=True)
            else:
                self.console.print(f"{stage}: reused from {folder}", soft_wrap=True)
            checkpoint.load_model(weights, kept)
            self.seconds[stage] = files.read_json(folder / "stage.json")["seconds"]

    def _encoder_identity(self) -> dict[str, Any]:
        """The encoder's settings, with the content of a weights file in place of its path."""
        config = self.settings.encoder
        weights = {} if config.weights is None else {"weights": store.fingerprint_file(Path(config.weights))}
        return recipe.changed(config) | weights

    def _train(
        self,
        stage: str,
        config: Stage,
        method: Method,
        loader: Loader,
        folder: Path,
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
            every_seconds=self.settings.machine.checkpoint_seconds,
            progress=Bar(stage, self.console),
            after_epoch=after_epoch,
        )

    def cache_trunk(self) -> None:
        """Keep the frozen trunk's outputs on disk, where the recipe asks for it and the disk allows."""
        count = self.settings.machine.cache_views
        if count == 0:
            return
        room = None if self.settings.machine.cache_gb is None else 1e9 * self.settings.machine.cache_gb
        test_views = None
        if self.test_views is not None:
            test_views = self._cached(self.test_views, self.task.test_items, 0, room)
            if test_views is None:
                return
            room = None if room is None else room - test_views.layout.bytes
        train_views = self._cached(self.views, self.task.items, count, room)
        if train_views is None:
            return
        self.views, self.test_views = train_views, test_views
        self.model.skip_trunk()
        layout = train_views.layout
        self.cache = {"views": layout.views, "dtype": layout.dtype, "bytes": layout.bytes}
        self.seconds["cache"] = train_views.seconds + (0 if test_views is None else test_views.seconds)

    def _cached(self, source: Views, items: object, count: int, most: float | None) -> CachedViews | None:
        made_from = {
            "trunk": self.trunk_by or self._untrained(),
            "data": store.fingerprint(items),  # type: ignore[arg-type]
            "augment": recipe.changed(self.settings.augment),
            **({"scaled_by": self.data_id} if self.task.kind == "vectors" else {}),
        }
        return cached_views(
            source, self.model, count, most=most, made_from=made_from, folder=self.store, console=self.console
        )

    def _untrained(self) -> str:
        """What a trunk depends on that no stage has trained."""
        state = self.model.encoder.trunk.state_dict()
        weights = {name: store.fingerprint(value.cpu().flatten().numpy()) for name, value in state.items()}
        return store.identity(weights=weights, scaling=self._scaling())

    def _scaling(self) -> list[Any]:
        """How items are scaled before a network sees them."""
        data = self.settings.data
        return [data.mean, data.std, *([data.scaling] if data.scaling != "feature" else [])]

    def discovery(self, folder: Path) -> list[Metrics]:
        """The stage that finds the novel classes. Its checkpoint lives in the run directory."""
        config, s = self.settings.discovery, self.settings
        evaluator = self.evaluator()
        similarity = self.similarity() if method_class(config.method).needs_similarity else None
        # drawn here and not before: a stage that another seed began has left its own in the model
        fresh = linear_head(self.model.encoder.dim, self.task.n_novel, rng.generator(s.seed, "novel head"))
        self.model.novel_head.load_state_dict(fresh.state_dict())
        if config.novel_head != "random" and not (folder / "checkpoint.safetensors").exists():
            z = features(self.model, self.views, self.task.unlabelled)
            where: Literal["tail", "features"] = "tail" if config.novel_head == "inputs" else "features"
            labels = self.kmeans(where) if self.start is None else self.start
            assert isinstance(self.model.novel_head, nn.Linear)
            start_from_clusters(self.model.novel_head, z, torch.from_numpy(labels).to(z.device))
        method = make_method(
            config.method,
            self.model,
            Context(
                settings=s.method,
                seed=s.seed,
                labels=self.task.labels,
                features=lambda rows: features(self.model, self.views, rows),
                similarity=similarity,
            ),
        )
        method.to(self.device)
        if not method.trains:
            return self._fitted(method, evaluator)
        loader = self._loader(
            config,
            np.arange(len(self.task.ids)),
            s.seed,
            n_views=2,
            labelled_per_batch=config.labelled_per_batch,
            unlabelled_only=method.unlabelled_only,
        )
        warned: set[str] = set()

        def evaluate() -> Metrics:
            metrics = evaluator.discovery(self.model, method)
            for warning in warnings(metrics, self.task.n_novel, config, method):
                if (name := warning.partition(":")[0]) not in warned:
                    warned.add(name)
                    self.warned.append(warning)
                    self.console.print(f"warning: {warning}", style="yellow", soft_wrap=True)
            return metrics

        history = self._train("discovery", config, method, loader, folder, evaluate)
        self.seconds["discovery"] = history[-1]["seconds"] if history else 0.0
        return history

    def _fitted(self, method: Method, evaluator: Evaluator) -> list[Metrics]:
        """A method without training."""
        begun = time.monotonic()
        method.after_epoch()
        self.seconds["discovery"] = round(time.monotonic() - begun, 2)
        return [{**evaluator.discovery(self.model, method), "seconds": self.seconds["discovery"]}]

    def kmeans(self, where: Literal["items", "tail", "features"]) -> NDArray[np.int64]:
        """k-means of the unlabelled items: as they are, as they go into the tail, or by their normalised features.

        It is kept in the store: every method with this seed starts from the same clusters.
        """
        task, seed = self.task, self.settings.seed
        trained = "" if where == "items" else self.trained_by or self._untrained()
        made_from = [where, trained, self.data_id, task.labels.tobytes().hex(), task.n_novel, seed]
        path = self.store / store.identity(kmeans=made_from) / "labels.npy"
        with store.locked(path.parent):
            if not path.exists():
                fitted = KMeans(task.n_novel, n_init=10, random_state=seed).fit(self._points(where))
                files.write_with(path, lambda file: np.save(file, fitted.labels_.astype(np.int64), allow_pickle=False))
        labels: NDArray[np.int64] = np.load(path, allow_pickle=False)
        return labels

    def _points(self, where: str) -> NDArray[np.float32]:
        rows, items = self.task.unlabelled, self.task.items
        if where == "items":
            assert not isinstance(items, tuple)
            return items[rows].reshape(len(rows), -1).astype(np.float32)
        points = inputs if where == "tail" else features
        z = points(self.model, self.views, rows)
        found: NDArray[np.float32] = (z if where == "tail" else F.normalize(z, dim=1)).cpu().numpy()
        return found

    def similarity(self) -> Similarity:
        """A network that tells pairs of one class from pairs of two, learned from the labelled items."""
        assert isinstance(self.settings.method, PairwiseSettings)
        config = self.settings.method.similarity
        network = similarity_of(self.model, rng.generator(config.seed, "similarity")).to(self.device)
        loader = self._loader(
            config, self.task.labelled, config.seed, n_views=1, classes_per_batch=config.classes_per_batch
        )
        labels, last = self.task.labels.tobytes().hex(), self.trained_by
        self._stored("similarity", config, LearnSimilarity(self.model, network), loader, labels, dict, network)
        self.trained_by = last  # the model itself is as it was
        return network

    def _loader(
        self,
        config: Stage,
        rows: np.ndarray,
        seed: int,
        *,
        n_views: int,
        **options: Any,
    ) -> Loader:
        return Loader(
            views=self.views,
            labels=self.task.labels,
            rows=rows,
            batch=config.batch,
            passes=config.passes,
            seed=seed,
            device=self.device,
            n_views=n_views,
            **options,
        )


def _pretrained(model: Model, labels: str) -> nn.ModuleDict:
    """What a stage leaves behind: the known head only where labels were used, and never the novel head, which every
    discovery seed draws for itself."""
    return nn.ModuleDict({"encoder": model.encoder} | ({"known_head": model.known_head} if labels else {}))
