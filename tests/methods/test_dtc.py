"""Deep transfer clustering: its assignments, its targets and the linear head that stands for them."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from unveil import settings
from unveil.data.loader import Batch, Rows
from unveil.methods.dtc import DTC, MOMENTUM, DTCSettings, sharpened
from unveil.methods.method import Context
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model

ITEMS, LABELED, CLASSES, WIDTH = 60, 20, 3, 8


def make(**options: Any) -> tuple[DTC, Tensor]:
    generator = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=WIDTH), (5,), generator)
    model = Model(encoder, linear_head(WIDTH, 2, generator), linear_head(WIDTH, CLASSES, generator), torch.float32)
    centers = 4 * torch.randn(CLASSES, 5, generator=generator)
    x = centers[torch.arange(ITEMS) % CLASSES] + torch.randn(ITEMS, 5, generator=generator)

    def features(rows: Rows) -> Tensor:
        model.eval()
        with torch.no_grad():
            return model.encode(x[torch.from_numpy(rows)])

    config = DTCSettings(rampup=0, **{"warmup_epochs": 1, "interval": 1, **options})
    labels = np.where(np.arange(ITEMS) < LABELED, 0, -1)
    return DTC(model, Context(settings=config, seed=0, labels=labels, features=features)), x


def batch(x: Tensor, epoch: int, rows: list[int]) -> Batch:
    chosen = torch.tensor(rows)
    views = x[chosen], x[chosen] + 0.1
    return Batch(views=views, y=torch.zeros(0, dtype=torch.long), epoch=epoch, step=0, rows=chosen)


def test_targets_are_squares_over_cluster_sizes() -> None:
    q = torch.tensor([[0.7, 0.3], [0.6, 0.4], [0.1, 0.9]])
    sizes = [1.4, 1.6]
    expected = [[row[k] ** 2 / sizes[k] for k in range(2)] for row in q.tolist()]
    expected = [[value / sum(row) for value in row] for row in expected]
    torch.testing.assert_close(sharpened(q), torch.tensor(expected))


def test_the_start_is_kmeans_on_principal_components() -> None:
    method, x = make()
    method.before_epoch(0)
    method.after_epoch()
    z = method.context.features(method.context.unlabeled)
    f = method.project(z)
    np.testing.assert_allclose(f.mean(dim=0).tolist(), 0, atol=1e-4)
    nearest = torch.cdist(f, method.centers).argmin(dim=1)
    assert len(set(nearest.tolist())) == CLASSES
    truth = torch.arange(ITEMS)[LABELED:] % CLASSES
    counts = torch.zeros(CLASSES, CLASSES)
    for a, b in zip(nearest.tolist(), truth.tolist(), strict=True):
        counts[a, b] += 1
    assert float(counts.amax(dim=1).sum()) > 0.8 * len(truth)
    assert len(x) == ITEMS


def test_the_novel_head_names_the_nearest_center() -> None:
    method, x = make()
    method.before_epoch(0)
    optimizer = torch.optim.SGD(method.trained(), lr=0.05)
    for step in range(5):
        method.train()
        sum(method.losses(batch(x, 0, list(range(LABELED + step, ITEMS)))).values()).backward()  # type: ignore[union-attr]
        optimizer.step()
    method.after_epoch()
    z = method.context.features(method.context.unlabeled)
    assert torch.equal(method.model.novel_head(z).argmax(dim=1), method._assignments(z).argmax(dim=1))


def test_the_loss_is_the_divergence_from_the_targets() -> None:
    method, x = make(variant="baseline")
    method.before_epoch(0)
    method.eval()
    rows = [25, 31, 44]
    q = method._assignments(method.model.encode(x[rows])).detach()
    p = method.targets[method.position[rows]]
    expected = sum(
        float(p[i, k] * (p[i, k].log() - q[i, k].log())) for i in range(len(rows)) for k in range(CLASSES)
    ) / (len(rows) * CLASSES)
    losses = method.losses(batch(x, 0, rows))
    assert set(losses) == {"kl"}
    assert losses["kl"].item() == pytest.approx(expected, rel=1e-4)


def test_targets_change_after_the_warmup_at_each_interval() -> None:
    method, _ = make(variant="baseline", warmup_epochs=2, interval=2)
    seen = []
    for epoch in range(5):
        with torch.no_grad():
            method.centers.add_(0.05)
        method.before_epoch(epoch)
        seen.append(method.targets.clone())
    changed = [not torch.equal(a, b) for a, b in itertools.pairwise(seen)]
    assert changed == [False, True, False, True]


def test_past_predictions_are_averaged_without_bias() -> None:
    method, x = make(variant="te", warmup_epochs=0)
    method.before_epoch(0)
    method.eval()
    rows = [30, 31]
    first = method._assignments(method.model.encode(x[rows])).detach()
    assert float(method.losses(batch(x, 0, rows))["consistency"]) == 0  # there is no past yet
    method.before_epoch(1)
    torch.testing.assert_close(method._past(method.position[rows]), first)
    losses = method.losses(batch(x, 1, rows))
    assert float(losses["consistency"]) == pytest.approx(0.0, abs=1e-10)  # nothing has changed since
    unseen = method.losses(batch(x, 1, [40]))
    assert float(unseen["consistency"]) == 0  # no epoch has reached this row


def test_the_warmup_has_nothing_but_the_targets_of_the_start() -> None:
    for variant in ("pi", "te", "tep"):
        method, x = make(variant=variant, warmup_epochs=2)
        for epoch in range(2):
            method.before_epoch(epoch)
            assert set(method.losses(batch(x, epoch, [30, 31]))) == {"kl"}
        assert float(method.times.sum()) == 0
        method.before_epoch(2)
        assert ("consistency" in method.losses(batch(x, 2, [30, 31]))) == (variant != "tep")


def test_targets_from_the_past_are_an_average_of_clean_predictions() -> None:
    method, _ = make(variant="tep", warmup_epochs=0)
    method.before_epoch(0)
    first = method._clean_assignments()
    with torch.no_grad():
        method.centers.add_(0.3)
    second = method._clean_assignments()
    method.before_epoch(1)
    expected = (MOMENTUM * (1 - MOMENTUM) * first + (1 - MOMENTUM) * second) / (1 - MOMENTUM**2)
    torch.testing.assert_close(method.targets, sharpened(expected))
