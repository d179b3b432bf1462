"""UNO (Fini et al., ICCV 2021): one objective for labeled and unlabeled rows.

    unveil run digits --set discovery.method=uno

Known and novel classes share one softmax over cosines to prototypes. A labeled row has its class as target; an
unlabeled row has the pseudo-label that Sinkhorn-Knopp gives its other view, so that clusters stay of equal size.
Several novel heads, and others with more clusters than classes, are trained at once; the novel head with the lowest
loss of an epoch is the one that predicts.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil import rng
from unveil.data.loader import Batch
from unveil.losses import sinkhorn, swapped_prediction
from unveil.methods.baseline import encode_pair
from unveil.methods.method import Context, Method
from unveil.models.heads import Head, drawn, prototypes_of
from unveil.models.model import Model
from unveil.settings import MethodSettings, at_least, positive


@dataclass(frozen=True, kw_only=True)
class UNOSettings(MethodSettings):
    """Heads and pseudo-labels, with the published values."""

    heads: int = 4
    """Number of novel heads, and of over-clustering heads."""
    overclustering: int = 3
    """Clusters of an over-clustering head for each novel class; 0: no such heads."""
    hidden: int | None = None
    """Units between the features and the projection of a head; None: four times the features (ResNet-18: 2048)."""
    projection: int | None = None
    """Dimensions in which a head has its prototypes; None: half of the features (ResNet-18: 256)."""
    temperature: float = 0.1
    """Divides the cosines before the softmax."""
    epsilon: float = 0.05
    """ε: smaller values make the pseudo-labels harder."""
    iterations: int = 3
    """Iterations of Sinkhorn-Knopp."""

    def __post_init__(self) -> None:
        at_least(self, heads=1, hidden=1, projection=1, iterations=1, overclustering=0)
        positive(self, "temperature", "epsilon")


class UNO(Method):
    """Swapped prediction over known and novel classes together."""

    Settings: ClassVar[type[MethodSettings]] = UNOSettings
    starts_from_clusters = False
    head_losses: Tensor

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        config = self.config = context.settings_as(UNOSettings)
        n_novel, device = model.novel_head.out_features, model.device

        def head(name: str, clusters: int) -> Head:
            description = {
                "kind": "projected prototypes",
                "inputs": model.encoder.dim,
                "classes": clusters,
                "hidden": config.hidden or 4 * model.encoder.dim,
                "projection": config.projection or max(1, model.encoder.dim // 2),
                "temperature": config.temperature,
            }
            return drawn(rng.number(context.seed, name), description).to(device)

        self.novel = [f"novel_{i}" for i in range(config.heads)]
        self.over = [f"over_{i}" for i in range(config.heads if config.overclustering else 0)]
        model.known_head = prototypes_of(model.known_head, config.temperature)
        model.novel_head = head(self.novel[0], n_novel)  # a copy of the best one, renewed after each epoch
        model.further_heads.update({name: head(name, n_novel) for name in self.novel})
        model.further_heads.update({name: head(name, config.overclustering * n_novel) for name in self.over})
        model.comparable = True
        self.register_buffer("head_losses", torch.zeros(config.heads))  # sums over the epoch; saved for a resumed run

    def trained(self) -> list[nn.Parameter]:
        copied = set(self.model.novel_head.parameters())
        return [parameter for parameter in self.model.trained() if parameter not in copied]

    def before_epoch(self, epoch: int) -> None:
        self.head_losses.zero_()

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        out = encode_pair(self.model, batch)
        z = torch.cat([out.z, out.z_hat])  # (2 B, D)
        known = self.model.known_head(z)  # (2 B, C_l)
        heads = self.model.further_heads
        novel = torch.stack([self._swapped(known, heads[name](z), batch.y) for name in self.novel])
        self.head_losses += novel.detach()
        if not self.over:
            return {"swapped": novel.mean()}
        over = torch.stack([self._swapped(known, heads[name](z), batch.y) for name in self.over])
        return {"swapped": novel.mean() / 2, "overclustering": over.mean() / 2}

    @torch.no_grad()
    def after_epoch(self) -> None:
        best = self.novel[int(self.head_losses.argmin())]
        self.model.novel_head.load_state_dict(self.model.further_heads[best].state_dict())

    def _swapped(self, known: Tensor, novel: Tensor, y: Tensor) -> Tensor:
        """The loss of one head; known: (2 B, C_l) and novel: (2 B, C) logits, the second views below the first."""
        targets = [self._targets(part, known.shape[1], y) for part in novel.detach().chunk(2)]
        logits, logits_hat = torch.cat([known, novel], dim=1).chunk(2)
        return swapped_prediction(logits, logits_hat, *targets)

    def _targets(self, novel: Tensor, n_known: int, y: Tensor) -> Tensor:
        """(B, C_l + C): the class of a labeled row, the pseudo-label of an unlabeled one, zeros elsewhere."""
        config = self.config
        targets = novel.new_zeros(len(novel), n_known + novel.shape[1])
        targets[: len(y), :n_known] = F.one_hot(y, n_known).to(targets)
        cosines = novel[len(y) :] * config.temperature
        targets[len(y) :, n_known:] = sinkhorn(cosines, epsilon=config.epsilon, iterations=config.iterations)
        return targets
