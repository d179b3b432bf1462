"""SimGCD (Wen et al., ICCV 2023): one classifier over known and novel classes, taught by its own sharper predictions.

    unveil run digits --set discovery.method=simgcd

Classes are directions, and a prediction is a softmax over cosines of features to them. Each view has the prediction of
the other view as its target, at a lower temperature; labeled rows have their class as well. The entropy of the mean
prediction is kept high, so that neither the known classes nor a few novel ones take all rows. Contrastive losses on a
projection of the features, with and without labels, shape the representation.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil import rng
from unveil.data.loader import Batch
from unveil.losses import batch_contrastive, mean_entropy, swapped_prediction
from unveil.methods.baseline import encode_pair
from unveil.methods.method import Context, Method
from unveil.models.heads import prototypes_of
from unveil.models.model import Model
from unveil.settings import MethodSettings, at_least, expect, positive


@dataclass(frozen=True, kw_only=True)
class SimGCDSettings(MethodSettings):
    """Weights and temperatures, with the published values."""

    supervised_weight: float = 0.35
    """λ: weight of the losses with labels; those without have 1 − λ."""
    entropy_weight: float = 2.0
    """ε: weight of the entropy of the mean prediction."""
    temperature: float = 0.1
    """Divides the cosines of a prediction."""
    target_start: float = 0.07
    """Divides the cosines of a target in the first epoch."""
    target_end: float = 0.04
    """Divides the cosines of a target from `target_epochs` on."""
    target_epochs: float = 30
    """Epochs over which the temperature of the targets falls, along a cosine."""
    contrastive_temperature: float = 0.07
    """Divides the cosines of the contrastive losses."""
    hidden: int | None = None
    """Units of the projection for the contrastive losses; None: four times the features (ResNet-18: 2048)."""
    projection: int | None = None
    """Dimensions of that projection; None: half of the features (ResNet-18: 256)."""

    def __post_init__(self) -> None:
        share = self.supervised_weight
        expect(0 <= share <= 1, f"supervised_weight is {share}: give a number from 0 to 1")
        at_least(self, entropy_weight=0, target_epochs=0, hidden=1, projection=1)
        positive(self, "temperature", "target_start", "target_end", "contrastive_temperature")

    def target_temperature(self, epoch: int) -> float:
        """The temperature of the targets in an epoch, counted from 0."""
        time = min(epoch / self.target_epochs, 1.0) if self.target_epochs else 1.0
        return self.target_end + (self.target_start - self.target_end) * (1 + math.cos(math.pi * time)) / 2


class SimGCD(Method):
    """Self-distillation between views over all classes, and cross-entropy on labeled rows.

    The classifier is the known and the novel head side by side; both start in the directions of the heads before.
    """

    Settings: ClassVar[type[MethodSettings]] = SimGCDSettings

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        config = self.config = context.settings_as(SimGCDSettings)
        model.known_head = prototypes_of(model.known_head, config.temperature)
        model.novel_head = prototypes_of(model.novel_head, config.temperature)
        model.comparable = True
        dim = model.encoder.dim
        hidden, projection = config.hidden or 4 * dim, config.projection or max(1, dim // 2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(rng.number(context.seed, "projection"))
            first, second, last = nn.Linear(dim, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, projection)
            self.project = nn.Sequential(first, nn.GELU(), second, nn.GELU(), last)

    def trained(self) -> list[nn.Parameter]:
        return [*self.model.trained(), *self.project.parameters()]

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        config, out, split = self.config, encode_pair(self.model, batch), batch.labeled
        z = torch.cat([out.z, out.z_hat])  # (2 B, D)
        logits = torch.cat([self.model.known_head(z), self.model.novel_head(z)], dim=1)  # (2 B, C): cosines / τ
        sharper = config.temperature / config.target_temperature(batch.epoch)
        targets = (logits.detach() * sharper).softmax(dim=1)
        entropy = mean_entropy(logits.softmax(dim=1))
        projected, items = self.project(z), torch.arange(len(out.z), device=z.device).repeat(2)
        alone, labeled = 1 - config.supervised_weight, config.supervised_weight
        losses = {
            "distillation": alone * swapped_prediction(*logits.chunk(2), *targets.chunk(2)),
            "entropy": alone * config.entropy_weight * (math.log(logits.shape[1]) - entropy),  # 0 where it is highest
            "contrastive": alone * self._contrastive(projected, items),
        }
        if split:
            y = batch.y.repeat(2)
            both = [torch.cat([one[:split] for one in rows.chunk(2)]) for rows in (logits, projected)]
            losses["ce"] = labeled * F.cross_entropy(both[0], y)
            losses["scl"] = labeled * self._contrastive(both[1], y)
        return losses

    def _contrastive(self, projected: Tensor, same: Tensor) -> Tensor:
        """same: (N,), equal numbers mark positives."""
        pairs = same[:, None] == same
        return batch_contrastive(projected, pairs, temperature=self.config.contrastive_temperature)
