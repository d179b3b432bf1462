"""Ranking statistics (AutoNovel, ICLR 2020), and its incremental form with one head over all classes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil import rng
from unveil.data.loader import Batch
from unveil.losses import ranking_pairs, sigmoid_rampup
from unveil.methods.baseline import BaseLossSettings, Outputs, base_losses, encode_pair
from unveil.methods.method import Context, Method
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.settings import MethodSettings, at_least

PSEUDO = 0.05  # final weight of the pseudo-labels, as published


@dataclass(frozen=True, kw_only=True)
class RankingSettings(BaseLossSettings):
    """ℓ_base, with pairs by ranking statistics."""

    ranking_top: int = 5
    """A pair is positive where this many largest features are in the same dimensions."""

    def __post_init__(self) -> None:
        at_least(self, ranking_top=1)


class Ranking(Method):
    """The baseline with pairs whose largest features are in the same dimensions."""

    Settings: ClassVar[type[MethodSettings]] = RankingSettings

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        self.config = context.settings_as(RankingSettings)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        return self.base_losses(encode_pair(self.model, batch, separate=self.config.separate_views), batch.epoch)

    def base_losses(self, out: Outputs, epoch: int, known_head: nn.Module | None = None) -> dict[str, Tensor]:
        """ℓ_base with the method's own pairs."""
        same = ranking_pairs(out.z[out.labeled :], self.config.ranking_top)
        return base_losses(self.model, self.config, out, same, epoch, known_head)

    def positive_pairs(self, z_u: Tensor, z_l: Tensor, y: Tensor, h_u: Callable[[], Tensor]) -> Tensor:
        return ranking_pairs(z_u, self.config.ranking_top)

    def advice_on_pairs(self) -> list[str]:
        return [f"method.ranking_top={max(1, self.config.ranking_top - 2)}"]


class RankingPlus(Ranking):
    """Ranking with a joint head over all classes, which learns novel classes from predictions of the novel head."""

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model, context)
        assert isinstance(model.known_head, nn.Linear)
        model.joint_head = widened(model.known_head, model.novel_head.out_features, context.seed)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        head, config = self.model.joint_head, self.config
        assert head is not None
        out = encode_pair(self.model, batch, separate=config.separate_views)
        losses = self.base_losses(out, batch.epoch, known_head=head)
        z = out.z[out.labeled :]
        if len(z):
            with torch.no_grad():
                pseudo = self.model.novel_head(z).argmax(dim=1) + self.model.known_head.out_features
            weight = PSEUDO * sigmoid_rampup(batch.epoch, config.rampup)
            losses["pseudo"] = weight * F.cross_entropy(head(z), pseudo)
        return losses

    @torch.no_grad()
    def after_epoch(self) -> None:
        known, joint = self.model.known_head, self.model.joint_head
        assert isinstance(known, nn.Linear)
        assert isinstance(joint, nn.Linear)
        known.weight.copy_(joint.weight[: known.out_features])
        known.bias.copy_(joint.bias[: known.out_features])


@torch.no_grad()
def widened(known: nn.Linear, extra: int, seed: int) -> nn.Linear:
    """A head with `extra` more classes: known ones unchanged, new ones with a bias below all of them at first."""
    head = linear_head(known.in_features, known.out_features + extra, rng.generator(seed, "joint head"))
    head = head.to(known.weight.device)
    head.weight[: known.out_features].copy_(known.weight)
    head.bias[: known.out_features].copy_(known.bias)
    head.bias[known.out_features :].copy_(known.bias.min() - 1)
    return head
