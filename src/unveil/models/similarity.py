"""A network that predicts whether two items share a class."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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
