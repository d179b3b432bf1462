"""Neighborhood contrastive learning (Sec. 3.2-3.5), with or without hard negative generation."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from unveil import rng
from unveil.data.loader import Batch
from unveil.losses import hard_negatives, neighborhood_contrastive, supervised_contrastive
from unveil.methods.baseline import Baseline, BaselineSettings, Outputs, base_losses, encode_pair
from unveil.methods.hng_variants import easy_negatives, variant
from unveil.methods.method import Context, Variation
from unveil.models.model import Model
from unveil.models.queue import Products, Queue
from unveil.settings import MethodSettings, expect

MOST_PRODUCTS = 100_000_000
"""Products u·l that are stored beside the queues (400 MB); with longer queues only those of drawn pairs exist."""


@dataclass(frozen=True, kw_only=True)
class NCLSettings(BaselineSettings):
    """The baseline loss ℓ_base and the contrastive losses with their queues. Symbols are those of the paper."""

    ncl_weight: float = 1.0
    """Weight of the neighborhood contrastive loss."""
    scl_weight: float = 1.0
    """Weight of the supervised contrastive loss."""
    queue: int = 2000
    """|M|: length of the unlabelled queue."""
    queue_labelled: int | None = None
    """Length of the labelled queue; None: |M|."""
    queue_start: Literal["empty", "random"] = "empty"
    """empty: slots that no feature has reached yet do not exist. random: they hold random vectors of about unit length,
    which count as negatives (published code)."""
    k1: int | None = None
    """Pseudo-positives of a query (0: the second view alone); None: k1_fraction · |M| / C_u."""
    k1_fraction: float = 0.5
    """Pseudo-positives as a share of the queue entries of a class."""
    alpha: float = 0.2
    """α: weight of the second view among the positives."""
    temperature: float = 0.05
    """τ: divides the cosines."""
    view_among_neighbors: bool = False
    """The second view competes for a place among the k1 neighbors, as in the published code."""
    ncl_start: int = 1
    """First epoch (from 0) with the neighborhood contrastive loss on unlabelled samples."""
    scl_start: int = 1
    """First epoch with the supervised contrastive loss on labelled samples."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(0 <= self.alpha <= 1, f"alpha is {self.alpha}: give a number from 0 to 1")
        expect(self.temperature > 0, f"temperature is {self.temperature}: give a positive number")
        expect(self.queue >= 1, f"queue is {self.queue}: give 1 or more")
        for name, least in (("queue_labelled", 1), ("k1", 0)):
            value = getattr(self, name)
            expect(value is None or value >= least, f"{name} is {value}: give {least} or more, or none for the default")

    def neighbors(self, stored: int, n_novel: int) -> int:
        """k1 = |M| / C_u / 2 unless the recipe says otherwise (Sec. 4.1)."""
        return self.k1 if self.k1 is not None else max(1, int(self.k1_fraction * stored / n_novel))


