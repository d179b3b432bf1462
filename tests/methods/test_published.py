"""The reference-code presets against the published procedure, step by step: losses, weights, statistics, memories."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY
from published import Options, Published
from rich.console import Console
from safetensors.torch import load_file
from torch import Tensor

from unveil import recipe, rng, settings
from unveil.data.loader import Batch
from unveil.errors import UnveilError
from unveil.methods.catalog import make_method
from unveil.methods.method import Context
from unveil.methods.ncl import HNGSettings, NCLWithHNG
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.own.run import run_recipe
from unveil.settings import Settings
from unveil.training.loop import learning_rate, step_on

KNOWN, NOVEL, SEED, STEPS_PER_EPOCH = 3, 5, 4, 4
ITEMS = 300  # of each kind: the queues are as long as the settings say
SMALL = [
    *("encoder.name=compact", "encoder.width=4", "encoder.space_to_depth=1", "encoder.blocks=[2, 1, 1, 2]"),
    *("discovery.milestones=[3]", "discovery.epochs=5", f"seed={SEED}"),
    *("method.rampup=4", "method.threshold=0.8", "method.queue=60", "method.k_easy=6", "method.k_hard=9"),
]
NEVER_FULL = ["method.queue=250", "method.hng_start=1"]  # hard negatives from random vectors


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def build(resolved: Settings) -> NCLWithHNG:
    """A tiny network and the method of a recipe, as the discovery stage sets them up."""
    generator = rng.generator(1, "network")
    encoder = build_encoder(resolved.encoder, (3, 8, 8), generator)
    with torch.no_grad():
        for name, value in encoder.state_dict().items():
            if "norm" in name and value.is_floating_point():  # as pre-training leaves them: not 0 and 1
                value.add_(0.2 * torch.rand(value.shape, generator=generator))
    dim = encoder.dim
    heads = linear_head(dim, KNOWN, generator), linear_head(dim, NOVEL, generator)
    model = Model(encoder, *heads, torch.float64)
    if resolved.discovery.trunk_batchnorm == "training":
        model.freeze_trunk_weights()
    else:
        model.freeze_trunk()
    context = Context(
        settings=resolved.method,
        seed=resolved.seed,
        labels=np.repeat([0, -1], [ITEMS, ITEMS]),
        features=lambda rows: torch.zeros(len(rows), dim),
    )
    method = make_method(resolved.discovery.method, model, context)
    assert isinstance(method, NCLWithHNG)
    return method


def literal(method: NCLWithHNG, step_size: int) -> Published:
    config = method.config
    assert isinstance(config, HNGSettings)
    options = Options(
        gamma=config.consistency,
        rampup=config.rampup,
        threshold=config.threshold,
        step_size=step_size,
        k1=int(config.queue / NOVEL / 2),
        num_neg=config.k_easy,
        num_hard=config.k_hard,
        hard_negative_start=config.hng_start,
    )
    drawn: dict[tuple[int, int], Tensor] = {}

    def permutation(epoch: int, step: int, row: int, number: int) -> list[int]:
        if (epoch, step) not in drawn:  # the rows of a step draw together
            generator = rng.generator(SEED, "hard negatives", epoch, step)
            drawn[epoch, step] = torch.rand(rows_of(epoch, step)[1], 5, config.queue, generator=generator).argsort(2)
        return drawn[epoch, step][row, number].tolist()  # type: ignore[no-any-return]

    memories = method.queue_u.features, method.queue_l.features
    return Published(published_names(method.model), *memories, options, permutation)


def published_names(model: Model) -> dict[str, Tensor]:
    """The weights of a model by the names that the published code gives them."""
    found = {}
    for name, value in model.state_dict().items():
        name = re.sub(r"^encoder\.trunk\.0\.0\.(conv|norm)", lambda m: {"conv": "conv1", "norm": "bn1"}[m[1]], name)
        name = re.sub(r"^encoder\.trunk\.(\d)", r"layer\1", name).replace("encoder.tail.0", "layer4")
        name = name.replace("first.conv", "conv1").replace("first.norm", "bn1")
        name = name.replace("second.conv", "conv2").replace("second.norm", "bn2")
        name = name.replace("known_head", "head1").replace("novel_head", "head2")
        if "num_batches_tracked" not in name:
            found[name] = value.detach().clone()
    return found


def rows_of(epoch: int, step: int) -> tuple[int, int]:
    """Numbers of labeled and unlabeled rows: the ratio of a mixed batch changes from step to step."""
    labeled = 9 + (3 * epoch + step) % 4
    return labeled, 20 - labeled


def batch(epoch: int, step: int) -> Batch:
    generator = rng.generator(2, "batch", epoch, step)
    labeled, unlabeled = rows_of(epoch, step)
    y = torch.randint(KNOWN, (labeled,), generator=generator)
    kind = torch.cat([y, KNOWN + torch.randint(NOVEL, (unlabeled,), generator=generator)])
    patterns = torch.randn(KNOWN + NOVEL, 3, 8, 8, generator=rng.generator(2, "patterns"))
    views = tuple(patterns[kind] + 0.5 * torch.randn(20, 3, 8, 8, generator=generator) for _ in range(2))
    return Batch(views=views, y=y, epoch=epoch, step=step)


def differences(resolved: Settings, steps: int = 20, step_size: int = 4) -> tuple[float, float, set[str]]:
    """The largest difference of a loss in any step, of a weight or statistic at the end; and the terms of the loss."""
    method = build(resolved)
    procedure = literal(method, step_size)
    stage = resolved.discovery
    optimizer = torch.optim.SGD(
        method.trained(), lr=stage.lr, momentum=stage.momentum, nesterov=stage.nesterov, weight_decay=stage.weight_decay
    )
    worst, seen = 0.0, set[str]()
    for number in range(steps):
        epoch, step = divmod(number, STEPS_PER_EPOCH)
        given = batch(epoch, step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(stage, epoch + step / STEPS_PER_EPOCH)
        method.train()
        losses = step_on(given, method, optimizer)
        labels = given.y.tolist() + [-1] * rows_of(epoch, step)[1]
        expected = procedure.step(epoch, step, given.views, labels)  # type: ignore[arg-type]
        seen |= set(losses)
        if set(losses) != set(expected):
            return math.inf, math.inf, seen
        worst = largest(worst, *(abs(losses[name].item() - expected[name]) for name in losses))
    found = published_names(method.model)
    found |= {"memory_u": method.queue_u.features, "memory_l": method.queue_l.features}
    wanted = procedure.state | {"memory_u": procedure.memory_u.features, "memory_l": procedure.memory_l.features}
    assert set(found) == set(wanted)
    apart = largest(*(float((found[name] - wanted[name].detach()).abs().max()) for name in wanted))
    return worst, apart, seen


def largest(*values: float) -> float:
    """The largest value; not a number if any is none, which Python's max would pass over."""
    return float(torch.tensor(values).max())


