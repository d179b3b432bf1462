"""Batches of an epoch. Their order and their views are functions of (seed, epoch, step)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil import ranks, rng
from unveil.data.task import UNLABELED
from unveil.data.views import Draw, Views

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """One batch. Labeled rows come first, so that both kinds are slices and no step waits for a mask."""

    views: tuple[Tensor, ...]
    y: Tensor  # (labeled,): known classes of the first rows
    epoch: int
    step: int
    rows: Tensor | None = None  # (B,): the row of each item in the data set
    part: slice = field(default_factory=lambda: slice(None))
    """Of processes that train together each has the views of its own part of the batch."""

    @property
    def labeled(self) -> int:
        return len(self.y)

    @property
    def size(self) -> int:
        """B: the rows of all parts together."""
        return len(self.views[0] if self.rows is None else self.rows)

    def whole(self, outputs: Tensor, copies: int = 1) -> Tensor:
        """Outputs (copies · B, …) for the whole batch, of which `outputs` are those for the views of this process.

        `copies`: how many outputs there are of each row, as blocks one below the other.
        """
        together = ranks.current()
        if together.count == 1:
            return outputs
        rows = outputs.view(copies, -1, *outputs.shape[1:]).transpose(0, 1)  # (b, copies, …)
        return together.gather_with_gradient(rows, self.size).transpose(0, 1).flatten(0, 1)


@dataclass(frozen=True, kw_only=True)
class Loader:
    """Divides `rows` of the views into batches.

    With `labeled_per_batch` each batch has that many labeled rows and is filled up with unlabeled ones; an epoch is
    one pass over the labeled rows, and unlabeled rows are repeated as often as needed. Otherwise both kinds are
    shuffled together.
    """

    views: Views
    labels: NDArray[np.int64]
    rows: Rows
    batch: int
    seed: int
    device: torch.device
    n_views: int = 2
    labeled_per_batch: int | None = None
    unlabeled_only: bool = False
    """Leave out the labeled rows, for methods that do not use them; order and number of batches stay the same."""
    classes_per_batch: int | None = None
    """Known classes in each batch, with equally many items of each; None: batches are not balanced."""
    passes: int = 1  # how often an epoch goes through the rows
    augment_single_view: bool = True
    """Augment the view of single-view stages, even where the first of two views is the clean item."""

    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self._batches(0))

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from step `skip` on."""
        order, together = self._batches(epoch), ranks.current()
        numbered = list(enumerate(order))[skip:]
        draws = [Draw(rows, self._seeds(epoch, step), together.part(len(rows))) for step, rows in numbered]
        for step, (draw, views) in enumerate(zip(draws, self.views.stream(draws), strict=True), start=skip):
            y = self.labels[draw.rows]
            known = torch.from_numpy(y[y != UNLABELED]).to(self.device, non_blocking=True)
            rows = torch.from_numpy(draw.rows).to(self.device, non_blocking=True)
            yield Batch(views=views, y=known, epoch=epoch, step=step, rows=rows, part=draw.part)

    def _seeds(self, epoch: int, step: int) -> tuple[int | None, ...]:
        seeds: list[int | None] = [rng.number(self.seed, f"view{i}", epoch, step) for i in range(self.n_views)]
        if self.views.first_view_clean if self.n_views > 1 else not self.augment_single_view:
            seeds[0] = None
        return tuple(seeds)

    def _batches(self, epoch: int) -> list[Rows]:
        generator = rng.numpy(self.seed, "order", epoch)
        order = [rows for _ in range(self.passes) for rows in self._order(generator)]
        if self.unlabeled_only:  # as many batches as before, of at least two rows
            rows = np.concatenate(order)
            rows = rows[self.labels[rows] == UNLABELED]
            order = np.array_split(rows, max(1, min(len(order), len(rows) // 2)))
        return order

    def _order(self, generator: np.random.Generator) -> list[Rows]:
        if self.classes_per_batch is not None:
            return self._balanced(generator, self.classes_per_batch)
        if self.labeled_per_batch is None:
            mixed = generator.permutation(self.rows)
            batches = [mixed[i : i + self.batch] for i in range(0, len(mixed), self.batch)]
            return [rows[np.argsort(self.labels[rows] == UNLABELED, kind="stable")] for rows in batches]
        labeled = generator.permutation(self.rows[self.labels[self.rows] != UNLABELED])
        unlabeled = self.rows[self.labels[self.rows] == UNLABELED]
        n_l, n_u = self.labeled_per_batch, self.batch - self.labeled_per_batch
        n_batches = -(-len(labeled) // n_l)
        passes = -(-n_batches * n_u // max(len(unlabeled), 1))
        unlabeled = np.concatenate([generator.permutation(unlabeled) for _ in range(passes)] or [unlabeled])
        parts = [(labeled[i * n_l : (i + 1) * n_l], unlabeled[i * n_u : (i + 1) * n_u]) for i in range(n_batches)]
        return [np.concatenate(part) for part in parts]

    def _balanced(self, generator: np.random.Generator, count: int) -> list[Rows]:
        """As many batches as the rows would fill; a class with few items is drawn from again and again."""
        labels = self.labels[self.rows]
        classes = np.unique(labels)
        count = min(count, len(classes))
        members = {label: self.rows[labels == label] for label in classes}
        batches = []
        for _ in range(-(-len(self.rows) // self.batch)):
            chosen = generator.choice(classes, count, replace=False)
            drawn = [generator.choice(members[label], max(1, self.batch // count)) for label in chosen]
            batches.append(np.concatenate(drawn))
        return batches


def clean_draws(rows: Rows, size: int) -> list[Draw]:
    """Draws that go through `rows` once, without augmentation."""
    return [Draw(rows[i : i + size], (None,)) for i in range(0, len(rows), size)]
