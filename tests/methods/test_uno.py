"""UNO: its loss word for word, targets, which head predicts, small batches, and that it goes on alike."""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import TINY
from rich.console import Console
from torch import Tensor

from unveil import losses, recipe, settings
from unveil.data.loader import Batch
from unveil.errors import UnveilError
from unveil.methods.method import Context
from unveil.methods.uno import UNO, UNOSettings
from unveil.models import build_encoder
from unveil.models.heads import ProjectedPrototypes, Prototypes, linear_head
from unveil.models.model import Model
from unveil.own.run import run_recipe

KNOWN, NOVEL, WIDTH = 3, 2, 8


def make(shape: tuple[int, ...] = (6,), **options: Any) -> UNO:
    generator = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=WIDTH), shape, generator)
    model = Model(encoder, linear_head(WIDTH, KNOWN, generator), linear_head(WIDTH, NOVEL, generator), torch.float32)
    config = UNOSettings(**{"heads": 3, **options})
    labels = np.repeat([0, -1], [10, 20])
    return UNO(model, Context(settings=config, seed=7, labels=labels, features=lambda rows: torch.zeros(0, WIDTH)))


def batch(labeled: int, unlabeled: int, step: int = 0, shape: tuple[int, ...] = (6,)) -> Batch:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(labeled + unlabeled, *shape, generator=generator)
    views = (x, x + 0.1 * torch.randn(x.shape, generator=generator))
    return Batch(views=views, y=torch.randint(KNOWN, (labeled,), generator=generator), epoch=0, step=step)


def train(method: UNO, first: int, last: int) -> None:
    optimizer = torch.optim.SGD(method.trained(), lr=0.1)
    for step in range(first, last):
        method.train()
        optimizer.zero_grad()
        torch.stack(list(method.losses(batch(5, 7, step)).values())).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@pytest.mark.parametrize(("labeled", "unlabeled"), [(0, 1), (1, 0), (1, 1), (0, 5), (5, 0), (4, 1), (20, 30)])
@pytest.mark.parametrize("shape", [(6,), (1, 4, 4)], ids=["vectors", "images"])
@pytest.mark.parametrize("overclustering", [0, 3])
def test_no_batch_is_too_small(labeled: int, unlabeled: int, shape: tuple[int, ...], overclustering: int) -> None:
    method = make(shape, overclustering=overclustering)
    terms = method.losses(batch(labeled, unlabeled, shape=shape))
    assert set(terms) == ({"swapped", "overclustering"} if overclustering else {"swapped"})
    assert all(value.shape == () and math.isfinite(value.item()) for value in terms.values())
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in method.trained())


def test_targets_are_classes_and_pseudo_labels() -> None:
    method = make()
    logits, y = torch.randn(6, NOVEL, generator=torch.Generator().manual_seed(1)), torch.tensor([2, 0])
    targets = method._targets(logits, KNOWN, y)
    assert targets[:2, :KNOWN].tolist() == F.one_hot(y, KNOWN).tolist()
    assert not targets[:2, KNOWN:].any()
    assert not targets[2:, :KNOWN].any()
    torch.testing.assert_close(targets[2:, KNOWN:], losses.sinkhorn(logits[2:] * 0.1))


def test_the_loss_is_the_mean_of_the_heads_swapped_predictions() -> None:
    method, given = make(overclustering=0), batch(4, 6)
    method.eval()
    z = method.model.encode(torch.cat(given.views))
    expected = []
    for name in method.novel:
        logits = torch.cat([method.model.known_head(z), method.model.further_heads[name](z)], dim=1)
        targets = [method._targets(part[:, KNOWN:], KNOWN, given.y) for part in logits.chunk(2)]
        expected.append(losses.swapped_prediction(*logits.chunk(2), *targets))
    torch.testing.assert_close(method.losses(given)["swapped"], torch.stack(expected).mean())
    torch.testing.assert_close(method.head_losses, torch.stack(expected))


def literal_logits(head: ProjectedPrototypes, z: Tensor) -> list[list[Tensor]]:
    """Linear, BatchNorm with the statistics of the batch, ReLU, linear, cosines to the prototypes / 0.1; one by one."""
    first, norm, _, second = (layer.double() for layer in head.project)
    hidden = [first.weight @ row + first.bias for row in z]
    means = [sum(h[unit] for h in hidden) / len(z) for unit in range(len(first.bias))]
    spreads = [
        (sum((h[unit] - means[unit]) ** 2 for h in hidden) / len(z) + norm.eps).sqrt() for unit in range(len(means))
    ]
    logits = []
    for h in hidden:
        normed = [
            norm.weight[unit] * (h[unit] - means[unit]) / spreads[unit] + norm.bias[unit] for unit in range(len(h))
        ]
        projected = second.weight @ torch.stack([value if value > 0 else 0 * value for value in normed]) + second.bias
        logits.append([F.cosine_similarity(projected, c.double(), dim=0) / 0.1 for c in head.prototypes.weight])
    return logits


