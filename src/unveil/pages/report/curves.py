"""Metrics over epochs: a small SVG curve for each, since their scales differ."""

import math
from collections.abc import Sequence
from typing import Any

from unveil.pages.report.text import escaped
from unveil.pages.words import METRICS

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 280, 120, 46, 10, 8, 20
NOT_SHOWN = ("epoch", "step", "seconds", "lr", "stage")
DIAGNOSTICS = ("clusters_used", "confidence", "mean_cosine", "pair_density", "pair_precision", "neighbor_purity")

Points = list[tuple[float, float]]


def series(history: Sequence[dict[str, Any]]) -> dict[str, Points]:
    """(epoch, value) of every metric that is a number; diagnostics last."""
    values_by_key: dict[str, dict[float, float]] = {}
    for index, line in enumerate(history):
        for key, value in line.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if key not in NOT_SHOWN and is_number:
                # an interrupted run may have an epoch twice: the last line counts
                values_by_key.setdefault(key, {})[float(line.get("epoch", index))] = float(value)
    losses = [key for key in values_by_key if key not in DIAGNOSTICS]
    names = losses + [key for key in DIAGNOSTICS if key in values_by_key]
    return {key: sorted(values_by_key[key].items()) for key in names}


def number(value: float) -> str:
    """A number as a short text for an axis."""
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.3g}"
    return f"{value:.1e}".replace("e+0", "e").replace("e-0", "e-")


def curve(points: Points, label: str) -> str:
    """One quantity of two or more epochs as a line, its last value as a dot, its range and epochs as numbers."""
    (first, last), values = (points[0][0], points[-1][0]), [y for _, y in points]
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    bottom, top = low - 0.08 * span, high + 0.08 * span

    def to_pixels(x: float, y: float) -> tuple[float, float]:
        across, up = (x - first) / (last - first), (y - bottom) / (top - bottom)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    pixels = [to_pixels(x, y) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
    end_x, end_y = pixels[-1]
    ticks = "".join(
        f'<text x="{LEFT - 6}" y="{to_pixels(first, value)[1] + 4:.1f}" text-anchor="end">{number(value)}</text>'
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        for value, y in ((value, to_pixels(first, value)[1]) for value in dict.fromkeys((high, low)))
    )
    description = f"{label}: {number(values[0])} at epoch {first:g}, {number(values[-1])} at epoch {last:g}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escaped(description)}">{ticks}'
        f'<text x="{LEFT}" y="{HEIGHT - 4}">{first:g}</text>'
        f'<text x="{end_x:.1f}" y="{HEIGHT - 4}" text-anchor="end">{last:g}</text>'
        f'<polyline points="{line}"/><circle cx="{end_x:.1f}" cy="{end_y:.1f}" r="3"/></svg>'
    )


def section(history: Sequence[dict[str, Any]]) -> str:
    """All curves; a metric that was measured once is a number. Empty where nothing was trained."""
    points_by_key = series(history)
    if not points_by_key:
        return ""
    figures, once = [], []
    for key, points in points_by_key.items():
        title, meaning = METRICS.get(key, (key.replace("_", " "), ""))
        note, value = f"<small>{escaped(meaning)}</small>", number(points[-1][1])
        if len(points) == 1:
            once.append(f"<div><dt>{escaped(title)}{note}</dt><dd>{value}</dd></div>")
            continue
        caption = f"<figcaption><b>{escaped(title)}</b> <span>{value}</span>{note}</figcaption>"
        figures.append(f"<figure>{caption}{curve(points, title)}</figure>")
    lines = '<p class="note">By epoch; the number is the last value.</p>' if figures else ""
    lines += f'<div class="curves">{"".join(figures)}</div>' if figures else ""
    last = f'<h3>At the end</h3><dl class="once">{"".join(once)}</dl>' if once else ""
    return lines + last
