"""The one training loop. Every stage goes through it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from unveil.data.loader import Batch, Loader
from unveil.engine import checkpoint
from unveil.engine.progress import Progress
from unveil.engine.schedule import learning_rate
from unveil.errors import UnveilError
from unveil.settings import Stage

Metrics = dict[str, float]


class Objective(Protocol):
    """What the loop needs of a method: an nn.Module with these three."""

    def trained(self) -> list[nn.Parameter]:
        """The parameters that the stage changes."""
        ...

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """The weighted terms of the loss; their sum is minimised."""
        ...

    def after_step(self) -> None:
        """Called when the weights have been updated."""
        ...


def train(
    objective: Objective,
    loader: Loader,
    config: Stage,
    *,
    path: Path,
    every_seconds: float,
    progress: Progress,
    after_epoch: Callable[[int], Metrics],
) -> list[Metrics]:
    """Train for `config.epochs`, from the checkpoint at `path` where there is one. Returns the metrics of each epoch.

    `after_epoch` evaluates; what it returns joins the epoch's mean losses. Nothing here reads a value from the device
    but the checkpoint, the log lines and the end of an epoch.
    """
    assert isinstance(objective, nn.Module)
    optimizer = torch.optim.SGD(
        objective.trained(),
        lr=config.lr,
        momentum=config.momentum,
        nesterov=config.nesterov,
        weight_decay=config.weight_decay,
        fused=True,
    )
    state = checkpoint.restore(path, objective, optimizer) or {
        "epoch": 0,
        "step": 0,
        "sums": {},
        "seconds": 0.0,
        "history": [],
    }
    sums = {name: torch.tensor(value, device=loader.device) for name, value in state["sums"].items()}
    history: list[Metrics] = state["history"]
    steps, step = loader.steps(), int(state["step"])
    started = saved = time.monotonic()
    before = float(state["seconds"])

    def save(epoch: int, step: int) -> None:
        totals = {name: float(value) for name, value in sums.items()}
        seconds = before + time.monotonic() - started
        record = {"epoch": epoch, "step": step, "sums": totals, "seconds": seconds, "history": history}
        checkpoint.save(path, objective, optimizer, record)

    progress.start(epochs=config.epochs, steps=steps, done=state["epoch"] * steps + step)
    for epoch in range(state["epoch"], config.epochs):
        objective.train()
        for batch in loader.epoch(epoch, skip=step):
            rate = learning_rate(config, epoch + batch.step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            losses = objective.losses(batch)
            optimizer.zero_grad(set_to_none=True)
            torch.stack(list(losses.values())).sum().backward()
            optimizer.step()
            objective.after_step()
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + value.detach()
            progress.advance(epoch, losses, rate)
            if time.monotonic() - saved > every_seconds:
                save(epoch, batch.step + 1)
                saved = time.monotonic()
        means = {name: float(value) / steps for name, value in sums.items()}
        _check_finite(means, config)
        objective.eval()
        metrics = {"epoch": epoch, "lr": rate_at_end(config, epoch), **means, **after_epoch(epoch)}
        metrics["seconds"] = round(before + time.monotonic() - started, 2)
        history.append(metrics)
        progress.epoch_done(metrics)
        sums, step = {}, 0
        save(epoch + 1, 0)
        saved = time.monotonic()
    progress.stop()
    return history


def rate_at_end(config: Stage, epoch: int) -> float:
    """The learning rate of an epoch's last steps."""
    return learning_rate(config, epoch + 1 - 1e-6)


def _check_finite(means: Metrics, config: Stage) -> None:
    if bad := [name for name, value in means.items() if not abs(value) < float("inf")]:
        raise UnveilError(
            f"the loss '{bad[0]}' is not finite any more: training diverged at learning rate {config.lr}; "
            "run again with a smaller one, for example --set discovery.lr=0.02"
        )
