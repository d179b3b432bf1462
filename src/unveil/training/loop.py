"""The training loop, which all stages share."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unveil import files, ranks
from unveil.data.loader import Batch, Loader
from unveil.errors import UnveilError
from unveil.methods.method import Method
from unveil.settings import Stage
from unveil.training import checkpoint
from unveil.training.guard import Guard
from unveil.training.interrupt import Interrupt
from unveil.training.progress import Bar

Metrics = dict[str, Any]
LossesOf = Callable[[Batch], dict[str, Tensor]]


def train(
    method: Method,
    loader: Loader,
    config: Stage,
    *,
    folder: Path | None,
    every_seconds: float,
    progress: Bar,
    after_epoch: Callable[[int], Metrics],
    made_from: str = "",
    guard: Guard | None = None,
) -> list[Metrics]:
    """Train for `config.epochs`; returns the metrics by epoch.

    With a `folder` training goes on from the checkpoint there and leaves checkpoints and `metrics.jsonl` in it; without
    one nothing is written; of processes that train together the first writes. `made_from` is a hash of the data, which
    a checkpoint must have too. `after_epoch` evaluates, and what it returns joins the epoch's mean losses. No step
    waits for the device: values are read for checkpoints, log lines and at the end of an epoch alone. A `guard` looks
    at the model after every epoch but the last.
    """
    path = None if folder is None else folder / checkpoint.NAME
    together = ranks.current()

    # The optimizer, and the state of an interrupted training where there is one.
    optimizer = make_optimizer(config, method.trained())
    state = (None if path is None else checkpoint.restore(path, method, optimizer, made_from)) or checkpoint.fresh()
    sums = {name: torch.tensor(value, device=loader.device) for name, value in state["sums"].items()}
    history: list[Metrics] = state["history"]
    steps, step = loader.steps(), int(state["step"])
    losses_of = together.averaging(method.losses, method.trained())
    saved = time.monotonic()
    started = saved - state["seconds"]

    def save(epoch: int, step: int) -> None:
        nonlocal saved
        saved = time.monotonic()
        if path is None or not together.first:
            return
        totals = {name: value.item() for name, value in sums.items()}
        record = {"epoch": epoch, "step": step, "sums": totals, "seconds": saved - started, "history": history}
        record["made_from"] = made_from
        checkpoint.save(path, method, optimizer, record)

    progress.start(epochs=config.epochs, steps=steps, done=state["epoch"] * steps + step)
    with Interrupt() as interrupt, progress:
        for epoch in range(state["epoch"], config.epochs):
            if step == 0:
                method.before_epoch(epoch)
            # The steps of the epoch, from where an interrupted one stopped.
            for batch in loader.epoch(epoch, skip=step):
                method.train(batch.size > 1)  # BatchNorm has no statistics of a row by itself
                rate = learning_rate(config, epoch + batch.step / steps) * Guard.rate(history)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                losses = step_on(batch, method, optimizer, losses_of)
                for name, value in losses.items():
                    sums[name] = sums.get(name, 0.0) + value.detach()
                progress.advance(epoch, losses, rate)
                stop = together.any(interrupt.asked)
                if stop or time.monotonic() - saved > every_seconds:
                    save(epoch, batch.step + 1)
                if stop:
                    raise KeyboardInterrupt
            # The end of the epoch: mean losses, evaluation, metrics, checkpoint.
            means = {name: value.item() / steps for name, value in sums.items()}
            check_finite(means, config)
            together.equalize(method)
            method.eval()
            method.after_epoch()
            metrics = {
                "epoch": epoch,
                "lr": learning_rate(config, epoch + 1 - 1 / steps) * Guard.rate(history),
                **means,
                **after_epoch(epoch),
            }
            if guard is not None and epoch + 1 < config.epochs:
                metrics |= guard.act(history, optimizer)
            history.append({**metrics, "seconds": round(time.monotonic() - started, 2)})
            progress.epoch_done(history[-1])
            sums, step = {}, 0
            if folder is not None:
                files.write(folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in history))
            save(epoch + 1, 0)
            if together.any(interrupt.asked):  # interrupted during the evaluation
                raise KeyboardInterrupt
    return history


def make_optimizer(config: Stage, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer of a stage."""
    common: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay, "fused": True}
    if config.optimizer == "adam":
        return torch.optim.Adam(parameters, **common)
    return torch.optim.SGD(parameters, momentum=config.momentum, nesterov=config.nesterov, **common)


def step_on(
    batch: Batch, method: Method, optimizer: torch.optim.Optimizer, losses_of: LossesOf | None = None
) -> dict[str, Tensor]:
    """One step: forward, backward, update. Returns the losses, which the device may still be computing.

    `losses_of`: the method's losses with a backward pass that averages gradients over processes; None: in this one.
    """
    losses = (losses_of or method.losses)(batch)
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(torch.stack(list(losses.values())).sum())
    optimizer.step()
    method.after_step()
    return losses


def check_finite(means: dict[str, float], config: Stage) -> None:
    """Stop with advice where training has diverged."""
    if bad := [name for name, value in means.items() if not abs(value) < float("inf")]:
        stage = config.table
        raise UnveilError(
            f"the loss '{bad[0]}' is not finite any more: {stage} diverged at learning rate {config.lr:g}; "
            f"run again with a smaller one and another --out, for example --set {stage}.lr={config.lr / 5:g}"
        )


def learning_rate(config: Stage, time: float) -> float:
    """The rate at `time` (epochs, with fractions): warm-up, then steps, a cosine to zero, or constant."""
    rate = config.lr
    if time < config.warmup:
        return rate * time / config.warmup
    match config.schedule:
        case "step":
            return rate * config.decay ** sum(time >= milestone for milestone in config.milestones)
        case "cosine":
            progress = (time - config.warmup) / max(config.epochs - config.warmup, 1e-9)
            return rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        case "constant":
            return rate
