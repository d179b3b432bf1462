"""Estimates on own data without a discovery: the number of novel classes, and the accuracy to expect."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from unveil.clustering.neighbor_consensus import NeighborConsensusSettings, rehearse_known_classes
from unveil.counting.estimate import Estimate
from unveil.data.known_new import read_task
from unveil.data.task import Task
from unveil.discovery.candidates import candidates
from unveil.discovery.discover import few_threads
from unveil.discovery.fit import clean_vectors
from unveil.discovery.forecast import Forecast
from unveil.discovery.recognition import estimate_novel, recognized_rows
from unveil.discovery.rehearsal import LEAST_CLASSES, of_evidence, rehearse
from unveil.discovery.scaled import scale
from unveil.encoders.encode import encode
from unveil.encoders.preparation import Preparation
from unveil.encoders.registry import GRADIENTS
from unveil.errors import UnveilError
from unveil.own.options import own_settings
from unveil.own.parameters import FileOptions, changes
from unveil.own.sampled_task import read_task_or_sample
from unveil.settings import Settings


def count_classes(known: Path, new: Path | None, options: FileOptions, *, known_in_unlabeled: bool = False) -> Estimate:
    """The number of novel classes in NEW, by all criteria."""
    encoded, settings = _encoded(read_task_or_sample(known, new, options.named_columns()), options, {})
    with few_threads(encoded, settings):
        scaled = scale(encoded, settings, Preparation(), Console(quiet=True))
        task = replace(scaled.task, known_in_unlabeled=known_in_unlabeled)
        points = clean_vectors(task) if scaled.for_counting is None else scaled.for_counting
        recognized = None
        if known_in_unlabeled:
            recognized = recognized_rows(task, points, settings.seed, scaled.unshaped, scaled.shape)
        return estimate_novel(task, points, recognized)


def rehearse_known(
    known: Path, options: FileOptions, chosen: Mapping[str, Any], *, n_novel: int | None = None
) -> Forecast:
    """Hide classes of KNOWN and discover them again, with changed settings; rows without a label are not used."""
    task = read_task(known, None, options.named_columns())
    encoded, settings = _encoded(task.take(task.labeled), options, chosen)
    classes = len(encoded.known)
    if classes < LEAST_CLASSES:
        raise UnveilError(f"there are {classes} known classes: a rehearsal needs {LEAST_CLASSES} or more")
    with few_threads(encoded, settings):
        scaled = scale(encoded, settings, Preparation(), Console(quiet=True))
        smaller = replace(scaled.task, n_novel=n_novel or classes)
        if isinstance(settings.method, NeighborConsensusSettings) and scaled.unscaled is not None:
            evidence = rehearse_known_classes(
                scaled.unscaled,
                smaller.labels,
                n_novel or classes,
                settings.method,
                settings.seed,
                settings.rehearsals,
            )
            return of_evidence(candidates(settings)[-1], evidence, smaller)
        return rehearse(
            smaller,
            settings,
            candidates(settings),
            storage=None,
            console=Console(quiet=True),
            unshaped=scaled.unshaped,
            shape=scaled.shape,
        )


def _encoded(task: Task, options: FileOptions, more: Mapping[str, Any]) -> tuple[Task, Settings]:
    """The task with its items as vectors, as a discovery would see them."""
    console = Console(stderr=True, markup=False)
    chosen = {**changes(vars(options)), **more}
    settings = own_settings(task.items, None, chosen, encoder=options.encoder)
    if settings.data.encoder is None and task.items.are_images:  # an encoder would have to be trained first
        settings = own_settings(task.items, None, chosen, encoder=GRADIENTS)
    return encode(task, settings, options.stages(), console).task, settings


def plot_criteria(estimate: Estimate, path: Path) -> None:
    """A panel for each criterion, with the number it prefers."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnveilError(f"--plot needs the package matplotlib ({error}): pip install matplotlib") from None
    figure = Figure(figsize=(4.2 * len(estimate.curves), 3.2), layout="constrained")
    panels: Any = figure.subplots(1, len(estimate.curves), squeeze=False)[0]
    for axes, curve in zip(panels, estimate.curves, strict=True):
        axes.plot(curve.numbers, curve.values, color="#2a6f97", marker=".", linewidth=1.5)
        axes.axvline(curve.best, color="#c1121f", linewidth=1)
        axes.set(xlabel="novel classes", ylabel=curve.name, title=f"{curve.name}: {curve.best}")
        axes.spines[["top", "right"]].set_visible(False)
    if len(estimate.curves):
        panels[0].axvspan(estimate.low, estimate.high, color="#c1121f", alpha=0.12)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UnveilError(f"{path} could not be written ({error}): give a .png, .svg or .pdf file") from None