@pytest.mark.parametrize("more", [[], NEVER_FULL], ids=["queues that fill", "queues that never fill"])
def test_twenty_steps_of_the_published_procedure(more: list[str]) -> None:
    worst, apart, seen = differences(recipe.load("cifar10-reference-code", recipe.parse_set([*SMALL, *more])))
    assert seen == {"ce", "bce", "consistency", "ncl", "scl"}
    assert worst < 1e-8
    assert apart < 1e-8


@pytest.mark.parametrize("preset", ["cifar100-reference-code", "imagenet-reference-code"])
def test_the_other_presets_follow_it_too(preset: str) -> None:
    more = ["method.queue_labeled=60"] if preset.startswith("imagenet") else []
    worst, apart, _ = differences(recipe.load(preset, recipe.parse_set([*SMALL, *more])))
    assert worst < 1e-8
    assert apart < 1e-8


@pytest.mark.parametrize(
    "other",
    [
        "method.separate_views=false",
        "discovery.trunk_batchnorm=fixed",
        "method.queue_start=empty",
        "method.partners=any",
        "method.view_among_neighbors=false",
        "method.consistency_rows=own",
        "method.scl_weight=1.0",
        "method.scl_start=1",
        "discovery.milestones=[4]",
        "discovery.weight_decay=0.0",
    ],
)
def test_every_option_matters(other: str) -> None:
    """Without one of them the trajectory is another one, with all of them it is the same."""
    given = [*SMALL, *NEVER_FULL, "discovery.milestones=[1]"]
    # Of empty slots the published procedure would make hard negatives of length zero, so it ends before them.
    steps = STEPS_PER_EPOCH if other == "method.queue_start=empty" else 6
    worst, apart, _ = differences(recipe.load("cifar10-reference-code", recipe.parse_set(given)), steps, step_size=2)
    assert largest(worst, apart) < 1e-8
    worst, apart, _ = differences(
        recipe.load("cifar10-reference-code", recipe.parse_set([*given, other])), steps, step_size=2
    )
    assert largest(worst, apart) > 1e-6


