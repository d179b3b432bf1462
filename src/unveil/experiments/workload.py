"""Discovery steps on random data, for measuring speed: whole ones, and heads, losses and queues alone."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from unveil import rng
from unveil.data import cached_views as cached
from unveil.data.items import Items
from unveil.data.loader import Batch, Loader
from unveil.data.task import UNLABELED
from unveil.data.views import Views, make_views
from unveil.errors import UnveilError
from unveil.methods.catalog import make_method
from unveil.methods.method import Context
from unveil.methods.ncl import NCL, NCLSettings
from unveil.models import Encoder, build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.settings import Settings
from unveil.training.loop import step_on


class Workload:
    """Discovery steps of a recipe on random images, as `training.loop.train` runs them, with every loss on.

    With a folder for `cache` the trunk's outputs are read from there, else the frozen trunk runs.
    """

    def __init__(
        self,
        settings: Settings,
        device: torch.device,
        precision: torch.dtype,
        *,
        cache: Path | None = None,
        classes: tuple[int, int] = (5, 5),
        items: int = 1024,
    ) -> None:
        config, draw, side = settings.discovery, rng.numpy(0, "pictures"), settings.augment.size or 32
        pictures = draw.integers(0, 256, (items, side, side, len(settings.data.mean)), dtype=np.uint8)
        labels = np.where(np.arange(items) < items // 2, draw.integers(0, classes[0], items), UNLABELED)
        views = make_views(Items.of(pictures), settings.data, settings.augment, device, workers=0)
        encoder = build_encoder(settings.encoder, views.shape, rng.generator(0, "encoder"))
        self.model = make_model(encoder, classes, device, precision)
        self.model.freeze_trunk()
        if cache is not None:
            views = random_cache(cache, self.model, views, device)
            self.model.skip_trunk()
        self.objective = make_objective(self.model, settings, device)
        self.optimizer = torch.optim.SGD(
            self.model.trained(), lr=1e-6, momentum=config.momentum, weight_decay=config.weight_decay, fused=True
        )
        self.loader = Loader(
            views=views,
            labels=labels,
            rows=np.arange(items),
            batch=config.batch,
            seed=0,
            device=device,
            labeled_per_batch=config.labeled_per_batch or config.batch // 2,
        )
        self.batches = self._batches(late_epoch(settings))

    def _batches(self, first: int) -> Iterator[Batch]:
        for epoch in itertools.count(first):
            yield from self.loader.epoch(epoch)

    def step(self) -> None:
        """One step of the training loop."""
        step_on(next(self.batches), self.objective, self.optimizer)


class Losses:
    """Heads, losses and queues of a step, on random features in place of an encoder's."""

    def __init__(
        self, settings: Settings, device: torch.device, *, dim: int = 512, classes: tuple[int, int] = (5, 5)
    ) -> None:
        encoder = Encoder(nn.Identity(), nn.Identity(), dim)
        self.objective = make_objective(make_model(encoder, classes, device, torch.float32), settings, device)
        config = settings.discovery
        draw = rng.generator(0, "features", device=device)
        z, z_hat = torch.randn(2, config.batch, dim, generator=draw, device=device).relu_()
        labeled = config.labeled_per_batch or config.batch // 2
        y = torch.randint(classes[0], (labeled,), generator=draw, device=device)
        self.batch = Batch(views=(z.requires_grad_(), z_hat.requires_grad_()), y=y, epoch=late_epoch(settings), step=0)

    def step(self) -> None:
        """Forward, backward to the features, and the upkeep of the queues."""
        losses = self.objective.losses(self.batch)
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
        self.objective.after_step()


def late_epoch(settings: Settings) -> int:
    """An epoch in which every loss is on."""
    config = settings.method
    return max(getattr(config, name, 0) for name in ("ncl_start", "scl_start", "hng_start"))


def make_model(encoder: Encoder, classes: tuple[int, int], device: torch.device, precision: torch.dtype) -> Model:
    """An encoder with fresh heads for (known, novel) classes, in training mode."""
    known, novel = (linear_head(encoder.dim, count, rng.generator(0, "head")) for count in classes)
    return Model(encoder, known, novel, precision).to(device).train()


def make_objective(model: Model, settings: Settings, device: torch.device) -> NCL:
    """Neighborhood contrastive learning with full queues."""
    config = settings.method
    if not isinstance(config, NCLSettings):
        raise UnveilError(f"discovery.method is '{settings.discovery.method}': only ncl and ncl-hng can be measured")
    labels = np.repeat([0, UNLABELED], [config.queue_labeled or config.queue, config.queue])
    no_features = torch.zeros(0, model.encoder.dim)  # random data has none
    context = Context(settings=config, seed=0, labels=labels, features=lambda rows: no_features)
    objective = make_method(settings.discovery.method, model, context)
    assert isinstance(objective, NCL)
    objective.to(device)
    draw = rng.generator(0, "queues", device=device)
    u, l = (  # noqa: E741
        torch.randn(queue.size, model.encoder.dim, generator=draw, device=device).relu_()
        for queue in (objective.queue_u, objective.queue_l)
    )
    y = torch.randint(model.known_head.out_features, (len(l),), generator=draw, device=device)
    objective.push(u, l, y)
    return objective


def random_cache(folder: Path, model: Model, source: Views, device: torch.device) -> cached.CachedViews:
    """A trunk cache with two random views of each item, of the shape and type that the trunk would leave."""
    with torch.no_grad():
        probe = model.trunk(torch.zeros(1, *source.shape, device=device)).movedim(1, -1)
    dtype = "bfloat16" if model.precision == torch.bfloat16 else "float16"
    layout = cached.Layout(items=len(source), views=2, shape=tuple(probe.shape[1:]), dtype=dtype)
    feature = torch.randn(probe.shape, generator=rng.generator(0, "cache")).relu_().movedim(-1, 1)
    features = feature.expand(len(source), *feature.shape[1:])
    starts = range(0, len(source), 64)
    cached.build(folder, layout, ((row, view, features[row : row + 64]) for row in starts for view in range(3)))
    return cached.CachedViews(folder, device)
