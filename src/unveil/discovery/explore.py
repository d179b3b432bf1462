"""Questions about own data without a discovery: how many classes, and how far could one trust it?"""

import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console

from unveil.data.known_new import read_own
from unveil.data.labels import read_labels
from unveil.discovery.count import Estimate, estimate_classes
from unveil.discovery.discover import REHEARSAL_STEPS
from unveil.discovery.fitting import Problem, ways
from unveil.discovery.own_data import vectors_of
from unveil.discovery.preparation import choose_reduction, training_rows
from unveil.discovery.rehearsal import LEAST_CLASSES, Trust, rehearse
from unveil.errors import UnveilError


def count_classes(
    known: Path,
    new: Path,
    *,
    encoder: str,
    seed: int,
    device: str,
    may_contain_known: bool = False,
    store: Path | None = None,
) -> Estimate:
    """The number of novel classes in NEW, by all criteria."""
    x, y = _reduced(known, new, encoder, seed, device, store)
    return estimate_classes(x[y >= 0], y[y >= 0], x[y < 0], seed=seed, compare=True, inside=may_contain_known)


def rehearse_known(
    known: Path,
    *,
    novel: int | None,
    encoder: str,
    method: str,
    rehearsals: int,
    seed: int,
    device: str,
    store: Path | None = None,
) -> Trust:
    """Hide classes of KNOWN and find them again."""
    x, y = _reduced(known, None, encoder, seed, device, store)
    classes = int(y.max()) + 1
    if classes < LEAST_CLASSES:
        raise UnveilError(f"{classes} known classes: to hide some and keep some takes {LEAST_CLASSES} or more")
    problem = Problem(x=x, labels=y, n_novel=novel or classes)
    with tempfile.TemporaryDirectory() as temporary:
        return rehearse(
            problem,
            ways(method),
            tries=rehearsals,
            seed=seed,
            steps=REHEARSAL_STEPS,
            folder=Path(temporary),
            console=Console(quiet=True),
            device=device,
        )


def draw_criteria(estimate: Estimate, path: Path) -> None:
    """A panel for each criterion, with the number it prefers."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnveilError(f"--plot needs the package matplotlib ({error}): pip install matplotlib") from None
    figure = Figure(figsize=(4.2 * len(estimate.curves), 3.2), layout="constrained")
    panels = figure.subplots(1, len(estimate.curves), squeeze=False)[0]
    for axes, curve in zip(panels, estimate.curves, strict=True):
        axes.plot(curve.numbers, curve.values, color="#2a6f97", marker=".", linewidth=1.5)
        if curve.level is not None:
            axes.axhline(curve.level, color="#888888", linestyle=":", label="of known classes")
            axes.legend(frameon=False)
        axes.axvline(curve.best, color="#c1121f", linewidth=1)
        axes.set(xlabel="novel classes", ylabel=curve.name, title=f"{curve.name}: {curve.best}")
        axes.spines[["top", "right"]].set_visible(False)
    if len(estimate.curves):
        panels[0].axvspan(estimate.low, estimate.high, color="#c1121f", alpha=0.12)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UnveilError(f"{path} could not be written ({error}): give a .png, .svg or .pdf file") from None


def _reduced(
    known: Path, new: Path | None, encoder: str, seed: int, device: str, store: Path | None
) -> tuple[np.ndarray, np.ndarray]:
    """Reduced vectors and labels, as discovery would see them."""
    own = read_own(known, new)
    vectors, _, kept = vectors_of(own, encoder, store, device, seed, Console(stderr=True, markup=False))
    _, labels = read_labels(np.array(own.labels, dtype=object)[kept], int(kept.sum()))
    rows = training_rows(labels, seed)
    reduction, _ = choose_reduction(vectors[rows], labels[rows], seed)
    return reduction(vectors[rows]), labels[rows]