@dataclass(frozen=True, kw_only=True)
class HNGSettings(NCLSettings):
    """The settings of NCL and of hard negative generation."""

    hng_start: int = 3
    """First epoch with hard negatives."""
    k_easy: int = 400
    """k2: number of easiest negatives that are mixed."""
    k_hard: int = 400
    """Number of hardest mixtures that are kept."""
    rounds: int = 5
    """N: how often each easy negative is mixed."""
    mixes: tuple[float, ...] = (1 / 3, 2 / 3)
    """μ: shares of the unlabelled feature in a mixture."""
    partners: Literal["any", "distinct"] = "any"
    """How the labelled features of a round are drawn. any: each from the whole queue. distinct: none twice in a round
    (published code)."""
    variant: Literal["", "v1", "v2", "v3", "v4", "v5", "v6"] = ""
    """A variant of hard negative generation that the paper compares with; "": the method of the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("k_easy", "k_hard", "rounds"):
            expect(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}: give 1 or more")
        expect(
            len(self.mixes) > 0 and all(0 < mu < 1 for mu in self.mixes),
            f"mixes is {list(self.mixes)}: give numbers between 0 and 1",
        )


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
        sizes = (
            min(config.queue, len(context.unlabelled)),
            min(config.queue_labelled or config.queue, len(context.labelled)),
        )
        self.queue_u, self.queue_l = (
            Queue(size, dim, rng.generator(context.seed, purpose) if config.queue_start == "random" else None)
            for size, purpose in zip(sizes, ("unlabelled queue", "labelled queue"), strict=True)
        )
        self.k1 = self.neighbors(self.queue_u.size)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        config, split = self.config, batch.labelled
        out = encode_pair(self.model, batch, separate=config.separate_views)
        losses = base_losses(self.model, config, out, self.pairs_of(out), batch.epoch)
        if batch.epoch >= config.ncl_start and config.ncl_weight:
            z = F.normalize(out.z[split:], dim=1)
            cosines = z @ self.queue_u.filled().T  # (B, M), for both the neighbors and the hard negatives
            cosines, hard = self.negatives(z, cosines, batch)
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
        self._outputs = Outputs(out.z.detach(), out.z_hat.detach(), out.y)
        return losses

    def after_step(self) -> None:
        """Push the features of the step to the queues: now that the gradients are computed, the queues may change."""
        z, y, split = self._outputs.z, self._outputs.y, self._outputs.labelled
        self.queues_changed(self.queue_u.push(z[split:]), self.queue_l.push(z[:split], y))

    def negatives(self, z: Tensor, cosines: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The cosines to the queue that take part in the loss (B, M), and those to further negatives (B, m)."""
        return cosines, None

    def queues_changed(self, slots_u: list[slice], slots_l: list[slice]) -> None:
        """Called with the slots of the queues that were overwritten."""

    def neighbors(self, stored: int) -> int:
        return self.config.neighbors(stored, self.model.novel_head.out_features)

    @classmethod
    def for_unbalanced(cls, settings: MethodSettings, share: float) -> dict[str, float]:
        """Fewer neighbors too: k1 = |M| / C / 2 takes clusters to be of equal size."""
        assert isinstance(settings, NCLSettings)
        return {"k1_fraction": settings.k1_fraction * share, **super().for_unbalanced(settings, share)}


class NCLWithHNG(NCL):
    """NCL with hard negatives from mixtures of unlabelled and labelled features (Sec. 3.4)."""

    Settings: ClassVar[type[MethodSettings]] = HNGSettings
    config: HNGSettings

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model, context)
        self.config = context.settings_as(HNGSettings)
        store = not self.config.variant and self.queue_u.size * self.queue_l.size <= MOST_PRODUCTS
        self.products = Products(self.queue_u.size, self.queue_l.size) if store else None
        if self.products is not None and self.queue_u.starts_filled:
            self.products.fill(self.queue_u, self.queue_l)
        self._to_labelled: Tensor | None = None

    def queues_changed(self, slots_u: list[slice], slots_l: list[slice]) -> None:
        if self.products is not None:
            self.products.refresh(self.queue_u, self.queue_l, slots_u, slots_l, self._to_labelled)
            self._to_labelled = None

    def negatives(self, z: Tensor, cosines: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The cosines to the queue, of which a variant may take some away, and the generated negatives."""
        config = self.config
        if batch.epoch < config.hng_start:
            return cosines, None
        queues = self.queue_u.filled(), self.queue_l.filled()
        generator = rng.generator(self.seed, "hard negatives", batch.epoch, batch.step, device=z.device)
        if config.variant:
            return variant(z, cosines, *queues, config, self.k1, generator)
        k_easy = easy_negatives(config, len(self.queue_u), self.k1)
        if k_easy < 1:
            return cosines, None
        to_labelled = z @ queues[1].T
        self._to_labelled = to_labelled.detach()[-self.queue_u.size :]  # reused by `queues_changed`
        return cosines, hard_negatives(
            z,
            *queues,
            k_easy=k_easy,
            k_hard=config.k_hard,
            rounds=config.rounds,
            mixes=config.mixes,
            distinct=config.partners == "distinct",
            generator=generator,
            cosines=(cosines, to_labelled),
            products=None if self.products is None else self.products.filled(self.queue_u, self.queue_l),
            unit=True,
            squares=self._squares(),
        )

    def _squares(self) -> tuple[Tensor, Tensor] | None:
        """|u|² and |l|² of the queue entries; None where all are 1."""
        if not self.queue_u.starts_filled or (self.queue_u.replaced and self.queue_l.replaced):
            return None
        return self.queue_u.filled().square().sum(dim=1), self.queue_l.filled().square().sum(dim=1)