PUBLISHED = [
    *("method.separate_views=true", "discovery.trunk_batchnorm=training", "method.queue_start=random"),
    *("method.partners=distinct", "rotation.epochs=1", "discovery.epochs=2", "method.hng_start=0"),
]


def run(folder: Path, *overrides: str, resume: bool = False) -> Model:
    torch.set_default_dtype(torch.float32)
    resolved = recipe.load(
        "digits",
        recipe.parse_set([*PUBLISHED, "machine.checkpoint_seconds=0", *overrides]),
        defaults=recipe.parse_set(TINY),
    )
    quiet = Console(quiet=True)
    run_recipe(resolved, out=folder / "run", stages=folder / "store", resume=resume, console=quiet)
    return Model.load(folder / "run" / "model.safetensors")


def test_statistics_of_the_trunk_move_are_saved_and_go_on_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(tmp_path / "whole").state_dict()
    (stored,) = (tmp_path / "whole" / "store").glob("*/model.safetensors")
    before = load_file(stored)
    for name, value in before.items():
        if name.startswith("encoder.trunk") and "num_batches" not in name:
            assert torch.equal(value, whole[name]) == ("running" not in name), name
    steps = 0

    def interrupted(*given: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 12:
            raise KeyboardInterrupt
        return step_on(*given)

    with monkeypatch.context() as patch:
        patch.setattr("unveil.training.loop.step_on", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "parts", "rotation.epochs=0")
    parts, at_once = (
        run(tmp_path / "parts", "rotation.epochs=0", resume=True),
        run(tmp_path / "once", "rotation.epochs=0"),
    )
    for (name, value), other in zip(parts.state_dict().items(), at_once.state_dict().values(), strict=True):
        assert torch.equal(value, other), name


def test_a_trunk_whose_statistics_move_has_no_cache(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="cache_views=0"):
        run(tmp_path, "machine.cache_views=2")
    assert not (tmp_path / "store").exists()


def test_the_small_recipe_keeps_what_the_presets_say() -> None:
    whole, small = recipe.load("cifar10-reference-code"), recipe.load("cifar10-reference-code", recipe.parse_set(SMALL))
    assert isinstance(whole.method, HNGSettings)
    assert isinstance(small.method, HNGSettings)
    for key in ("separate_views", "queue_start", "partners", "view_among_neighbors", "consistency_rows", "scl_weight"):
        assert getattr(whole.method, key) == getattr(small.method, key)
    assert whole.discovery.trunk_batchnorm == small.discovery.trunk_batchnorm == "training"
    assert settings.Discovery().trunk_batchnorm == "fixed"
