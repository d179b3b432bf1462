"""The order of rows, the names of classes and the number of threads change no loss beyond rounding."""

from collections.abc import Callable

import pytest
import torch
from literal import normal
from torch import Tensor

from unveil.losses import (
    batch_contrastive,
    consistency,
    cosine_pairs,
    hard_negatives,
    mean_entropy,
    nearest_pairs,
    neighborhood_contrastive,
    pairwise_bce,
    pairwise_kl,
    ranking_pairs,
    sinkhorn,
    supervised_contrastive,
    swapped_prediction,
)

ROWS, STORED, DIM, CLASSES = 24, 200, 16, 5


class Batch:
    """Two views, predictions, labels and a queue; `order` rearranges rows of the batch, `stored` those of the queue."""

    def __init__(self, order: Tensor, stored: Tensor, names: Tensor) -> None:
        self.z, self.z_hat = (normal(seed, ROWS, DIM)[order] for seed in (0, 1))
        self.p, self.q = (normal(seed, ROWS, CLASSES).softmax(dim=1)[order] for seed in (2, 3))
        self.y = names[(torch.arange(ROWS) % CLASSES)[order]]
        self.queue = normal(4, STORED, DIM)[stored]
        self.queue_y = names[(torch.arange(STORED) % CLASSES)[stored]]
        self.same = self.y[:, None] == self.y


LOSSES: dict[str, Callable[[Batch], Tensor]] = {
    "neighborhood": lambda b: neighborhood_contrastive(b.z, b.z_hat, b.queue, k=7),
    "supervised": lambda b: supervised_contrastive(b.z, b.z_hat, b.y, b.queue, b.queue_y),
    "batch": lambda b: batch_contrastive(b.z, b.same),
    "entropy": lambda b: mean_entropy(b.p),
    "bce": lambda b: pairwise_bce(b.p, b.q, b.same),
    "kl": lambda b: pairwise_kl(b.p, b.same),
    "consistency": lambda b: consistency(b.p, b.q),
    "bce of cosine pairs": lambda b: pairwise_bce(b.p, b.q, cosine_pairs(b.z, 0.3)),
    "bce of nearest pairs": lambda b: pairwise_bce(b.p, b.q, nearest_pairs(b.z, 3)),
    "bce of ranking pairs": lambda b: pairwise_bce(b.p, b.q, ranking_pairs(b.z, 2)),
    "swapped": lambda b: swapped_prediction(b.p, b.q, sinkhorn(b.p), sinkhorn(b.q)),
}
AS_IT_IS = torch.arange(ROWS), torch.arange(STORED), torch.arange(CLASSES)


def shuffled(size: int) -> Tensor:
    return torch.randperm(size, generator=torch.Generator().manual_seed(9))


@pytest.mark.parametrize("name", LOSSES)
def test_order_and_names_change_nothing(name: str) -> None:
    loss = LOSSES[name]
    expected = loss(Batch(*AS_IT_IS))
    for arguments in (
        (shuffled(ROWS), *AS_IT_IS[1:]),
        (AS_IT_IS[0], shuffled(STORED), AS_IT_IS[2]),
        (*AS_IT_IS[:2], torch.tensor([30, 4, -7, 11, 2])),
    ):
        torch.testing.assert_close(loss(Batch(*arguments)), expected)


def test_hard_negatives_are_the_same_for_every_order_of_the_batch() -> None:
    """With one labeled feature there is one partner to draw; the easiest entries are the same in any order."""
    batch, order = Batch(*AS_IT_IS), shuffled(ROWS)
    one = batch.queue[:1]
    expected = hard_negatives(batch.z, batch.queue, one, k_easy=20, k_hard=5).sort(dim=1).values
    given = hard_negatives(batch.z[order], batch.queue[shuffled(STORED)], one, k_easy=20, k_hard=5)
    torch.testing.assert_close(given.sort(dim=1).values, expected[order])


@pytest.mark.parametrize("name", LOSSES)
def test_the_number_of_threads_changes_nothing_beyond_rounding(name: str) -> None:
    before = torch.get_num_threads()
    try:
        values = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            values.append([LOSSES[name](Batch(*AS_IT_IS)) for _ in range(2)])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*values[0])  # the same threads give the same bytes
    assert torch.equal(*values[1])
    torch.testing.assert_close(values[1][0], values[0][0])
