"""Neighborhood contrastive learning (Sec. 3.2-3.5), with or without hard negative generation."""

import torch.nn.functional as F
from torch import Tensor

from unveil import rng
from unveil.data.loader import Batch
from unveil.losses import hard_negatives, neighborhood_contrastive, supervised_contrastive
from unveil.methods.baseline import Outputs, base_losses, encode_pair
from unveil.methods.hng_variants import easy_negatives, variant
from unveil.methods.method import Context, Method
from unveil.models.model import Model
from unveil.models.queue import Products, Queue
from unveil.settings import Discovery

MOST_PRODUCTS = 100_000_000
"""u·l that are kept beside the queues, 400 MB; with longer queues they are computed for the drawn pairs alone."""


class NCL(Method):
    """ℓ_all = ℓ_base + ℓ_ncl + ℓ_scl (Eq. 16).

    Queues never hold more than there is data: a queue that outlives an epoch stores several copies of one item,
    which then fill its own list of neighbours.
    """

    hng = False

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        config = context.config
        self.config, self.seed = config, context.seed
        dim = model.encoder.dim
        self.queue_u = Queue(min(config.queue, len(context.unlabelled)), dim)
        self.queue_l = Queue(min(config.queue_labelled or config.queue, len(context.labelled)), dim)
        kept = self.hng and not config.hng_variant and self.queue_u.size * self.queue_l.size <= MOST_PRODUCTS
        self.products = Products(self.queue_u.size, self.queue_l.size) if kept else None
        self._stored: Tensor | None = None
        self.k1 = neighbors(config, self.queue_u.size, model.novel_head.out_features)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        config, split = self.config, batch.labelled
        out = encode_pair(self.model, batch)
        losses = base_losses(self.model, config, out, batch.epoch)
        if batch.epoch >= config.ncl_start and config.ncl_weight:
            z = F.normalize(out.z[split:], dim=1)
            cosines = z @ self.queue_u.filled().T  # (B, M), for both the neighbours and the hard negatives
            cosines, hard = self._hard(z, cosines, batch)
            losses["ncl"] = config.ncl_weight * neighborhood_contrastive(
                z,
                out.z_hat[split:],
                self.queue_u.filled(),
                k=self.k1,
                alpha=config.alpha,
                temperature=config.temperature,
                hard=hard,
                view_among_neighbors=config.view_among_neighbors,
                cosines=cosines,
                unit=True,
            )
        if batch.epoch >= config.scl_start and config.scl_weight:
            losses["scl"] = config.scl_weight * supervised_contrastive(
                out.z[:split],
                out.z_hat[:split],
                out.y,
                self.queue_l.filled(),
                self.queue_l.filled_labels(),
                temperature=config.temperature,
                unit=True,
            )
        self._seen = Outputs(out.z.detach(), out.z_hat.detach(), out.y)
        return losses

    def after_step(self) -> None:
        """The features of the step enter the queues, which its gradient was still reading."""
        z, y, split = self._seen.z, self._seen.y, self._seen.labelled
        slots_u = self.queue_u.push(z[split:])
        slots_l = self.queue_l.push(z[:split], y)
        if self.products is not None:
            self.products.refresh(self.queue_u, self.queue_l, slots_u, slots_l, self._stored)
            self._stored = None

    def _hard(self, z: Tensor, cosines: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The cosines to the queue, of which a variant may take some away, and the generated negatives."""
        config = self.config
        if not self.hng or batch.epoch < config.hng_start:
            return cosines, None
        queues = self.queue_u.filled(), self.queue_l.filled()
        generator = rng.generator(self.seed, "hard negatives", batch.epoch, batch.step, device=z.device)
        if config.hng_variant:
            return variant(z, cosines, *queues, config, self.k1, generator)
        k_easy = easy_negatives(config, len(self.queue_u), self.k1)
        if k_easy < 1:
            return cosines, None
        to_labelled = z @ queues[1].T
        self._stored = to_labelled.detach()[-self.queue_u.size :]  # what `after_step` would compute again
        return cosines, hard_negatives(
            z,
            *queues,
            k_easy=k_easy,
            k_hard=config.k_hard,
            rounds=config.rounds,
            mixes=config.mixes,
            generator=generator,
            cosines=(cosines, to_labelled),
            products=None if self.products is None else self.products.filled(self.queue_u, self.queue_l),
            unit=True,
        )


class NCLWithHNG(NCL):
    """With hard negatives from mixtures of unlabelled and labelled features (Sec. 3.4)."""

    hng = True


def neighbors(config: Discovery, queue: int, n_novel: int) -> int:
    """k1 = |M| / C_u / 2 unless the recipe says otherwise (Sec. 4.1)."""
    return config.k1 if config.k1 is not None else max(1, int(config.k1_fraction * queue / n_novel))
