"""The loop on a tiny objective: what it writes, how it stops, and that a stop changes nothing."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from unveil.data.items import Items
from unveil.data.loader import Batch, Loader
from unveil.data.views import make_views
from unveil.errors import UnveilError
from unveil.methods.method import Method
from unveil.settings import Augment, Data, Discovery, Rotation, Stage, Supervised
from unveil.training.loop import Metrics, train
from unveil.training.progress import Bar

CPU = torch.device("cpu")


class Line(Method):
    """Two classes of vectors by a linear map; `during` is called in each step."""

    def __init__(self, during: Callable[[Batch], None] = lambda _: None) -> None:
        nn.Module.__init__(self)  # there is no encoder here
        self.net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
        with torch.no_grad():
            self.net[1].weight.fill_(0.1)
            self.net[1].bias.zero_()
        self.during, self.updates = during, 0

    def trained(self) -> list[nn.Parameter]:
        return list(self.parameters())

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        self.during(batch)
        logits = self.net(batch.views[0])
        return {"ce": nn.functional.cross_entropy(logits, batch.y), "size": 0.01 * logits.square().mean()}

    def after_step(self) -> None:
        self.updates += 1


def loader(rows: int = 10, batch: int = 4) -> Loader:
    items = np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)
    labels = (items[:, 0] > 0).astype(np.int64)
    views = make_views(Items.of(items), Data(name="x"), Augment(), CPU, 0)
    return Loader(views=views, labels=labels, rows=np.arange(rows), batch=batch, seed=0, device=CPU, n_views=1)


def go(
    folder: Path | None,
    objective: Line | None = None,
    config: Stage | None = None,
    after_epoch: Callable[[int], Metrics] = lambda epoch: {"acc": epoch / 10},
    **kwargs: Any,
) -> list[Metrics]:
    return train(
        objective or Line(),
        kwargs.pop("loader", None) or loader(),
        config or Stage(epochs=3, batch=4, lr=0.1),
        folder=folder,
        every_seconds=kwargs.pop("every_seconds", 1000),
        progress=Bar("stage", Console(quiet=True)),
        after_epoch=after_epoch,
    )


def lines(folder: Path) -> list[Metrics]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_line_of_metrics_for_each_epoch(tmp_path: Path) -> None:
    objective = Line()
    history = go(tmp_path, objective)
    assert lines(tmp_path) == history
    assert [row["epoch"] for row in history] == [0, 1, 2]
    assert [row["acc"] for row in history] == [0, 0.1, 0.2]
    assert all({"lr", "ce", "size", "seconds"} <= row.keys() for row in history)
    assert history[2]["ce"] < history[0]["ce"] < 1
    assert objective.updates == 9
    assert not objective.training


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unveil.training import checkpoint

    def refuse(*_: object) -> None:
        raise AssertionError("something is written")

    written, kept = Line(), Line()
    expected = go(tmp_path, written)
    monkeypatch.setattr(checkpoint, "save", refuse)
    monkeypatch.setattr("unveil.files.write", refuse)
    history = go(None, kept, every_seconds=-1)
    assert [row["ce"] for row in history] == [row["ce"] for row in expected]
    assert all(torch.equal(a, b) for a, b in zip(written.parameters(), kept.parameters(), strict=True))


def test_the_recorded_loss_is_the_mean_over_the_steps_of_the_epoch(tmp_path: Path) -> None:
    seen: list[float] = []

    class Noted(Line):
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            terms = super().losses(batch)
            seen.append(terms["ce"].item())
            return terms

    history = go(tmp_path, Noted())
    assert history[1]["ce"] == pytest.approx(sum(seen[3:6]) / 3)


def test_no_epochs_train_nothing(tmp_path: Path) -> None:
    objective = Line()
    assert go(tmp_path, objective, Stage(epochs=0)) == []
    assert objective.updates == 0


def test_a_last_batch_of_one_row_does_not_stop_batch_norm(tmp_path: Path) -> None:
    objective = Line()
    go(tmp_path, objective, loader=loader(rows=9, batch=4))
    assert objective.updates == 9
    assert int(objective.net[0].num_batches_tracked) == 6


@pytest.mark.parametrize("config", [Rotation, Supervised, Discovery])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_with_advice(tmp_path: Path, config: type[Stage], value: float) -> None:
    class Diverging(Line):
        def losses(self, batch: Batch) -> dict[str, Tensor]:
            terms = super().losses(batch)
            return terms if batch.epoch == 0 else {**terms, "ce": terms["ce"] * value}

    stage = config.__name__.lower()
    with pytest.raises(UnveilError, match=f"'ce' is not finite.* --set {stage}.lr=0.1$"):
        go(tmp_path, Diverging(), config(epochs=3, lr=0.5))
    assert [row["epoch"] for row in lines(tmp_path)] == [0]


def asked_at(step: int) -> Callable[[Batch], None]:
    """Ctrl-C for this process in a step, counted from the start of training."""

    def during(batch: Batch) -> None:
        if (batch.epoch, batch.step) == (step // 3, step % 3):
            os.kill(os.getpid(), signal.SIGINT)

    return during


@pytest.mark.parametrize("step", [0, 1, 2, 4, 8])
def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path: Path, step: int) -> None:
    straight, stopped, resumed = Line(), Line(asked_at(step)), Line()
    history = go(tmp_path / "straight", straight)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "stopped", stopped)
    assert stopped.updates == step + 1  # the step that was under way is finished and kept
    again = go(tmp_path / "stopped", resumed)
    assert resumed.updates == 9 - stopped.updates
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), resumed.parameters(), strict=True))
    times = {"seconds"}
    assert [{k: v for k, v in row.items() if k not in times} for row in again] == [
        {k: v for k, v in row.items() if k not in times} for row in history
    ]


def test_an_interrupt_while_the_last_epoch_is_evaluated_is_not_lost(tmp_path: Path) -> None:
    def evaluate(epoch: int) -> Metrics:
        if epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return {}

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, after_epoch=evaluate)
    assert len(lines(tmp_path)) == 3
    resumed = Line()
    assert len(go(tmp_path, resumed)) == 3
    assert resumed.updates == 0


def test_handlers_are_given_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    go(tmp_path)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_checkpoint_after_every_step_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unveil.training import checkpoint

    saved: list[tuple[int, int]] = []
    original = checkpoint.save

    def noting(path: Path, module: Any, optimizer: Any, progress: dict[str, Any]) -> None:
        saved.append((progress["epoch"], progress["step"]))
        original(path, module, optimizer, progress)

    monkeypatch.setattr(checkpoint, "save", noting)
    go(tmp_path / "often", config=Stage(epochs=1, lr=0.1), every_seconds=-1)
    assert saved == [(0, 1), (0, 2), (0, 3), (1, 0)]
    saved.clear()
    go(tmp_path / "seldom", config=Stage(epochs=2, lr=0.1))
    assert saved == [(1, 0), (2, 0)]
