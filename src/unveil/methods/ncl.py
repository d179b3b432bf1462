"""Neighborhood contrastive learning (Sec. 3.2-3.5), with or without hard negative generation.

    unveil run digits --set discovery.method=ncl-hng

`examples/methods/ncl.py` is the same method as one plain loop. Here the losses are computed from products with the
queues that are stored or needed anyway: the functions with an underscore, each equal to the public one of that name.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from unveil import rng
from unveil.data.loader import Batch, Rows
from unveil.losses.contrastive import _neighborhood_contrastive, _supervised_contrastive
from unveil.losses.mixing import _hard_negatives
from unveil.methods.baseline import Baseline, base_losses, encode_pair
from unveil.methods.hng_variants import variant
from unveil.methods.method import Context, Variation
from unveil.methods.ncl_settings import HNGSettings, NCLSettings
from unveil.models.model import Model
from unveil.models.queue import Products, Queue
from unveil.settings import MethodSettings

__all__ = ["NCL", "HNGSettings", "NCLSettings", "NCLWithHNG"]

MOST_PRODUCTS = 100_000_000
"""Products u·l that are stored beside the queues (400 MB); with longer queues only those of drawn pairs exist."""


@dataclass(frozen=True)
class Negatives:
    """What a query is pushed away from."""

    cosines: Tensor  # (B, M): cosines to the queue that take part in the loss
    hard: Tensor | None = None  # (B, m): cosines to generated negatives
    to_labeled: Tensor | None = None  # (B, M_l): cosines to the labeled queue, where they were computed


class NCL(Baseline):
    """ℓ_all = ℓ_base + ℓ_ncl + ℓ_scl (Eq. 16).

    Queues are never longer than the data: a longer queue would hold several copies of an item, which would then be
    its own neighbors.
    """

    Settings: ClassVar[type[MethodSettings]] = NCLSettings
    variations = (Variation("many neighbors", {"k1_fraction": 0.5}, "with five times as many neighbors"),)
    config: NCLSettings

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model, context)
        config = context.settings_as(NCLSettings)
        self.config, self.seed = config, context.seed
        dim = model.encoder.dim

        def queue(most: int, rows: Rows, purpose: str) -> Queue:
            draw = rng.generator(context.seed, purpose) if config.queue_start == "random" else None
            return Queue(min(most, len(rows)), dim, draw)

        self.queue_u = queue(config.queue, context.unlabeled, "unlabeled queue")
        self.queue_l = queue(config.queue_labeled or config.queue, context.labeled, "labeled queue")
        self.k1 = self.neighbors(self.queue_u.size)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        config, split = self.config, batch.labeled
        out = encode_pair(self.model, batch, separate=config.separate_views)
        (z_l, z_u), (z_hat_l, z_hat_u) = ((z[:split], z[split:]) for z in (out.z, out.z_hat))

        # The baseline (Eq. 5)
        losses = base_losses(self.model, config, out, self.pairs_of(out), batch.epoch)

        # Unlabeled rows: contrast with their neighbors in the queue, and with hard negatives (Eq. 6-9, 12-15)
        to_labeled = None
        if batch.epoch >= config.ncl_start and config.ncl_weight:
            z = F.normalize(z_u, dim=1)
            negatives = self.negatives(z, z @ self.queue_u.filled().T, batch)
            to_labeled = negatives.to_labeled
            losses["ncl"] = config.ncl_weight * _neighborhood_contrastive(
                z,
                z_hat_u,
                negatives.cosines,
                k=self.k1,
                alpha=config.alpha,
                temperature=config.temperature,
                hard=negatives.hard,
                view_among_neighbors=config.view_among_neighbors,
            )

        # Labeled rows: contrast with those of their class in the queue (Eq. 10-11)
        if batch.epoch >= config.scl_start and config.scl_weight:
            queue, queue_y = self.queue_l.filled(), self.queue_l.filled_labels()
            losses["scl"] = config.scl_weight * _supervised_contrastive(
                z_l, z_hat_l, out.y, queue, queue_y, temperature=config.temperature
            )

        # The backward pass needs the queues as they are: `after_step` pushes the features
        self._to_push = z_u.detach(), z_l.detach(), out.y, to_labeled
        return losses

    def after_step(self) -> None:
        self.push(*self._to_push)

    def negatives(self, z: Tensor, cosines: Tensor, batch: Batch) -> Negatives:
        """The negatives of the unlabeled queries z (B, D) with these cosines to the queue (B, M)."""
        return Negatives(cosines)

    def push(self, z_u: Tensor, z_l: Tensor, y: Tensor, to_labeled: Tensor | None = None) -> None:
        """Put features into the queues. `to_labeled`: cosines (B, M_l) of z_u with the labeled queue so far."""
        self.queue_u.push(z_u)
        self.queue_l.push(z_l, y)

    def neighbors(self, stored: int) -> int:
        return self.config.neighbors(stored, self.model.novel_head.out_features)

    @classmethod
    def for_unbalanced(cls, settings: MethodSettings, share: float) -> dict[str, float]:
        """Fewer neighbors too: k1 = |M| / C / 2 takes clusters to be of equal size."""
        assert isinstance(settings, NCLSettings)
        return {"k1_fraction": settings.k1_fraction * share, **super().for_unbalanced(settings, share)}


class NCLWithHNG(NCL):
    """NCL with hard negatives from mixtures of unlabeled and labeled features (Sec. 3.4)."""

    Settings: ClassVar[type[MethodSettings]] = HNGSettings
    config: HNGSettings

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model, context)
        self.config = context.settings_as(HNGSettings)
        store = not self.config.variant and self.queue_u.size * self.queue_l.size <= MOST_PRODUCTS
        self.products = Products(self.queue_u.size, self.queue_l.size) if store else None
        if self.products is not None and self.queue_u.starts_filled:
            self.products.fill(self.queue_u, self.queue_l)

    def negatives(self, z: Tensor, cosines: Tensor, batch: Batch) -> Negatives:
        """Some cosines to the queue may be left out by a variant; hard negatives are added."""
        config = self.config
        k_easy = config.easy_negatives(len(self.queue_u), self.k1)
        if batch.epoch < config.hng_start or k_easy < 1:
            return Negatives(cosines)
        queues = self.queue_u.filled(), self.queue_l.filled()
        generator = rng.generator(self.seed, "hard negatives", batch.epoch, batch.step, device=z.device)
        if config.variant:
            return Negatives(*variant(z, cosines, *queues, config, self.k1, generator))
        to_labeled, squares = z @ queues[1].T, None
        if self.queue_u.starts_filled and not (self.queue_u.replaced and self.queue_l.replaced):
            squares = queues[0].square().sum(dim=1), queues[1].square().sum(dim=1)  # random entries have other lengths
        hard = _hard_negatives(
            cosines,
            to_labeled,
            queues,
            **config.mixing(k_easy),
            generator=generator,
            products=None if self.products is None else self.products.filled(self.queue_u, self.queue_l),
            squares=squares,
        )
        return Negatives(cosines, hard, to_labeled.detach())

    def push(self, z_u: Tensor, z_l: Tensor, y: Tensor, to_labeled: Tensor | None = None) -> None:
        slots_u, slots_l = self.queue_u.push(z_u), self.queue_l.push(z_l, y)
        if self.products is not None:
            known = None if to_labeled is None else to_labeled[-self.queue_u.size :]  # as many as the queue holds
            self.products.refresh(self.queue_u, self.queue_l, slots_u, slots_l, known)
