"""Ranking statistics (AutoNovel, ICLR 2020), and its incremental form with one head over all classes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil import rng
from unveil.data.loader import Batch
from unveil.losses import sigmoid_rampup
from unveil.methods.baseline import Baseline, base_losses, encode_pair
from unveil.methods.method import Context
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.settings import Pairs

PSEUDO = 0.05
"""Final weight of the pseudo-labels, as published."""


class Ranking(Baseline):
    """The baseline with pairs whose largest features are the same dimensions."""

    pairs: Pairs = "ranking"


class RankingPlus(Ranking):
    """The known head is widened by the novel classes, which it learns from the novel head's own predictions."""

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model, context)
        model.joint_head = widened(model.known_head, model.novel_head.out_features, context.seed)

    def trained(self) -> list[nn.Parameter]:
        assert self.model.joint_head is not None
        return [*self.model.trained(), *self.model.joint_head.parameters()]

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        head, config = self.model.joint_head, self.config
        assert head is not None
        out = encode_pair(self.model, batch)
        losses = base_losses(self.model, config, out, batch.epoch, known_head=head)
        z = out.z[out.labelled :]
        if len(z):
            with torch.no_grad():
                pseudo = self.model.novel_head(z).argmax(dim=1) + self.model.known_head.out_features
            weight = PSEUDO * sigmoid_rampup(batch.epoch, config.rampup)
            losses["pseudo"] = weight * F.cross_entropy(head(z), pseudo)
        return losses

    @torch.no_grad()
    def after_epoch(self) -> None:
        known, joint = self.model.known_head, self.model.joint_head
        assert joint is not None
        known.weight.copy_(joint.weight[: known.out_features])
        known.bias.copy_(joint.bias[: known.out_features])


@torch.no_grad()
def widened(known: nn.Linear, extra: int, seed: int) -> nn.Linear:
    """A head for more classes: the old ones as they were, the new ones behind all of them at first."""
    head = linear_head(known.in_features, known.out_features + extra, rng.generator(seed, "joint head"))
    head = head.to(known.weight.device)
    head.weight[: known.out_features].copy_(known.weight)
    head.bias[: known.out_features].copy_(known.bias)
    head.bias[known.out_features :].copy_(known.bias.min() - 1)
    return head
