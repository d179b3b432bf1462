"""A run in a notebook: the report as a frame, and plots in the colors of the report. matplotlib is imported late."""

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.errors import UnveilError
from unveil.pages import colors
from unveil.pages.report.page import build
from unveil.review.edited_scores import reviewed
from unveil.runs.map import can_use_tsne, layout_of, quick_layout
from unveil.runs.reader import Run


@dataclass(frozen=True, repr=False)
class Page:
    """A page that notebooks display in a frame of its own; `html` is the whole file."""

    html: str
    height: int

    def _repr_html_(self) -> str:
        frame = f'width="100%" height="{self.height}" sandbox="allow-scripts" style="border:0;border-radius:8px"'
        return f'<iframe title="novel classes" srcdoc="{html.escape(self.html, quote=True)}" {frame}></iframe>'

    def __repr__(self) -> str:
        return f"<report, {len(self.html) / 1e6:.1f} MB of HTML: shown in a notebook; `.html` is the file>"


def page(run: Run, height: int) -> Page:
    """The report of a run with its review; with the map where openTSNE is installed."""
    corrected, decided = reviewed(run)
    return Page(build(corrected, with_map=can_use_tsne() and run.has_features, decided=decided), height)


def plot_map(run: Run, ax: Any = None) -> Any:
    """Each item at its place on the map: known classes gray, novel classes colored and named."""
    ax = _axes(ax)
    run, _ = reviewed(run)
    xy = (layout_of(run) if can_use_tsne() else quick_layout(run)).xy
    known = (run.labels >= 0) & (run.labels < run.n_known)
    ax.scatter(*xy[known].T, s=6, color=colors.KNOWN["light"], linewidths=0, label="known classes")
    for cluster in run.novel:
        points = xy[run.labels == cluster]
        if len(points):
            ax.scatter(*points.T, s=8, color=_rgb(cluster, run), linewidths=0, label=run.classes[cluster])
            ax.annotate(run.classes[cluster], np.median(points, axis=0), ha="center", va="center", weight="bold")
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.invert_yaxis()  # as on the screen
    return ax


def plot_sizes(run: Run, ax: Any = None) -> Any:
    """The novel classes by size, the largest on top."""
    ax = _axes(ax)
    run, _ = reviewed(run)
    sizes = {cluster: int((run.labels == cluster).sum()) for cluster in run.novel}
    order = sorted(sizes, key=lambda cluster: sizes[cluster])
    names = [run.classes[cluster] for cluster in order]
    ax.barh(names, [sizes[cluster] for cluster in order], color=[_rgb(cluster, run) for cluster in order])
    ax.set(xlabel="items")
    return ax


def plot_confidence(run: Run, ax: Any = None) -> Any:
    """A histogram of the confidence of new items."""
    ax = _axes(ax)
    run, _ = reviewed(run)
    ax.hist(run.confidence[run.new & (run.labels >= 0)], bins=np.linspace(0, 1, 21).tolist(), color="#1f5fbf")
    ax.set(xlabel="confidence", ylabel="new items", xlim=(0, 1))
    return ax


def plot_classes_estimate(estimate: dict[str, Any], ax: Any = None) -> Any:
    """The criteria by number of classes, each from 0 to 1, with the estimate and its interval."""
    ax = _axes(ax)
    for curve in estimate.get("curves") or ():
        values = np.asarray(curve["values"], dtype=float)
        span = float(np.ptp(values)) or 1.0
        ax.plot(curve["numbers"], (values - values.min()) / span, label=str(curve["name"]))
    ax.axvspan(estimate["low"], estimate["high"], color="#dfe9f8", zorder=0)
    ax.axvline(estimate["number"], color="#1f5fbf", label=f"estimate: {estimate['number']}")
    ax.set(xlabel="novel classes", yticks=[])
    ax.legend()
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise UnveilError(f"plots need matplotlib ({error}): pip install matplotlib") from None
    return plt.subplots()[1]


def _rgb(cluster: int, run: Run) -> tuple[float, float, float]:
    return colors.rgb(colors.LIGHTNESS["light"], colors.CHROMA["light"], colors.hue(cluster - run.n_known))
