"""Clustering by learned pairs: KCL (ICLR 2018) and MCL (ICLR 2019), and the training of the network that finds them."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil.data.loader import Batch
from unveil.losses import pairwise_bce, pairwise_kl
from unveil.methods.method import Context, Method
from unveil.models.model import Model
from unveil.models.similarity import Similarity


class LearnSimilarity(Method):
    """Cross-entropy on every ordered pair of a batch of labelled items."""

    def __init__(self, model: Model, similarity: Similarity) -> None:
        super().__init__(model)
        self.similarity = similarity

    def trained(self) -> list[nn.Parameter]:
        return list(self.similarity.parameters())

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        with self.model.autocast():
            h = self.model.trunk(batch.views[0]).detach()
            logits = self.similarity(h).float()
        same = (batch.y[:, None] == batch.y).long()
        return {"pairs": F.cross_entropy(logits.flatten(0, 1), same.flatten())}


class Pairwise(Method):
    """Unlabelled pairs, as the similarity network sees them, are clustered by the novel head."""

    unlabelled_only = True

    def __init__(self, model: Model, context: Context) -> None:
        super().__init__(model)
        assert isinstance(context.similarity, Similarity)
        self.similarity = context.similarity.requires_grad_(False)

    def trained(self) -> list[nn.Parameter]:
        return [*self.model.encoder.tail.parameters(), *self.model.novel_head.parameters()]

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        with self.model.autocast():
            h = self.model.trunk(batch.views[0])
            z = self.model.encoder.tail(h).float()
            same = self.similarity.same(h.detach())
        return {"pairs": self._loss(self.model.novel_head(z).softmax(dim=1), same)}

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
