"""SimGCD: its loss word for word, its temperatures, batches without labeled or unlabeled rows, and a whole run."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor

from unveil import recipe, settings
from unveil.data.loader import Batch
from unveil.errors import UnveilError
from unveil.methods.method import Context
from unveil.methods.simgcd import SimGCD, SimGCDSettings
from unveil.models import build_encoder
from unveil.models.heads import Prototypes, linear_head
from unveil.models.model import Model
from unveil.own.run import run_recipe

KNOWN, NOVEL, WIDTH = 3, 2, 8


def make(**options: Any) -> SimGCD:
    generator = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=WIDTH), (6,), generator)
    model = Model(encoder, linear_head(WIDTH, KNOWN, generator), linear_head(WIDTH, NOVEL, generator), torch.float32)
    labels = np.repeat([0, -1], [10, 20])
    context = Context(
        settings=SimGCDSettings(**options), seed=7, labels=labels, features=lambda rows: torch.zeros(0, WIDTH)
    )
    return SimGCD(model, context)


def batch(labeled: int, unlabeled: int, step: int = 0, epoch: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(labeled + unlabeled, 6, generator=generator)
    views = (x, x + 0.3 * torch.randn(x.shape, generator=generator))
    return Batch(views=views, y=torch.randint(KNOWN, (labeled,), generator=generator), epoch=epoch, step=step)


def prediction(z: Tensor, directions: list[Tensor], temperature: float) -> list[Tensor]:
    shares = [torch.exp(F.cosine_similarity(z, direction, dim=0) / temperature) for direction in directions]
    return [share / sum(shares) for share in shares]


def contrastive(rows: Tensor, same: list[list[bool]], temperature: float) -> Tensor:
    total = rows.new_zeros(())
    for i in range(len(rows)):
        others = [n for n in range(len(rows)) if n != i]
        weights = {n: torch.exp(F.cosine_similarity(rows[i], rows[n], dim=0) / temperature) for n in others}
        positives = [n for n in others if same[i][n]]
        total = total - sum(torch.log(weights[n] / sum(weights.values())) for n in positives) / len(positives)
    return total / len(rows)


def literal_loss(method: SimGCD, given: Batch, *, tau_t: float, epsilon: float, weight: float) -> Tensor:
    """L = L_rep + L_cls, each (1 − λ) · (without labels) + λ · (with labels), one number at a time."""
    model = method.model
    views = [z.double() for z in model.encode(torch.cat(given.views)).detach().chunk(2)]
    project = method.project.double()
    heads = model.known_head, model.novel_head
    directions = [row.double() for head in heads for row in head.weight]  # type: ignore[union-attr]
    count, labeled = len(views[0]), given.labeled
    p = [[prediction(z, directions, 0.1) for z in view] for view in views]
    q = [[prediction(z, directions, tau_t) for z in view] for view in views]
    distillation = torch.zeros((), dtype=torch.float64)
    for i in range(count):
        for view in (0, 1):
            distillation = distillation - sum(
                target * torch.log(share) for target, share in zip(q[1 - view][i], p[view][i], strict=True)
            ) / (2 * count)
    means = [sum(p[view][i][k] for view in (0, 1) for i in range(count)) / (2 * count) for k in range(KNOWN + NOVEL)]
    entropy = -sum(mean * torch.log(mean) for mean in means)  # type: ignore[misc]
    items = [*range(count), *range(count)]
    rows = project(torch.cat(views))
    alone = contrastive(rows, [[a == b for b in items] for a in items], 0.07)
    y = given.y.tolist()
    known = [*range(labeled), *range(count, count + labeled)]
    with_labels = contrastive(rows[known], [[a == b for b in y * 2] for a in y * 2], 0.07)
    cross_entropy = -sum(torch.log(p[view][i][y[i]]) for view in (0, 1) for i in range(labeled)) / (2 * labeled)
    method.project.float()
    classes = math.log(KNOWN + NOVEL)  # a constant, which makes the term 0 at best
    without = distillation + epsilon * (classes - entropy) + alone
    return (1 - weight) * without + weight * (cross_entropy + with_labels)


@pytest.mark.parametrize(("epoch", "tau_t"), [(0, 0.07), (15, 0.055), (40, 0.04)])
def test_the_loss_word_for_word(epoch: int, tau_t: float) -> None:
    method = make(entropy_weight=1.5, supervised_weight=0.3).eval()
    given = batch(4, 5, epoch=epoch)
    terms = method.losses(given)
    assert set(terms) == {"distillation", "entropy", "contrastive", "ce", "scl"}
    expected = literal_loss(method, given, tau_t=tau_t, epsilon=1.5, weight=0.3)
    torch.testing.assert_close(torch.stack(list(terms.values())).sum().double(), expected, rtol=1e-5, atol=1e-5)


def test_targets_have_no_gradient() -> None:
    """The gradient of the distillation is that of a cross-entropy with fixed targets: p − q for each row."""
    method = make(supervised_weight=0.0, entropy_weight=0.0).eval()
    given = batch(0, 4)
    cosines = torch.randn(8, KNOWN + NOVEL, requires_grad=True)
    known, novel = cosines[:, :KNOWN] / 0.1, cosines[:, KNOWN:] / 0.1
    method.model.known_head.forward = lambda z: known  # type: ignore[method-assign,assignment]
    method.model.novel_head.forward = lambda z: novel  # type: ignore[method-assign,assignment]
    (gradient,) = torch.autograd.grad(method.losses(given)["distillation"], cosines)
    p, q = (cosines.detach() / 0.1).softmax(1), (cosines.detach() / 0.07).softmax(1).roll(4, 0)
    torch.testing.assert_close(gradient, (p - q) / 8 / 0.1)


@pytest.mark.parametrize(("labeled", "unlabeled"), [(0, 1), (1, 0), (1, 1), (0, 5), (5, 0), (4, 1), (20, 30)])
def test_no_batch_is_too_small(labeled: int, unlabeled: int) -> None:
    method = make()
    terms = method.losses(batch(labeled, unlabeled))
    assert ("ce" in terms) == (labeled > 0)
    assert all(value.shape == () and math.isfinite(value.item()) for value in terms.values())
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in method.trained())


def test_heads_start_in_the_directions_of_those_before() -> None:
    generator = torch.Generator().manual_seed(0)
    build_encoder(settings.Encoder(name="mlp", width=WIDTH), (6,), generator)
    known, novel = linear_head(WIDTH, KNOWN, generator), linear_head(WIDTH, NOVEL, generator)
    first, again = make(), make()
    for head, before in ((first.model.known_head, known), (first.model.novel_head, novel)):
        assert isinstance(head, Prototypes)
        torch.testing.assert_close(head.weight, F.normalize(before.weight, dim=1))
    assert all(torch.equal(a, b) for a, b in zip(first.trained(), again.trained(), strict=True))
    joint = first.model.joint(torch.randn(4, WIDTH))
    assert joint is not None
    assert joint.shape == (4, KNOWN + NOVEL)


def test_a_restored_method_goes_on_alike() -> None:
    def train(method: SimGCD, first: int, last: int) -> None:
        optimizer = torch.optim.SGD(method.trained(), lr=0.1)
        for step in range(first, last):
            optimizer.zero_grad()
            torch.stack(list(method.losses(batch(5, 7, step)).values())).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    whole, first, second = make(), make(), make()
    train(whole, 0, 6)
    train(first, 0, 3)
    second.load_state_dict(first.state_dict())
    train(second, 3, 6)
    assert all(
        torch.equal(a, b) for a, b in zip(whole.state_dict().values(), second.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize(
    "option", [{"supervised_weight": 1.5}, {"entropy_weight": -1.0}, {"target_end": 0.0}, {"projection": 0}]
)
def test_impossible_settings_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(UnveilError, match=next(iter(option))):
        SimGCDSettings(**option)


def found(folder: Path, *overrides: str) -> float:
    """The accuracy on novel classes of separate blobs, from a novel head that starts at random."""
    draw, y = np.random.default_rng(0), np.arange(600) % 10
    X = 2.5 * draw.standard_normal((10, 16))[y] + draw.standard_normal((600, 16))
    np.savez(folder / "blobs.npz", X=X.astype(np.float32), y=y)
    resolved = recipe.load(
        "digits",
        recipe.parse_set(
            [
                *(f"data.name={folder / 'blobs.npz'}", "data.known=5", "rotation.epochs=0", "encoder.width=32"),
                *("augment.noise=0.5", "discovery.method=simgcd", "discovery.novel_head=random", "discovery.epochs=10"),
                *("discovery.lr=0.1", *overrides),
            ]
        ),
    )
    out = folder / f"run{len(overrides)}"
    record = run_recipe(resolved, out=out, stages=folder / "store", console=Console(quiet=True))
    return float(record["metrics"]["acc"])


def test_it_finds_separate_classes_from_a_random_head(tmp_path: Path) -> None:
    assert found(tmp_path) > 0.95
    model = Model.load(tmp_path / "run0" / "model.safetensors")
    assert model.comparable
    assert isinstance(model.novel_head, Prototypes)
    assert found(tmp_path, "method.supervised_weight=1.0") < 0.7  # labels alone teach nothing of them
