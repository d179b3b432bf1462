"""A task with its vectors scaled: which rows are trained on, and in which vectors."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console

from unveil.data.items import Items, Rows
from unveil.data.task import Task
from unveil.discovery.fit import clean_vectors
from unveil.discovery.vectors import choose_reduction, training_rows
from unveil.encoders.conditioning import conditioning
from unveil.encoders.metric import SCALINGS, Metric, choose_metric
from unveil.encoders.preparation import Preparation
from unveil.errors import UnveilError
from unveil.numerics import Matrix, directions
from unveil.settings import Settings

Shape = Callable[[Task], Task]


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """The rows that are trained on, and how their vectors were made."""

    task: Task
    """With scaled vectors; of images the items as they are."""
    rows: Rows
    """Where they stand among all rows."""
    preparation: Preparation
    for_counting: Matrix | None = None
    """Vectors in which classes are counted, where they are not those of the task: without the whitening by known
    classes, which makes these tighter than novel ones and would count too many."""
    unscaled: Matrix | None = None
    """The vectors before scaling, where that was chosen here."""
    notes: tuple[str, ...] = ()
    """Sentences about numbers that were unusual."""
    unshaped: Task | None = None
    shape: Shape | None = None
    """Where known classes shaped the vectors: the task before that, and the function that shapes it. A rehearsal shapes
    its vectors by the classes that it does not hide."""


def scale(task: Task, settings: Settings, preparation: Preparation, console: Console) -> Scaled:
    """Scale the vectors of a task as `data.scaling` says; at most 60,000 rows where nobody has said how to."""
    scaling, given, seed = settings.data.scaling, settings.data.vector_scaling, settings.seed
    if scaling not in ("auto", "metric") or not task.items.are_vectors:
        if given != "auto":
            raise UnveilError(f"the scaling {given} is for vectors by the default recipes: leave it out")
        return Scaled(task=preparation.reduced(task), rows=np.arange(len(task)), preparation=preparation)
    rows = training_rows(task.labels, seed)
    smaller = task.take(rows)
    needed, notes = conditioning(clean_vectors(smaller), task.columns)
    for note in notes:
        console.print(f"warning: {note}", style="yellow", soft_wrap=True)
    if needed is not None:
        smaller = replace(smaller, items=Items.of(needed(smaller.items.array)))
    elif smaller.items.array.dtype != np.float32:
        smaller = replace(smaller, items=Items.of(smaller.items.array.astype(np.float32)))
    x = clean_vectors(smaller)
    if scaling == "auto":
        if given == "auto":
            reduction, reason = choose_reduction(x, smaller.labels, seed)
        else:
            reduction, reason = Metric(given).base(x), Metric(given).describe()
        console.print(reason, soft_wrap=True)
        reduced = replace(preparation, reduction=reduction).reduced(smaller)
        preparation = replace(preparation, reduction=replace(reduction, first=needed))
        return Scaled(task=reduced, rows=rows, preparation=preparation, notes=tuple(notes))
    metric = choose_metric(x, smaller.labels, SCALINGS if given == "auto" else (given,))
    console.print(metric.describe(), soft_wrap=True)
    base = metric.base(x)
    unshaped = replace(preparation, reduction=base).reduced(smaller)
    not_whitened = replace(metric, shrinkage=None)
    shaped = base.then(metric.shaping(clean_vectors(unshaped), smaller.labels))
    return Scaled(
        task=replace(preparation, reduction=shaped).reduced(smaller),
        rows=rows,
        preparation=replace(preparation, reduction=replace(shaped, first=needed)),
        notes=tuple(notes),
        for_counting=directions(clean_vectors(not_whitened.shaped(unshaped))),
        unscaled=x,
        unshaped=unshaped,
        shape=metric.shaped,
    )
