"""The paper's baseline (Sec. 3.1): cross-entropy + binary cross-entropy on pairs + consistency."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil.data.loader import Batch
from unveil.losses import (
    calibrated_threshold,
    consistency,
    cosine_pairs,
    nearest_pairs,
    pairwise_bce,
    ranking_pairs,
    sigmoid_rampup,
)
from unveil.methods.method import Context, Method
from unveil.models.model import Model
from unveil.settings import MethodSettings, at_least, expect, positive

Pairs = Literal["cosine", "rank", "calibrated", "ranking"]


@dataclass(frozen=True, kw_only=True)
class ConsistencySettings(MethodSettings):
    """The consistency loss and its rising weight (Eq. 4)."""

    consistency: float = 5.0
    """γ: the final weight of the consistency loss."""
    rampup: float = 50
    """T: epochs over which that weight rises."""


@dataclass(frozen=True, kw_only=True)
class BaseLossSettings(ConsistencySettings):
    """The baseline loss ℓ_base, without its rule for pairs."""

    ce_weight: float = 1.0
    """Weight of the cross-entropy on known classes."""
    bce_weight: float = 1.0
    """Weight of the binary cross-entropy on pairs of unlabeled rows."""
    consistency_rows: Literal["own", "all"] = "own"
    """own: each row goes through the head of its kind (paper). all: every row goes through both (published code)."""
    separate_views: bool = False
    """The two views go through the network one after the other, so that BatchNorm has the statistics of each view alone
    (published code), and not both at once."""


@dataclass(frozen=True, kw_only=True)
class BaselineSettings(BaseLossSettings):
    """The baseline loss ℓ_base and its rule for pairs."""

    pairs: Pairs = "cosine"
    """How positive pairs are chosen. cosine: cosine ≥ threshold (paper). rank: the nearest of each row. calibrated: a
    threshold calibrated on known classes. ranking: equal top-ranked dimensions (ranking statistics)."""
    threshold: float = 0.95
    """λ of `cosine`."""
    rank_fraction: float = 0.5
    """c of `rank`: a row is paired with its nearest c/C_u of the batch."""
    ranking_top: int = 5
    """Number of top-ranked dimensions that `ranking` compares."""

    def __post_init__(self) -> None:
        expect(-1 <= self.threshold <= 1, f"threshold is {self.threshold}: give a cosine, from -1 to 1")
        positive(self, "rank_fraction")
        at_least(self, ranking_top=1)


@dataclass(frozen=True)
class Outputs:
    """Features of both views of a batch; the first `labeled` rows have labels `y`."""

    z: Tensor
    z_hat: Tensor
    y: Tensor

    @property
    def labeled(self) -> int:
        return len(self.y)


def encode_pair(model: Model, batch: Batch, *, separate: bool = False) -> Outputs:
    """Encode both views in one pass, or in two where `separate`; a single row has no statistics of its own."""
    if separate and len(batch.views[0]) > 1:
        z, z_hat = (batch.whole(model.encode(view)) for view in batch.views)
        return Outputs(z, z_hat, batch.y)
    z, z_hat = batch.whole(model.encode(torch.cat(batch.views)), copies=2).chunk(2)
    return Outputs(z, z_hat, batch.y)


def chosen_pairs(z_u: Tensor, z_l: Tensor, y: Tensor, config: BaselineSettings, n_novel: int) -> Tensor:
    """(B, B): the pairs of unlabeled rows that are assumed to share a class, by the rule of the recipe."""
    match config.pairs:
        case "cosine":
            return cosine_pairs(z_u, config.threshold)
        case "rank":
            return nearest_pairs(z_u, max(1, round(config.rank_fraction * len(z_u) / n_novel)))
        case "calibrated":
            return cosine_pairs(z_u, calibrated_threshold(z_l, y, config.threshold))
        case "ranking":
            return ranking_pairs(z_u, config.ranking_top)


def base_losses(
    model: Model, config: BaseLossSettings, out: Outputs, same: Tensor, epoch: int, known_head: nn.Module | None = None
) -> dict[str, Tensor]:
    """ℓ_base = ℓ_ce + ℓ_bce + ω(t) ℓ_mse (Eq. 5), with ℓ_ce as usual, without the factor 1/C_l of Eq. 1.

    same: (B, B), the pairs of unlabeled rows that are assumed to share a class. A batch may have no labeled or no
    unlabeled rows. `known_head` is used instead of the model's.
    """
    split, own_head = out.labeled, config.consistency_rows == "own"
    head = model.known_head if known_head is None else known_head
    known = head(out.z[:split] if own_head else out.z)
    known_hat = head(out.z_hat[:split] if own_head else out.z_hat)
    p = model.novel_head(out.z[split:] if own_head else out.z).softmax(dim=1)
    p_hat = model.novel_head(out.z_hat[split:] if own_head else out.z_hat).softmax(dim=1)
    first = 0 if own_head else split  # the first unlabeled row in p
    agreement = consistency(known.softmax(dim=1), known_hat.softmax(dim=1)) + consistency(p, p_hat)
    losses = {
        "bce": config.bce_weight * pairwise_bce(p[first:], p_hat[first:], same),
        "consistency": config.consistency * sigmoid_rampup(epoch, config.rampup) * agreement,
    }
    if split and config.ce_weight:
        losses["ce"] = config.ce_weight * F.cross_entropy(known[:split], out.y)
    return losses


class Baseline(Method):
    """CE on labeled rows, BCE on pairs of unlabeled ones, consistency on both."""

    Settings: ClassVar[type[MethodSettings]] = BaselineSettings

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        self.config = context.settings_as(BaselineSettings)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        out = encode_pair(self.model, batch, separate=self.config.separate_views)
        return base_losses(self.model, self.config, out, self.pairs_of(out), batch.epoch)

    def pairs_of(self, out: Outputs) -> Tensor:
        """The positive pairs of a batch."""
        z_l, z_u = out.z[: out.labeled], out.z[out.labeled :]
        return chosen_pairs(z_u, z_l, out.y, self.config, self.model.novel_head.out_features)

    def positive_pairs(self, z_u: Tensor, z_l: Tensor, y: Tensor, h_u: Callable[[], Tensor]) -> Tensor:
        return chosen_pairs(z_u, z_l, y, self.config, self.model.novel_head.out_features)

    def advice_on_pairs(self) -> list[str]:
        return [] if self.config.pairs == "rank" else ["method.pairs=rank"]

    @classmethod
    def for_unbalanced(cls, settings: MethodSettings, share: float) -> dict[str, float]:
        """Fewer pairs: a batch has few items of the smallest cluster."""
        assert isinstance(settings, BaselineSettings)
        return {"rank_fraction": settings.rank_fraction * max(share, 0.3)}
