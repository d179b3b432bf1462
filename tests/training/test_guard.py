"""The guard: it acts where clusters die or features become one point, and nowhere else."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unveil import recipe, settings
from unveil.data import catalog
from unveil.data.task import make_task
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.storage import Storage
from unveil.training import loop, stages
from unveil.training.guard import CLUSTERS, FEATURES, MOST, Guard
from unveil.training.training import Training

POINTS = torch.eye(3).repeat_interleave(20, dim=0) + 0.01 * torch.arange(60.0)[:, None] / 60
"""Three groups of 20 vectors."""


@pytest.fixture
def model() -> Model:
    draw = torch.Generator().manual_seed(0)
    encoder = build_encoder(settings.Encoder(name="mlp", width=3), (3,), draw)
    return Model(encoder, linear_head(3, 2, draw), linear_head(3, 3, draw), torch.float32)


def watched(model: Model, z: Tensor, told: list[str]) -> tuple[Guard, torch.optim.Optimizer]:
    optimizer = torch.optim.SGD(model.trained(), lr=0.1, momentum=0.9)
    for parameter in model.trained():
        optimizer.state[parameter]["momentum_buffer"] = torch.ones_like(parameter)
    return Guard(model, lambda: z, 0, told.append), optimizer


def momentum(optimizer: torch.optim.Optimizer, part: nn.Module) -> list[bool]:
    """Whether each parameter of a part has any."""
    return [bool(optimizer.state[parameter]["momentum_buffer"].any()) for parameter in part.parameters()]


def sizes(model: Model, z: Tensor) -> list[int]:
    return torch.bincount(model.novel_head(z).argmax(dim=1), minlength=3).tolist()


@torch.no_grad()
def put_all_into_one(model: Model) -> None:
    model.novel_head.weight.zero_()  # type: ignore[union-attr]
    model.novel_head.bias.copy_(torch.tensor([1.0, 0.0, 0.0]))  # type: ignore[union-attr]


def test_a_head_without_clusters_starts_again_from_those_of_the_features(model: Model) -> None:
    put_all_into_one(model)
    told: list[str] = []
    guard, optimizer = watched(model, POINTS, told)
    tail = {name: value.clone() for name, value in model.encoder.tail.state_dict().items()}
    assert guard.act([], optimizer) == {"guard": CLUSTERS}
    assert sizes(model, POINTS) == [20, 20, 20]
    assert "clusters were about to die" in told[0]
    assert not any(momentum(optimizer, model.novel_head))
    assert all(momentum(optimizer, model.encoder.tail))
    assert all(torch.equal(value, tail[name]) for name, value in model.encoder.tail.state_dict().items())
    assert guard.act([{"guard": CLUSTERS}], optimizer) == {}  # all is well now
    assert len(told) == 1


def test_features_that_are_one_point_start_again_with_the_tail(model: Model) -> None:
    told: list[str] = []
    z = POINTS.clone()
    guard, optimizer = watched(model, z, told)
    z.copy_(1 + 0.001 * POINTS)
    before = {name: value.clone() for name, value in model.encoder.tail.state_dict().items()}
    with torch.no_grad():
        for parameter in model.encoder.tail.parameters():
            parameter.add_(1)
    assert guard.act([], optimizer) == {"guard": FEATURES}
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.tail.state_dict().items())
    assert not any(momentum(optimizer, model.encoder.tail))
    assert not any(momentum(optimizer, model.novel_head))
    assert all(momentum(optimizer, model.known_head))
    assert "half the learning rate" in told[0]


def test_features_that_were_one_point_from_the_start_are_left_alone(model: Model) -> None:
    guard, optimizer = watched(model, 1 + 0.001 * POINTS, [])
    before = {name: value.clone() for name, value in model.encoder.tail.state_dict().items()}
    assert guard.act([], optimizer).get("guard") != FEATURES
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.tail.state_dict().items())


def test_it_acts_a_few_times_and_slows_down_for_features_alone(model: Model) -> None:
    put_all_into_one(model)
    guard, optimizer = watched(model, POINTS, [])
    assert guard.act([{"guard": CLUSTERS}] * MOST, optimizer) == {}
    assert sizes(model, POINTS) == [60, 0, 0]
    assert guard.act([{"guard": CLUSTERS}] * (MOST - 1) + [{}], optimizer) == {"guard": CLUSTERS}
    assert Guard.rate([{}, {"guard": CLUSTERS}]) == 1
    assert Guard.rate([{"guard": FEATURES}, {}, {"guard": FEATURES}]) == 0.25


def training_of(folder: Path | None, *overrides: str) -> Training:
    quick = ["data.per_class=24", "rotation.epochs=0", "discovery.epochs=4", "method.queue=100"]
    config = recipe.load("digits", recipe.parse_set(["discovery.guard=true", *quick, *overrides]))
    task, truth = make_task(catalog.load("digits"), config.data)
    return Training(config, task, truth, None if folder is None else Storage(folder / "stages", folder))


def dies_in_the_first_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """All items fall into one cluster at the end of the first epoch, in a fresh training alone."""
    look, seen = Guard.act, list[int]()

    def act(guard: Guard, history: list[dict[str, Any]], optimizer: torch.optim.Optimizer) -> dict[str, str]:
        seen.append(len(history))
        if not history:
            head = guard.model.novel_head
            with torch.no_grad():
                head.weight.zero_()  # type: ignore[union-attr]
                head.bias.copy_(torch.arange(float(len(head.bias))))  # type: ignore[union-attr, arg-type]
        return look(guard, history, optimizer)

    monkeypatch.setattr(Guard, "act", act)


def test_a_discovery_recovers_and_its_metrics_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    dies_in_the_first_epoch(monkeypatch)
    training = training_of(None, "discovery.evaluate_every=1")
    stages.pretrain(training)
    history = stages.discovery_stage(training)
    assert history[0]["guard"] == CLUSTERS
    assert min(history[1]["cluster_sizes"]) > 0
    assert any("clusters were about to die" in warning for warning in training.warnings)
    assert "guard" not in history[-1]


def test_a_resumed_discovery_does_what_the_guard_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dies_in_the_first_epoch(monkeypatch)
    whole = training_of(tmp_path / "whole")
    stages.pretrain(whole)
    expected = stages.discovery_stage(whole)
    step_on, done = loop.step_on, [0]

    def stopped(*given: Any) -> dict[str, Tensor]:
        done[0] += 1
        if done[0] == len_of_epoch(whole) + 2:
            raise KeyboardInterrupt
        return step_on(*given)

    parted = training_of(tmp_path / "parted")
    stages.pretrain(parted)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "step_on", stopped)
        with pytest.raises(KeyboardInterrupt):
            stages.discovery_stage(parted)
    (kept,) = [json.loads(line) for line in (tmp_path / "parted" / "metrics.jsonl").read_text().splitlines()]
    assert kept["guard"] == CLUSTERS
    again = training_of(tmp_path / "parted")
    stages.pretrain(again)
    history = stages.discovery_stage(again)
    assert [{**row, "seconds": 0} for row in history] == [{**row, "seconds": 0} for row in expected]
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, other)


def len_of_epoch(training: Training) -> int:
    return int(np.ceil(len(training.task) / training.settings.discovery.batch))
