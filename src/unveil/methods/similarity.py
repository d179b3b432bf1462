"""Clustering by learned pairs: KCL (ICLR 2018) and MCL (ICLR 2019), and the training of the network that finds them."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil.data.loader import Batch
from unveil.losses import pairwise_bce, pairwise_kl
from unveil.methods.method import Context, Method
from unveil.models.model import Model
from unveil.settings import MethodSettings, Stage, expect


class Similarity(nn.Module):
    """A tail of its own and a small network on every ordered pair of features [z_i, z_j]."""

    def __init__(self, tail: nn.Module, dim: int) -> None:
        super().__init__()
        self.tail = tail
        self.first, self.second = nn.Linear(dim, 4 * dim), nn.Linear(dim, 4 * dim, bias=False)  # one layer on 2 dim
        self.norm, self.last = nn.BatchNorm1d(4 * dim), nn.Linear(4 * dim, 2)

    def forward(self, h: Tensor) -> Tensor:
        """h: trunk features of B items; returns logits (B, B, 2) of different and same."""
        z = self.tail(h).float()
        pairs = self.first(z)[:, None] + self.second(z)[None]  # (B, B, 4 dim)
        hidden = F.relu(self.norm(pairs.flatten(0, 1)))
        return self.last(hidden).view(len(z), len(z), 2)  # type: ignore[no-any-return]

    @torch.no_grad()
    def same(self, h: Tensor) -> Tensor:
        """(B, B): the pairs predicted to share a class. In training mode, so that BatchNorm adapts to new classes."""
        self.train(len(h) > 1)  # BatchNorm has no statistics of a single row
        same: Tensor = self(h).argmax(dim=2) == 1
        return same


@dataclass(frozen=True, kw_only=True)
class SimilaritySettings(Stage):
    """The stage before discovery that learns from pairs of labeled items whether they share a class."""

    table: ClassVar[str] = "method.similarity"
    epochs: int = 10
    batch: int = 100
    seed: int = 0
    classes_per_batch: int = 20
    """Known classes in each batch (all where there are fewer), with equally many items of each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self.epochs >= 1, f"epochs is {self.epochs}, and the method needs this stage: give 1 or more")
        count, batch = self.classes_per_batch, self.batch
        message = f"classes_per_batch is {count} in batches of {batch}: give 1 to {batch}"
        expect(1 <= count <= batch, message)


@dataclass(frozen=True, kw_only=True)
class PairwiseSettings(MethodSettings):
    """How the network that finds the pairs is trained."""

    similarity: SimilaritySettings = field(default_factory=SimilaritySettings)
    """Its training stage."""


class LearnSimilarity(Method):
    """Cross-entropy on every ordered pair of a batch of labeled items."""

    def __init__(self, model: Model, similarity: Similarity) -> None:
        super().__init__(model)
        self.similarity = similarity

    def trained(self) -> list[nn.Parameter]:
        return list(self.similarity.parameters())

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        with self.model.autocast():
            h = batch.whole(self.model.trunk(batch.views[0]).detach())
            logits = self.similarity(h).float()
        same = (batch.y[:, None] == batch.y).long()
        return {"pairs": F.cross_entropy(logits.flatten(0, 1), same.flatten())}


class Pairwise(Method):
    """Trains the novel head on pairs of unlabeled items, labeled as same or different by the similarity network."""

    Settings: ClassVar[type[MethodSettings]] = PairwiseSettings
    unlabeled_only = True
    needs_similarity = True

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        assert isinstance(context.similarity, Similarity)
        self.similarity = context.similarity.requires_grad_(False)

    def trained(self) -> list[nn.Parameter]:
        return [*self.model.encoder.tail.parameters(), *self.model.novel_head.parameters()]

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        with self.model.autocast():
            h = batch.whole(self.model.trunk(batch.views[0]))
            z = self.model.encoder.tail(h).float()
            same = self.similarity.same(h.detach())
        return {"pairs": self._loss(self.model.novel_head(z).softmax(dim=1), same)}

    def positive_pairs(self, z_u: Tensor, z_l: Tensor, y: Tensor, h_u: Callable[[], Tensor]) -> Tensor:
        with self.model.autocast():
            return self.similarity.same(h_u())

    def _loss(self, p: Tensor, same: Tensor) -> Tensor:
        raise NotImplementedError


class MCL(Pairwise):
    """The likelihood that two items share a cluster is p_i · p_j."""

    def _loss(self, p: Tensor, same: Tensor) -> Tensor:
        return pairwise_bce(p, p, same)


class KCL(Pairwise):
    """Predictions of one class are drawn together in KL divergence, those of two pushed apart."""

    def _loss(self, p: Tensor, same: Tensor) -> Tensor:
        return pairwise_kl(p, same)


def similarity_of(model: Model, generator: torch.Generator) -> Similarity:
    """A new similarity network that starts from the model's tail."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator.initial_seed())
        return Similarity(copy.deepcopy(model.encoder.tail), model.encoder.dim)
