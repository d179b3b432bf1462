"""The method: which terms it adds up, when, and that no batch is too small for it."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from unveil import losses, rng, settings
from unveil.data.loader import Batch
from unveil.methods.baseline import Outputs, encode_pair
from unveil.methods.method import Context
from unveil.methods.ncl import NCL, NCLSettings, NCLWithHNG
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model

KNOWN, NOVEL, FEATURES, WIDTH = 3, 2, 6, 8


def make(*, hng: bool = True, unlabeled: int = 40, labeled: int = 30, **options: Any) -> NCL:
    generator = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=WIDTH), (FEATURES,), generator)
    heads = linear_head(WIDTH, KNOWN, generator), linear_head(WIDTH, NOVEL, generator)
    kind = NCLWithHNG if hng else NCL
    common = {"queue": 20, **({"k_easy": 5, "k_hard": 7, "rounds": 2} if hng else {})}
    config = kind.Settings(**{**common, **options})
    labels = np.repeat([0, -1], [labeled, unlabeled])
    context = Context(settings=config, seed=11, labels=labels, features=lambda rows: torch.zeros(len(rows), WIDTH))
    return kind(Model(encoder, *heads, torch.float32), context)


def batch(labeled: int, unlabeled: int, epoch: int = 3, step: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(100 * epoch + step)
    x = torch.randn(labeled + unlabeled, FEATURES, generator=generator)
    views = (x, x + 0.1 * torch.randn(x.shape, generator=generator))
    return Batch(views=views, y=torch.randint(KNOWN, (labeled,), generator=generator), epoch=epoch, step=step)


def fill(method: NCL, steps: int = 6) -> None:
    """Some steps without training, so that the queues hold something."""
    for step in range(steps):
        method.losses(batch(5, 5, epoch=0, step=step))
        method.after_step()


def outputs(method: NCL, given: Batch) -> Outputs:
    return encode_pair(method.model, given)


@pytest.mark.parametrize("pairs", ["cosine", "rank", "calibrated", "ranking"])
@pytest.mark.parametrize("consistency_rows", ["own", "all"])
@pytest.mark.parametrize("filled", [False, True], ids=["empty queues", "filled queues"])
@pytest.mark.parametrize(
    ("labeled", "unlabeled"), [(0, 1), (1, 0), (1, 1), (0, 4), (4, 0), (4, 1), (1, 4), (4, 4), (30, 50)]
)
def test_no_batch_is_too_small(pairs: str, consistency_rows: str, filled: bool, labeled: int, unlabeled: int) -> None:
    method = make(pairs=pairs, consistency_rows=consistency_rows)
    if filled:
        fill(method)
    before = len(method.queue_u), len(method.queue_l)
    terms = method.losses(batch(labeled, unlabeled))
    assert {"bce", "consistency", "ncl", "scl"} <= set(terms)
    assert ("ce" in terms) == (labeled > 0)
    assert all(value.shape == () and math.isfinite(value.item()) for value in terms.values())
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    for parameter in method.trained():
        assert parameter.grad is None or bool(parameter.grad.isfinite().all())
    assert any(parameter.grad is not None and bool(parameter.grad.any()) for parameter in method.trained())
    method.after_step()
    sizes = method.queue_u.size, method.queue_l.size
    added = (unlabeled, labeled)
    expected = tuple(min(a + b, size) for a, b, size in zip(before, added, sizes, strict=True))
    assert (len(method.queue_u), len(method.queue_l)) == expected


@pytest.mark.parametrize(
    ("options", "queue", "novel", "expected"),
    [
        ({}, 2000, 5, 200),
        ({}, 2000, 20, 50),
        ({}, 2000, 30, 33),
        ({}, 3, 5, 1),
        ({"k1": 7}, 2000, 5, 7),
        ({"k1_fraction": 0.25}, 2000, 5, 100),
    ],
)
def test_default_number_of_neighbors(options: dict[str, Any], queue: int, novel: int, expected: int) -> None:
    assert NCLSettings(**options).neighbors(queue, novel) == expected


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"queue": 20}, (20, 20)),
        ({"queue": 20, "queue_labeled": 5}, (20, 5)),
        ({"queue": 500}, (40, 30)),
        ({"queue": 20, "queue_labeled": 500}, (20, 30)),
    ],
)
def test_queues_hold_no_more_than_the_data(options: dict[str, Any], sizes: tuple[int, int]) -> None:
    method = make(**options)
    assert (method.queue_u.size, method.queue_l.size) == sizes
    assert method.k1 == sizes[0] // NOVEL // 2


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (0, {"ce", "bce", "consistency"}),
        (1, {"ce", "bce", "consistency", "scl"}),
        (2, {"ce", "bce", "consistency", "scl", "ncl"}),
    ],
)
def test_terms_start_at_their_epochs(epoch: int, expected: set[str]) -> None:
    assert set(make(ncl_start=2, scl_start=1).losses(batch(4, 4, epoch=epoch))) == expected


@pytest.mark.parametrize("hng", [True, False])
@pytest.mark.parametrize("epoch", [2, 3, 5])
@pytest.mark.parametrize("view_among_neighbors", [False, True])
def test_contrastive_terms_are_those_of_the_losses(hng: bool, epoch: int, view_among_neighbors: bool) -> None:
    method = make(hng=hng, ncl_weight=0.7, scl_weight=0.1, alpha=0.3, view_among_neighbors=view_among_neighbors)
    fill(method)
    given = batch(4, 6, epoch=epoch, step=9)
    out = outputs(method, given)
    z, z_hat, queue_u, queue_l = out.z[4:], out.z_hat[4:], method.queue_u.filled(), method.queue_l.filled()
    draws = rng.generator(11, "hard negatives", epoch, 9)
    hard = losses.hard_negatives(z, queue_u, queue_l, k_easy=5, k_hard=7, rounds=2, generator=draws)
    active = hng and epoch >= 3
    expected, without = (
        0.7
        * losses.neighborhood_contrastive(
            z, z_hat, queue_u, k=5, alpha=0.3, hard=extra, view_among_neighbors=view_among_neighbors
        )
        for extra in (hard if active else None, None)
    )
    supervised = losses.supervised_contrastive(
        out.z[:4], out.z_hat[:4], given.y, queue_l, method.queue_l.filled_labels()
    )
    terms = method.losses(given)
    torch.testing.assert_close(terms["ncl"], expected)
    torch.testing.assert_close(terms["scl"], 0.1 * supervised)
    assert (terms["ncl"].item() > without.item() + 1e-3) == active  # more negatives cost more


def test_the_published_neighbors_are_another_loss() -> None:
    values = []
    for view_among_neighbors in (False, True):
        method = make(hng=False, view_among_neighbors=view_among_neighbors)
        fill(method)
        values.append(method.losses(batch(4, 6))["ncl"].item())
    assert abs(values[0] - values[1]) > 1e-3


@pytest.mark.parametrize("consistency_rows", ["own", "all"])
def test_baseline_terms_are_those_of_the_paper(consistency_rows: str) -> None:
    method = make(
        consistency_rows=consistency_rows, consistency=5.0, rampup=10, threshold=0.6, ce_weight=0.5, bce_weight=2.0
    )
    given = batch(4, 6, epoch=3)
    out, model = outputs(method, given), method.model
    terms = method.losses(given)
    known, known_hat = (model.known_head(z).softmax(1) for z in (out.z, out.z_hat))
    novel, novel_hat = (model.novel_head(z).softmax(1) for z in (out.z, out.z_hat))
    own = consistency_rows == "own"
    agreement = F.mse_loss(known[: 4 if own else None], known_hat[: 4 if own else None]) + F.mse_loss(
        novel[4 if own else 0 :], novel_hat[4 if own else 0 :]
    )
    torch.testing.assert_close(terms["consistency"], 5 * math.exp(-5 * 0.7**2) * agreement)
    torch.testing.assert_close(terms["ce"], 0.5 * -known[torch.arange(4), given.y].log().mean())
    same = losses.cosine_pairs(out.z[4:], 0.6)
    assert 6 < int(same.sum()) < 36
    torch.testing.assert_close(terms["bce"], 2 * losses.pairwise_bce(novel[4:], novel_hat[4:], same))


def test_the_queue_holds_first_views_from_before_the_step() -> None:
    method, given = make(), batch(4, 6)
    out = outputs(method, given)
    method.losses(given)
    assert len(method.queue_u) == 0  # a step never meets its own features
    with torch.no_grad():
        method.model.encoder.tail[0].weight.mul_(-1)  # type: ignore[index]
    method.after_step()
    torch.testing.assert_close(method.queue_u.filled(), F.normalize(out.z[4:], dim=1).detach())
    torch.testing.assert_close(method.queue_l.filled(), F.normalize(out.z[:4], dim=1).detach())
    assert method.queue_l.filled_labels().tolist() == given.y.tolist()
    assert method.queue_u.filled_labels().tolist() == [-1] * 6
    assert isinstance(method, NCLWithHNG)
    assert method.products is not None
    torch.testing.assert_close(
        method.products.filled(method.queue_u, method.queue_l), method.queue_u.filled() @ method.queue_l.filled().T
    )


def test_a_restored_method_goes_on_alike() -> None:
    first, second = make(), make()
    fill(first, steps=3)
    second.load_state_dict(first.state_dict())
    for step in range(3):
        given = batch(4, 6, epoch=3, step=step)
        terms, again = first.losses(given), second.losses(given)
        assert {name: value.item() for name, value in terms.items()} == {n: v.item() for n, v in again.items()}
        first.after_step()
        second.after_step()
