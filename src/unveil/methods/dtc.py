"""Deep transfer clustering (DTC, ICCV 2019): the features are drawn to the centres of sharpened assignments.

Features go through a linear layer that starts as their principal components. q is a Student-t assignment to the
centres μ, and its target p sharpens q:
    q_ik ∝ 1 / (1 + |f_i − μ_k|²)        p_ik ∝ q_ik² / Σ_i q_ik
"""

import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from torch import Tensor, nn

from unveil.data.loader import Batch
from unveil.losses import sigmoid_rampup
from unveil.methods.method import Context, Method
from unveil.nn.model import Model

KEPT = 0.6
"""Share of the past in an average of predictions."""


class DTC(Method):
    """KL(p ‖ q) on unlabelled items; variants add consistency, or average predictions over epochs."""

    unlabelled_only = True
    targets: Tensor
    ensemble: Tensor
    seen: Tensor

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        self.context, self.config = context, context.config
        classes, dim = model.novel_head.out_features, model.encoder.dim
        axes = min(classes, dim, max(1, len(context.unlabelled) - 1))
        self.project = nn.Linear(dim, axes)
        self.centers = nn.Parameter(torch.zeros(classes, axes))
        for name in ("targets", "ensemble", "seen"):  # one row for each item
            self.register_buffer(name, torch.zeros(len(context.labels), classes))

    def trained(self) -> list[nn.Parameter]:
        return [*self.model.trained(), *self.project.parameters(), self.centers]

    def before_epoch(self, epoch: int) -> None:
        config, variant = self.config, self.config.dtc_variant
        if epoch == 0:
            self._start()
        rows = torch.from_numpy(self.context.unlabelled).to(self.targets.device)
        fresh = epoch >= config.dtc_warmup and (epoch - config.dtc_warmup) % config.dtc_interval == 0
        if variant == "tep" or fresh or epoch == 0:
            q = self._clean_assignments()
            if variant == "tep":
                self.ensemble[rows] = KEPT * self.ensemble[rows] + (1 - KEPT) * q
                q = self.ensemble[rows] / (1 - KEPT ** (epoch + 1))
            if fresh or epoch == 0:
                self.targets[rows] = sharpened(q)
        if variant == "te" and epoch > 0:
            self.ensemble.mul_(KEPT).add_(self.seen, alpha=1 - KEPT)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        config, variant = self.config, self.config.dtc_variant
        assert batch.rows is not None
        views = batch.views if variant == "pi" else batch.views[:1]
        q, *rest = self._assignments(self.model.encode(torch.cat(views))).chunk(len(views))
        losses = {"kl": F.kl_div(q.clamp_min(1e-12).log(), self.targets[batch.rows], reduction="batchmean")}
        weight = config.consistency * sigmoid_rampup(batch.epoch, config.rampup)
        if variant == "pi":
            losses["consistency"] = weight * F.mse_loss(q, rest[0])
        if variant == "te":
            self.seen[batch.rows] = q.detach()
            if batch.epoch > 0:
                past = self.ensemble[batch.rows] / (1 - KEPT**batch.epoch)
                losses["consistency"] = weight * F.mse_loss(q, past)
        return losses

    @torch.no_grad()
    def after_epoch(self) -> None:
        """The nearest centre as a linear head: |f − μ|² is smallest where 2 μ·f − |μ|² is largest, f = Wz + b."""
        head = self.model.novel_head
        head.weight.copy_(2 * self.centers @ self.project.weight)
        head.bias.copy_(2 * self.centers @ self.project.bias - self.centers.square().sum(dim=1))

    def _assignments(self, z: Tensor) -> Tensor:
        """q (B, C)."""
        f = self.project(z)
        apart = (f[:, None] - self.centers).square().sum(dim=2)  # (B, C)
        q: Tensor = 1 / (1 + apart)
        return F.normalize(q, p=1.0, dim=1)

    @torch.no_grad()
    def _clean_assignments(self) -> Tensor:
        return self._assignments(self.context.features(self.context.unlabelled).to(self.centers.device))

    @torch.no_grad()
    def _start(self) -> None:
        z = self.context.features(self.context.unlabelled)
        fitted = PCA(len(self.project.bias), random_state=self.context.seed).fit(z.cpu().numpy())
        axes = torch.from_numpy(fitted.components_).to(z)
        scale = (z - z.mean(dim=0)).matmul(axes.T).std().clamp_min(1e-6)  # t-distributed neighbourhoods have width 1
        self.project.weight.copy_(axes / scale)
        self.project.bias.copy_(-(axes @ z.mean(dim=0)) / scale)
        found = KMeans(len(self.centers), n_init=20, random_state=self.context.seed).fit(self.project(z).cpu().numpy())
        self.centers.copy_(torch.from_numpy(found.cluster_centers_).to(z))


def sharpened(q: Tensor) -> Tensor:
    """p: squares divided by the size of each cluster, so that none swallows the others."""
    p = q.square() / q.sum(dim=0).clamp_min(1e-12)
    return p / p.sum(dim=1, keepdim=True)
