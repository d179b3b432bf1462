"""Rotation pre-training against the literal procedure, and the training speed of the compact encoder."""

import itertools
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks import literal
from benchmarks.rows import KNOWN, SIDE, Row, Sizes, against, name_of, throughput
from benchmarks.timing import alternate
from unveil import rng, settings
from unveil.data.items import Items
from unveil.data.loader import Batch, Loader
from unveil.data.views import make_views
from unveil.experiments.peak import Call
from unveil.experiments.workload import make_model
from unveil.methods.rotation import Rotation
from unveil.models import build_encoder
from unveil.training.loop import step_on


class Pretraining:
    """Rotation steps on random labeled images, as the training loop runs them."""

    def __init__(
        self,
        sizes: Sizes,
        encoder: settings.Encoder,
        config: settings.Rotation,
        device: torch.device,
        precision: torch.dtype,
    ) -> None:
        base, draw = sizes.settings(), rng.numpy(0, "pictures")
        pictures = draw.integers(0, 256, (sizes.items, SIDE, SIDE, 3), dtype=np.uint8)
        views = make_views(Items.of(pictures), base.data, base.augment, device, workers=0)
        self.model = make_model(
            build_encoder(encoder, views.shape, rng.generator(0, "encoder")), (KNOWN, 1), device, precision
        )
        self.objective = Rotation(self.model, config).to(device)
        self.optimizer = torch.optim.SGD(
            self.objective.trained(), lr=1e-6, momentum=0.9, nesterov=True, weight_decay=5e-4, fused=True
        )
        self.loader = Loader(
            views=views,
            labels=draw.integers(0, KNOWN, sizes.items),
            rows=np.arange(sizes.items),
            batch=config.batch,
            seed=0,
            device=device,
            n_views=1,
        )
        self.batches = self._batches()

    def _batches(self) -> Iterator[Batch]:
        for epoch in itertools.count():
            yield from self.loader.epoch(epoch)

    def step(self) -> None:
        step_on(next(self.batches), self.objective, self.optimizer)


def rotation(sizes: Sizes, device: torch.device, precisions: list[torch.dtype]) -> Iterator[Row]:
    """All four turns of a batch through the whole ResNet-18, forward and backward."""
    pictures = rng.numpy(0, "rows").integers(0, 256, (sizes.batch, SIDE, SIDE, 3), dtype=np.uint8)
    slow = literal.Rotation(width=sizes.width, device=device, lr=1e-6)
    config = settings.Rotation(batch=sizes.batch, rotations="all")
    steps: dict[str, Call] = {"literal": lambda: slow.step(pictures)}
    for precision in precisions:
        fast = Pretraining(sizes, sizes.settings().encoder, config, device, precision)
        steps[name_of(precision)] = fast.step
    times = alternate(steps, device, rounds=sizes.pretraining_rounds)
    images = 4 * sizes.batch
    yield throughput("rotation pre-training, literal", times["literal"], images, None, "float32")
    for precision in precisions:
        name = name_of(precision)
        yield throughput("rotation pre-training, ResNet-18", times[name], images, None, name)
        yield against("rotation pre-training, ResNet-18", times, name, 1.5, precision=name)


def compact(sizes: Sizes, device: torch.device, precisions: list[torch.dtype]) -> Iterator[Row]:
    """Training of the compact encoder: one turn of each image and the known classes at once."""
    encoder = settings.Encoder(name="compact", width=sizes.compact_width)
    config = settings.Rotation(batch=sizes.batch, rotations="one", known_weight=1.0)
    work = {name_of(precision): Pretraining(sizes, encoder, config, device, precision) for precision in precisions}
    times = alternate({name: one.step for name, one in work.items()}, device, rounds=sizes.rounds)
    for name, one in work.items():
        weights = sum(parameter.numel() for parameter in one.model.encoder.parameters()) / 1e6
        title = f"compact encoder of {weights:.1f} M parameters, training"
        yield throughput(title, times[name], sizes.batch, 1200, name)
