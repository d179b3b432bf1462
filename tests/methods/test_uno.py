"""UNO: targets, which head predicts, batches without labelled or unlabelled rows, and that it goes on alike."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import TINY
from rich.console import Console

from unveil import losses, recipe, settings
from unveil.data.loader import Batch
from unveil.discovery.run import run_recipe
from unveil.errors import UnveilError
from unveil.methods.method import Context
from unveil.methods.uno import UNO, UNOSettings
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model

KNOWN, NOVEL, WIDTH = 3, 2, 8


def make(shape: tuple[int, ...] = (6,), **options: Any) -> UNO:
    generator = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=WIDTH), shape, generator)
    model = Model(encoder, linear_head(WIDTH, KNOWN, generator), linear_head(WIDTH, NOVEL, generator), torch.float32)
    config = UNOSettings(**{"heads": 3, **options})
    labels = np.repeat([0, -1], [10, 20])
    return UNO(model, Context(settings=config, seed=7, labels=labels, features=lambda rows: torch.zeros(0, WIDTH)))


def batch(labelled: int, unlabelled: int, step: int = 0, shape: tuple[int, ...] = (6,)) -> Batch:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(labelled + unlabelled, *shape, generator=generator)
    views = (x, x + 0.1 * torch.randn(x.shape, generator=generator))
    return Batch(views=views, y=torch.randint(KNOWN, (labelled,), generator=generator), epoch=0, step=step)


def train(method: UNO, first: int, last: int) -> None:
    optimizer = torch.optim.SGD(method.trained(), lr=0.1)
    for step in range(first, last):
        method.train()
        optimizer.zero_grad()
        torch.stack(list(method.losses(batch(5, 7, step)).values())).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@pytest.mark.parametrize(("labelled", "unlabelled"), [(0, 1), (1, 0), (1, 1), (0, 5), (5, 0), (4, 1), (20, 30)])
@pytest.mark.parametrize("shape", [(6,), (1, 4, 4)], ids=["vectors", "images"])
@pytest.mark.parametrize("overclustering", [0, 3])
def test_no_batch_is_too_small(labelled: int, unlabelled: int, shape: tuple[int, ...], overclustering: int) -> None:
    method = make(shape, overclustering=overclustering)
    terms = method.losses(batch(labelled, unlabelled, shape=shape))
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
    resolved = recipe.load("digits", quick, defaults=TINY)
    record = run_recipe(resolved, out=tmp_path / "run", stages=tmp_path / "store", console=Console(quiet=True))
    assert record["metrics"]["swapped"] > 0
    assert record["metrics"]["open_all"] > 0
    assert "pair_density" not in record["metrics"]  # it has no rule for pairs
    model = Model.load(tmp_path / "run" / "model.safetensors")
    assert set(model.further_heads) == {"novel_0", "novel_1", "over_0", "over_1"}
    assert model.comparable
