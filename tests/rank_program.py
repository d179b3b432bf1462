"""What `test_ranks` runs in one process and in two: `python rank_program.py FOLDER`, with torchrun's variables.

Everything that two processes do is done here, one after the other: starting processes is what costs time.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from conftest import TINY
from rich.console import Console
from sklearn.datasets import load_digits
from torch import Tensor, nn

from unveil import NovelClassDiscovery, ranks, recipe
from unveil.data import catalog
from unveil.data.task import make_task
from unveil.models import encoder
from unveil.models.inference import features
from unveil.own.run import run_own_data, run_recipe
from unveil.settings import Settings
from unveil.storage import Storage
from unveil.training import loop, stages, stored_stages
from unveil.training.progress import Bar
from unveil.training.training import Training

COMMON = ["data.per_class=30", "machine.precision=float32", "discovery.novel_head=random", "discovery.epochs=4"]
METHODS = ("ncl", "simgcd", "uno", "rs+", "dtc", "mcl", "kcl")
ELASTIC = [*TINY, "machine.checkpoint_seconds=0", "machine.precision=float32", "data.per_class=20"]
ALONE = 7
"""Step at which a discovery is interrupted, to be resumed by another number of ranks."""


class Recorder(Bar):
    """Keeps the losses of every step."""

    def __init__(self, kept: dict[str, list[dict[str, float]]], stage: str) -> None:
        super().__init__(stage, Console(quiet=True))
        self.losses = kept.setdefault(stage, [])

    def advance(self, epoch: int, losses: dict[str, Tensor], rate: float) -> None:
        self.losses.append({name: value.item() for name, value in losses.items()})


@contextmanager
def without_batchnorm(kept: dict[str, list[dict[str, float]]]) -> Iterator[None]:
    """Encoders without BatchNorm, whose statistics would be those of a rank's part; losses of each step are kept."""
    before = encoder._dense, stored_stages.Bar

    def dense(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Linear(inputs, outputs), nn.ReLU()]

    encoder._dense = dense
    stored_stages.Bar = lambda stage, _: Recorder(kept, stage)  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        encoder._dense, stored_stages.Bar = before  # type: ignore[misc]


def training_of(settings: Settings, storage: Storage | None = None) -> Training:
    task, truth = make_task(catalog.load("digits"), settings.data)
    return Training(settings, task, truth, storage)


def trained(method: str, *overrides: str) -> dict[str, Any]:
    """Losses of all steps, queues and features after training with a method."""
    settings = recipe.load("digits", recipe.parse_set([*COMMON, f"discovery.method={method}", *overrides]))
    kept, made = dict[str, list[dict[str, float]]](), list[Any]()
    make = stages.make_method

    def noted(*given: Any) -> Any:
        made.append(make(*given))
        return made[-1]

    with without_batchnorm(kept):
        training = training_of(settings)
        stages.make_method = noted
        try:
            stages.pretrain(training)
            history = stages.discovery_stage(training)
        finally:
            stages.make_method = make
    z = features(training.model, training.views, training.task.unlabeled)
    queues = [name for name in ("queue_u", "queue_l") if hasattr(made[0], name)]
    return {
        "losses": kept,
        "acc": history[-1]["acc"],
        "known_acc": history[-1]["known_acc"],
        "features": z[:, :8].tolist(),
        "queues": [getattr(made[0], name).filled().tolist() for name in queues],
        "queue_labels": [getattr(made[0], name).filled_labels().tolist() for name in queues],
    }


def interrupted(folder: Path, *, at: int | None) -> dict[str, list[dict[str, float]]]:
    """Losses of a discovery with a checkpoint in `folder`, which asks to be interrupted `at` a step."""
    kept: dict[str, list[dict[str, float]]] = {}
    settings = recipe.load("digits", recipe.parse_set([*COMMON, "rotation.epochs=0", "supervised.epochs=0"]))
    with without_batchnorm(kept):
        training = training_of(settings, Storage(folder / "stages", folder))
        step_on = loop.step_on

        def asked(*given: Any) -> dict[str, Tensor]:
            losses = step_on(*given)
            if len(kept["discovery"]) + 1 == at and ranks.current().first:  # one rank is asked, and all stop
                os.kill(os.getpid(), signal.SIGINT)
            return losses

        loop.step_on = asked
        try:
            stages.pretrain(training)
            stages.discovery_stage(training)
        except KeyboardInterrupt:
            kept["stopped"] = []
        finally:
            loop.step_on = step_on
    return kept


def cached(folder: Path) -> list[Any]:
    """Losses of a discovery from a trunk cache of two views."""
    kept: dict[str, list[dict[str, float]]] = {}
    overrides = ["augment.first_view=random", "machine.cache_views=2", "rotation.epochs=0", "discovery.epochs=1"]
    with without_batchnorm(kept):
        training = training_of(
            recipe.load("digits", recipe.parse_set([*COMMON, *overrides])), Storage(folder / "stages", folder)
        )
        stages.pretrain(training)
        assert training.cache is not None
        stages.discovery_stage(training)
    return kept["discovery"]


def own_data(folder: Path) -> dict[str, Any]:
    """The estimator and `unveil discover` on digits as vectors; the estimator has no seed of its own."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    given = np.where(y < 5, y, -1)
    estimator = NovelClassDiscovery(n_novel=5, method="ncl-hng", rehearsals=0, steps=10, random_state=None).fit(
        X, given
    )
    if ranks.current().first:
        np.savez(folder / "known.npz", X=X[y < 5], y=y[y < 5])
        np.savez(folder / "new.npz", X=X[y >= 5])
    ranks.current().wait()
    run_own_data(
        folder / "known.npz",
        folder / "new.npz",
        out=folder / "own",
        stages=folder / "stages",
        recipe_name="trained-vectors",
        changes={"data.n_novel": 5, "rehearsals": 1, "discovery.steps": 10},
    )
    return {"labels": estimator.labels_.tolist(), "n_novel": estimator.n_novel_}


def main(folder: Path) -> dict[str, Any]:
    together = ranks.join()
    result: dict[str, Any] = {"rank": together.rank, "count": together.count}
    result["ncl-hng"] = trained("ncl-hng", "discovery.batch=61")  # no multiple of the number of ranks
    for method in METHODS:
        fewer = ["rotation.epochs=0", "supervised.epochs=0", "discovery.epochs=1"]
        result[method] = trained(method, *fewer, *(["method.similarity.epochs=1"] if method in ("mcl", "kcl") else []))
    result["one rotation"] = trained("ncl", "rotation.rotations=one", "rotation.epochs=1", "discovery.epochs=1")
    result["two views"] = trained(
        "ncl", "rotation.rotations=one", "rotation.views_weight=1", "rotation.epochs=1", "discovery.epochs=1"
    )
    result["cached"] = cached(folder / "cached")
    result["interrupted"] = interrupted(folder / "interrupted", at=ALONE)
    result["whole"] = interrupted(folder / "whole", at=None)
    return result


def elastic_settings() -> Settings:
    settings = recipe.load("digits", recipe.parse_set(ELASTIC))
    return replace(settings, discovery=replace(settings.discovery, evaluate_every=1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    where = Path(sys.argv[1])
    answer = main(where)
    quiet = Console(quiet=True)
    run_recipe(elastic_settings(), out=where / "undisturbed", stages=where / "elastic", console=quiet)
    answer["own"] = own_data(where)
    (where / f"rank{answer['rank']}.json").write_text(json.dumps(answer))
    ranks.leave()
