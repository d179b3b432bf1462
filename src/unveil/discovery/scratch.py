"""An encoder trained from scratch on the images at hand, by the paper's stages: rotation, then the known classes."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from unveil import recipe, rng
from unveil.data.dataset import Images, Items
from unveil.data.task import Task
from unveil.data.views import make_views
from unveil.hardware import pick_device
from unveil.models import build_encoder
from unveil.models.embedding import images_of
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.training import checkpoint
from unveil.training.evaluation import features
from unveil.training.stages import Pipeline

RECIPE = "cifar10-desk"
SHAPE = (3, 32, 32)


@dataclass(frozen=True)
class Scratch:
    """The trained encoder."""

    model: Model
    name: str = "compact"

    def __call__(self, given: Items, console: Console) -> NDArray[np.float32]:
        settings = recipe.load(RECIPE)
        images = images_of(given)
        device = self.model.device
        views = make_views(images, settings.data, settings.augment, device, 0)
        found: NDArray[np.float32] = features(self.model, views, np.arange(len(images))).cpu().numpy()
        return found

    def save(self, folder: Path) -> None:
        """Weights, as safetensors."""
        checkpoint.save_model(folder / "encoder.safetensors", self.model.encoder)

    @staticmethod
    def load(folder: Path) -> "Scratch":
        """What `save` wrote."""
        settings = recipe.load(RECIPE)
        drawn = rng.generator(0, "loaded")  # overwritten below
        encoder = build_encoder(settings.encoder, SHAPE, drawn)
        checkpoint.load_model(folder / "encoder.safetensors", encoder)
        heads = linear_head(encoder.dim, 1, drawn), linear_head(encoder.dim, 1, drawn)
        return Scratch(Model(encoder, *heads, torch.float32).eval())


def train_scratch(
    images: Images, labels: NDArray[np.int64], *, store: Path, device: str, seed: int, console: Console
) -> Scratch:
    """Train it, or take it from the store where these images and labels have been trained on before."""
    base = recipe.load(RECIPE, [f"machine.device={device}"])
    settings = replace(base, rotation=replace(base.rotation, seed=seed), supervised=replace(base.supervised, seed=seed))
    known = max(1, int(labels.max(initial=-1)) + 1)
    task = Task(
        name="images",
        kind="images",
        items=images,
        ids=tuple(map(str, range(len(images)))),
        labels=labels,
        known=tuple(map(str, range(known))),
        n_novel=1,
        test_items=None,
        test_ids=(),
    )
    pipeline = Pipeline(settings, task, None, Path(store), console)
    pipeline.rotation()
    if (labels >= 0).any():
        pipeline.supervised()
    model = pipeline.model.to(pick_device(device)).eval()
    model.precision = torch.float32  # the same vectors wherever it is loaded
    return Scratch(model)
