"""The paper's baseline (Sec. 3.1): cross-entropy + binary cross-entropy on pairs + consistency."""

from dataclasses import dataclass, replace

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
from unveil.settings import Discovery, Pairs


@dataclass(frozen=True)
class Outputs:
    """Features of both views of a batch; the first `labelled` rows have labels `y`."""

    z: Tensor
    z_hat: Tensor
    y: Tensor

    @property
    def labelled(self) -> int:
        return len(self.y)


def encode_pair(model: Model, batch: Batch) -> Outputs:
    """Both views in one pass."""
    z, z_hat = model.encode(torch.cat(batch.views)).chunk(2)
    return Outputs(z, z_hat, batch.y)


def positive_pairs(z_u: Tensor, z_l: Tensor, y: Tensor, config: Discovery, n_novel: int) -> Tensor:
    """The pairs of unlabelled rows that are taken to share a class, by the rule of the recipe."""
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
    model: Model, config: Discovery, out: Outputs, epoch: int, known_head: nn.Module | None = None
) -> dict[str, Tensor]:
    """ℓ_base = ℓ_ce + ℓ_bce + ω(t) ℓ_mse (Eq. 5), with ℓ_ce as usual, without the factor 1/C_l of Eq. 1.

    A batch may lack labelled or unlabelled rows. `known_head` takes the place of the model's.
    """
    split, own = out.labelled, config.consistency_rows == "own"
    head = model.known_head if known_head is None else known_head
    known = head(out.z[:split] if own else out.z)
    known_hat = head(out.z_hat[:split] if own else out.z_hat)
    p = model.novel_head(out.z[split:] if own else out.z).softmax(dim=1)
    p_hat = model.novel_head(out.z_hat[split:] if own else out.z_hat).softmax(dim=1)
    first = 0 if own else split  # of the unlabelled rows in p
    same = positive_pairs(out.z[split:], out.z[:split], out.y, config, model.novel_head.out_features)
    agreement = consistency(known.softmax(dim=1), known_hat.softmax(dim=1)) + consistency(p, p_hat)
    losses = {
        "bce": config.bce_weight * pairwise_bce(p[first:], p_hat[first:], same),
        "consistency": config.consistency * sigmoid_rampup(epoch, config.rampup) * agreement,
    }
    if split and config.ce_weight:
        losses["ce"] = config.ce_weight * F.cross_entropy(known[:split], out.y)
    return losses


class Baseline(Method):
    """CE on labelled rows, BCE on pairs of unlabelled ones, consistency on both."""

    pairs: Pairs | None = None
    """A pair rule that belongs to the method; None: the recipe's."""

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        config = context.config
        self.config = config if self.pairs is None else replace(config, pairs=self.pairs)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        return base_losses(self.model, self.config, encode_pair(self.model, batch), batch.epoch)
