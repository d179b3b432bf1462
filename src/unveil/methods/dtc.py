"""Deep transfer clustering (DTC, ICCV 2019): features are pulled toward the centers of sharpened assignments.

Features go through a linear layer that starts as their principal components. q is a Student-t assignment to the
centers μ, and its target p sharpens q:
    q_ik ∝ 1 / (1 + |f_i − μ_k|²)        p_ik ∝ q_ik² / Σ_i q_ik
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from torch import Tensor, nn

from unveil.data.loader import Batch
from unveil.losses import sigmoid_rampup
from unveil.methods.baseline import ConsistencySettings
from unveil.methods.method import Context, Method
from unveil.models.model import Model
from unveil.settings import MethodSettings, at_least

MOMENTUM = 0.6  # weight of the past in the moving average of predictions
PIECE = 4096  # items whose distances to all centers are computed together


@dataclass(frozen=True, kw_only=True)
class DTCSettings(ConsistencySettings):
    """The variant of DTC, and when its targets change."""

    variant: Literal["baseline", "pi", "te", "tep"] = "pi"
    """baseline: no consistency loss. pi: consistency of two views. te: consistency with past predictions. tep: targets
    from past predictions."""
    warmup_epochs: int = 10
    """Epochs during which the initial targets are kept."""
    interval: int = 5
    """Epochs between updates of the targets after the warm-up."""

    def __post_init__(self) -> None:
        at_least(self, warmup_epochs=0, interval=1)


class DTC(Method):
    """KL(p ‖ q) on unlabeled items; variants add consistency, or average predictions over epochs.

    In the warm-up the initial targets are kept and no consistency is added; schedules start at its end.
    """

    Settings: ClassVar[type[MethodSettings]] = DTCSettings
    unlabeled_only = True
    starts_from_clusters = False
    position: Tensor
    targets: Tensor
    ensemble: Tensor
    seen: Tensor
    times: Tensor

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        self.context, self.config = context, context.settings_as(DTCSettings)
        classes, dim, items = model.novel_head.out_features, model.encoder.dim, len(context.unlabeled)
        axes = min(classes, dim, max(1, items - 1))
        self.project = nn.Linear(dim, axes)
        self.centers = nn.Parameter(torch.zeros(classes, axes))
        position = torch.full((len(context.labels),), -1)
        position[torch.from_numpy(context.unlabeled)] = torch.arange(items)
        self.register_buffer("position", position, persistent=False)  # of each row among the unlabeled ones
        averaged = items if self.config.variant in ("te", "tep") else 0
        for name, rows in (("targets", items), ("ensemble", averaged), ("seen", averaged)):
            self.register_buffer(name, torch.zeros(rows, classes))
        self.register_buffer("times", torch.zeros(averaged))  # how often a row has entered the average

    def trained(self) -> list[nn.Parameter]:
        return [*self.model.trained(), *self.project.parameters(), self.centers]

    def before_epoch(self, epoch: int) -> None:
        variant, age = self.config.variant, epoch - self.config.warmup_epochs
        if epoch == 0:
            self._start()
            self.targets.copy_(sharpened(self._clean_assignments()))
        if variant == "te" and age > 0:
            self._average(self.seen)
            self.seen.zero_()
        due = age >= 0 and age % self.config.interval == 0
        if age < 0 or not (due or variant == "tep"):
            return
        q = self._clean_assignments()
        if variant == "tep":
            self._average(q)
            q = self._past(slice(None))
        if due:
            self.targets.copy_(sharpened(q))

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        config, variant, age = self.config, self.config.variant, batch.epoch - self.config.warmup_epochs
        assert batch.rows is not None
        rows = self.position[batch.rows]
        views = batch.views if variant == "pi" and age >= 0 else batch.views[:1]
        z = batch.whole(self.model.encode(torch.cat(views)), copies=len(views))
        q, *q_hat = self._assignments(z).chunk(len(views))
        divergence = F.kl_div(q.clamp_min(1e-12).log(), self.targets[rows], reduction="batchmean")
        losses = {"kl": divergence / q.shape[1]}  # averaged over classes too, as published
        weight = config.consistency * sigmoid_rampup(max(age, 0), config.rampup)
        if q_hat:
            losses["consistency"] = weight * F.mse_loss(q, q_hat[0])
        if variant == "te" and age >= 0:
            self.seen[rows] = q.detach()
            known = (self.times[rows] > 0).to(q.dtype)[:, None]  # rows that were never predicted have no past
            losses["consistency"] = weight * (known * (q - self._past(rows)).square()).mean()
        return losses

    @torch.no_grad()
    def after_epoch(self) -> None:
        """The nearest center as a linear head: |f − μ|² is smallest where 2 μ·f − |μ|² is largest, f = Wz + b."""
        head = self.model.novel_head
        assert isinstance(head, nn.Linear)
        head.weight.copy_(2 * self.centers @ self.project.weight)
        head.bias.copy_(2 * self.centers @ self.project.bias - self.centers.square().sum(dim=1))

    def _assignments(self, z: Tensor) -> Tensor:
        """q (B, C)."""
        f = self.project(z)
        distances = (f[:, None] - self.centers).square().sum(dim=2)  # (B, C)
        q: Tensor = 1 / (1 + distances)
        return F.normalize(q, p=1.0, dim=1)

    @torch.no_grad()
    def _clean_assignments(self) -> Tensor:
        z = self.context.features(self.context.unlabeled).to(self.centers.device)
        return torch.cat([self._assignments(part) for part in torch.split(z, PIECE)])

    def _average(self, q: Tensor) -> None:
        """Add predictions to the moving average; rows of zeros, which were not predicted, are skipped."""
        predicted = (q.sum(dim=1) > 0).to(q.dtype)
        decay = 1 - (1 - MOMENTUM) * predicted[:, None]
        self.ensemble.mul_(decay).add_(q, alpha=1 - MOMENTUM)
        self.times.add_(predicted)

    def _past(self, rows: Tensor | slice) -> Tensor:
        """The moving average, corrected for its start at zero."""
        return self.ensemble[rows] / (1 - MOMENTUM ** self.times[rows].clamp_min(1))[:, None]

    @torch.no_grad()
    def _start(self) -> None:
        z = self.context.features(self.context.unlabeled)
        pca = PCA(len(self.project.bias), random_state=self.context.seed).fit(z.cpu().numpy())
        axes = torch.from_numpy(pca.components_).to(z)
        scale = (z - z.mean(dim=0)).matmul(axes.T).std().clamp_min(1e-6)  # t-distributed neighborhoods have width 1
        self.project.weight.copy_(axes / scale)
        self.project.bias.copy_(-(axes @ z.mean(dim=0)) / scale)
        fitted = KMeans(len(self.centers), n_init=20, random_state=self.context.seed).fit(self.project(z).cpu().numpy())
        self.centers.copy_(torch.from_numpy(fitted.cluster_centers_).to(z))


def sharpened(q: Tensor) -> Tensor:
    """p: squares divided by the size of each cluster, so that large clusters do not absorb the others."""
    p = q.square() / q.sum(dim=0).clamp_min(1e-12)
    return p / p.sum(dim=1, keepdim=True)
