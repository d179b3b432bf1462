"""One fit on vectors: labelled rows of known classes, unlabelled rows, a way to cluster them.

The estimator fits once on all rows, and its rehearsals fit many times on known classes alone, through the same door.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from unveil import recipe
from unveil.data.task import UNLABELLED, Task
from unveil.discovery.clusters import Clusters, assigned, kmeans, semi_kmeans, sums_by
from unveil.discovery.known_neighbors import recognise
from unveil.methods.catalog import method_class
from unveil.models.model import Model
from unveil.settings import Settings
from unveil.training.evaluation import features
from unveil.training.stages import Pipeline

Labels = NDArray[np.int64]
STEPS = 1000
"""Training steps of a fit, whatever the number of rows."""
SUPERVISED_STEPS = 200


@dataclass(frozen=True)
class Way:
    """How the unlabelled rows are clustered: k-means, or a method with its settings."""

    name: str
    method: str | None = None
    """None: k-means is left as it is."""
    overrides: tuple[tuple[str, float | str], ...] = ()
    """Settings that differ from the recipe for vectors."""
    words: str = ""
    """For people."""


KMEANS = Way("k-means", words="k-means on the vectors")
"""Where unlabelled rows may be of known classes, of those that lie among none."""


def ways(method: str) -> tuple[Way, ...]:
    """k-means, and the method with its usual settings and with its variations."""
    kind = method_class(method)
    if not kind.trains:
        return (KMEANS,)
    others = []
    for one in kind.variations:
        overrides = tuple((f"method.{key}", value) for key, value in one.settings.items())
        others.append(Way(f"{method}, {one.name}", method, overrides, f"training by {method} {one.description}"))
    return (KMEANS, Way(method, method, words=f"training by {method}"), *others)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Reduced vectors, (n, d) or (n, views, d), and the known class of each row, or -1."""

    x: NDArray[np.float32]
    labels: Labels
    n_novel: int
    inside: bool = False
    """Unlabelled rows may be of known classes too. Then the first clusters stand for these."""

    @property
    def n_clusters(self) -> int:
        """Clusters of the unlabelled rows."""
        return self.n_novel + (self.n_known if self.inside else 0)

    @property
    def clean(self) -> NDArray[np.float32]:
        return self.x if self.x.ndim == 2 else self.x[:, 0]

    @property
    def unlabelled(self) -> Labels:
        return np.flatnonzero(self.labels == UNLABELLED)

    @property
    def labelled(self) -> Labels:
        return np.flatnonzero(self.labels != UNLABELLED)

    @property
    def n_known(self) -> int:
        return int(self.labels.max(initial=-1)) + 1


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What training leaves: the network, how its inputs are scaled, and its clusters of the unlabelled rows."""

    model: Model
    mean: NDArray[np.float32]
    scale: float
    clusters: Labels
    confidence: NDArray[np.float32]
    """Largest probability of the novel head; the softmax is surer than it should be."""
    warnings: tuple[str, ...]
    settings: Settings


def start_clusters(problem: Problem, seed: int) -> Clusters:
    """k-means of the unlabelled rows.

    Where these may be of known classes: of those that lie among none, beside a centre for each known class. Where there
    are too few rows to tell, k-means with the labelled rows held in place.
    """
    x, rows = problem.clean, problem.unlabelled
    if not problem.inside:
        return kmeans(x[rows], problem.n_clusters, seed)
    old, y = x[problem.labelled], problem.labels[problem.labelled]
    near = recognise(old, y, x[rows], seed)
    if near is None or (~near.known).sum() <= problem.n_novel:
        return semi_kmeans(x[rows], old, y, problem.n_clusters, seed)
    drawn = x[rows[near.unlabelled]]
    known = np.concatenate([old, drawn[near.known]]), np.concatenate([y, near.label[near.known]])
    means = sums_by(*known, problem.n_known) / np.bincount(known[1], minlength=problem.n_known)[:, None]
    novel = kmeans(drawn[~near.known], problem.n_novel, seed)
    return assigned(x[rows], np.concatenate([means.astype(np.float32), novel.centers]))


def train(
    problem: Problem,
    way: Way,
    start: Clusters,
    *,
    seed: int,
    steps: int,
    folder: Path,
    console: Console,
    device: str,
    stages: Path | None = None,
) -> Trained:
    """Train the tail and both heads on a problem, with the novel head started from the clusters `start`.

    With the way k-means the known classes alone are trained: the clusters stay where they are. `stages` is where the
    supervised stage is kept, for ways that share it.
    """
    settings = settings_for(problem, way, seed=seed, steps=steps, device=device)
    known = problem.n_known
    task = Task(
        name="vectors",
        kind="vectors",
        items=problem.x,
        ids=tuple(map(str, range(len(problem.x)))),
        labels=problem.labels,
        known=tuple(map(str, range(known))),
        n_novel=max(1, problem.n_clusters),
        test_items=None,
        test_ids=(),
    )
    pipeline = Pipeline(settings, task, None, stages or folder / "stages", console, start=start.labels)
    pipeline.supervised()
    pipeline.model.freeze_trunk()
    clusters, confidence = start.labels, np.ones(len(start.labels), dtype=np.float32)
    if way.method is not None:
        pipeline.discovery(folder)
        z = features(pipeline.model, pipeline.views, problem.unlabelled)
        with torch.no_grad():
            best = pipeline.model.novel_head(z).softmax(dim=1).max(dim=1)
        confidence, clusters = best.values.cpu().numpy(), best.indices.cpu().numpy()
    views: Any = pipeline.views
    return Trained(
        model=pipeline.model.eval(),
        mean=views.mean.cpu().numpy(),
        scale=float(views.scale),
        clusters=clusters,
        confidence=confidence,
        warnings=tuple(pipeline.warned),
        settings=settings,
    )


def recipe_of(way: Way, *changes: str) -> Settings:
    """The recipe for vectors, with what the way changes."""
    chosen = [f"{key}={value}" for key, value in way.overrides]
    if way.method is not None:
        chosen.append(f"discovery.method={way.method}")
    return recipe.load("vectors", [*chosen, *changes])


def settings_for(problem: Problem, way: Way, *, seed: int, steps: int, device: str) -> Settings:
    """The recipe of a way, with batches and passes that fit the data."""
    base = recipe_of(way, f"seed={seed}", f"machine.device={device}")
    n_l, n_u = len(problem.labelled), len(problem.unlabelled)
    each, rest = min(base.discovery.labelled_per_batch or 128, n_l), min(128, max(n_u, 1))
    in_a_pass = -(-n_l // max(1, each))
    epochs = base.discovery.epochs
    supervised_pass = -(-n_l // base.supervised.batch)
    return replace(
        base,
        supervised=replace(base.supervised, passes=max(1, round(SUPERVISED_STEPS / max(1, supervised_pass)))),
        discovery=replace(
            base.discovery,
            batch=each + rest,
            labelled_per_batch=each,
            passes=max(1, round(steps / epochs / max(1, in_a_pass))),
        ),
    )