def literal_assignments(logits: list[list[Tensor]]) -> list[list[float]]:
    """Sinkhorn-Knopp with ε = 0.05: three times columns to B / K and rows to 1."""
    q = [[math.exp(0.1 * value.item() / 0.05) for value in row] for row in logits]
    clusters = range(len(q[0]) if q else 0)
    for _ in range(3):
        columns = [sum(row[k] for row in q) for k in clusters]
        q = [[row[k] / columns[k] * len(q) / len(clusters) for k in clusters] for row in q]
        q = [[value / sum(row) for value in row] for row in q]
    return q


def literal_loss(method: UNO, given: Batch) -> Tensor:
    """The mean over heads of each kind: cross-entropy of each row of a view with the target of the other view."""
    z = method.model.encode(torch.cat(given.views)).detach().double()
    count, y = len(z) // 2, given.y.tolist()
    known_head = method.model.known_head
    assert isinstance(known_head, Prototypes)
    known = [[F.cosine_similarity(row, c.double(), dim=0) / 0.1 for c in known_head.weight] for row in z]
    means = []
    for names in (method.novel, method.over):
        total = torch.zeros((), dtype=torch.float64)
        for name in names:
            head = copy.deepcopy(method.model.further_heads[name])
            assert isinstance(head, ProjectedPrototypes)
            novel = literal_logits(head, z)
            for view in (0, 1):
                other = (1 - view) * count  # the rows of the other view, which give the targets
                assigned = literal_assignments(novel[other + len(y) : other + count])
                for i in range(count):
                    logits = [*known[view * count + i], *novel[view * count + i]]
                    target = [0.0] * len(logits)
                    if i < len(y):
                        target[y[i]] = 1.0
                    else:
                        target[KNOWN:] = assigned[i - len(y)]
                    exponentials = [torch.exp(value) for value in logits]
                    shares = [value / sum(exponentials) for value in exponentials]
                    loss = -sum(t * torch.log(share) for t, share in zip(target, shares, strict=True))
                    total = total + loss / (2 * count * len(names))
        means.append(total)
    return sum(means) / 2  # type: ignore[return-value]


@pytest.mark.parametrize(("labeled", "unlabeled"), [(4, 6), (0, 5), (5, 0)])
def test_the_loss_word_for_word(labeled: int, unlabeled: int) -> None:
    method, given = make(heads=2, overclustering=3), batch(labeled, unlabeled)
    method.train()
    terms = method.losses(given)
    assert set(terms) == {"swapped", "overclustering"}
    expected = literal_loss(method, given)
    torch.testing.assert_close(torch.stack(list(terms.values())).sum().double(), expected, rtol=1e-5, atol=1e-5)


def test_the_head_with_the_lowest_loss_of_the_epoch_predicts() -> None:
    method = make()
    train(method, 0, 3)
    method.eval()
    method.head_losses.copy_(torch.tensor([3.0, 1.0, 2.0]))
    method.after_epoch()
    z = torch.randn(4, WIDTH)
    assert torch.equal(method.model.novel_head(z), method.model.further_heads["novel_1"](z))
    joint = method.model.joint(z)
    assert joint is not None
    assert joint.shape == (4, KNOWN + NOVEL)
    method.before_epoch(1)
    assert not method.head_losses.any()


def test_heads_differ_and_the_seed_decides_them() -> None:
    first, again = make(), make()
    weights = [first.model.further_heads[name].prototypes.weight for name in first.novel]  # type: ignore[union-attr]
    assert not torch.equal(weights[0], weights[1])  # type: ignore[arg-type]
    assert torch.equal(weights[0], again.model.further_heads["novel_0"].prototypes.weight)  # type: ignore[union-attr,arg-type]
    norms = first.model.known_head.weight.norm(dim=1)  # type: ignore[union-attr]
    torch.testing.assert_close(norms, torch.ones(KNOWN))


def test_a_restored_method_goes_on_alike() -> None:
    whole, first, second = make(), make(), make()
    train(whole, 0, 6)
    train(first, 0, 3)
    second.load_state_dict(first.state_dict())
    train(second, 3, 6)
    assert all(
        torch.equal(a, b) for a, b in zip(whole.state_dict().values(), second.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("option", [{"heads": 0}, {"temperature": 0.0}, {"hidden": 0}, {"overclustering": -1}])
def test_impossible_settings_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(UnveilError, match=next(iter(option))):
        UNOSettings(**option)


def test_a_whole_run_is_saved_with_all_heads(tmp_path: Path) -> None:
    quick = ["discovery.method=uno", "discovery.epochs=2", "rotation.epochs=1", "method.heads=2"]
    resolved = recipe.load("digits", recipe.parse_set(quick), defaults=recipe.parse_set(TINY))
    record = run_recipe(resolved, out=tmp_path / "run", stages=tmp_path / "store", console=Console(quiet=True))
    assert record["metrics"]["swapped"] > 0
    assert record["metrics"]["open_all"] > 0
    assert "pair_density" not in record["metrics"]  # it has no rule for pairs
    model = Model.load(tmp_path / "run" / "model.safetensors")
    assert set(model.further_heads) == {"novel_0", "novel_1", "over_0", "over_1"}
    assert model.comparable
