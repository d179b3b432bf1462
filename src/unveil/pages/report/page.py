"""`unveil report RUN`: all parts put together into one file that needs nothing else."""

import base64
import hashlib
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from unveil import files
from unveil.pages.report import clusters as described
from unveil.pages.report import confusion, curves, gallery, parts
from unveil.pages.report.sprites import Sheet, draw
from unveil.pages.report.text import as_json, cleaned, count, escaped, short
from unveil.pages.report.truth import compare
from unveil.runs.map import places
from unveil.runs.reader import Look, load

LARGEST = 4_900_000
"""Bytes of the file; pictures take what the rest leaves."""
GALLERY_SHARE = 0.45
GRID = 4095
"""Places on the map are whole numbers up to this: finer than any screen."""


def write(run: Path, out: Path | None = None, *, with_map: bool = True) -> Path:
    """Make the report of a finished discovery; returns where it is."""
    target = out or run / "report.html"
    files.write(target, build(load(run), with_map=with_map))
    return target


def build(look: Look, *, with_map: bool = True) -> str:
    """The report as HTML."""
    clusters, truth = described.describe(look), compare(look)
    shown = [row for one in clusters for row in (*one.typical, *one.doubtful, *one.near)]
    shown += [row for row, _, _ in truth.misplaced] if truth else []
    near = Sheet("g", tuple(dict.fromkeys(shown)))
    rows, xy = np.array([], dtype=np.int64), np.zeros((0, 2), dtype=np.float32)
    if with_map:
        found = places(look)
        rows, xy = found.rows, found.xy[found.rows]
    far = Sheet("m", tuple(rows.tolist()))
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    title = short(look.name, 80)
    values = {
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'",
        "title": escaped(title),
        "made": _made(look.record),
        "css": _part("page.css"),
        "numbers": parts.numbers(look),
        "words": parts.words(look),
        "gallery": gallery.section(look, clusters, near),
        "sizes": parts.sizes(look, clusters),
        "map": _map(len(rows), len(look.ids)) if with_map else '<p class="empty">The map was left out.</p>',
        "curves": curves.section(look.history),
        "truth": confusion.section(look, truth, near),
        "settings": parts.settings(look),
        "data": as_json(_points(look, far, xy)),
        "script": script,
    }
    page = Template(_part("page.html"))
    room = LARGEST - len(page.substitute(values, sprites="", missing="").encode())
    rules, missing = _sprites(look, near, far, room)
    return page.substitute(values, sprites=rules, missing=missing)


def _sprites(look: Look, near: Sheet, far: Sheet, room: int) -> tuple[str, str]:
    """CSS rules of both sheets, and a word about pictures that are not where they were."""
    if not look.has_pictures:
        return "", ""
    first, gone = draw(look, near, round(GALLERY_SHARE * room)) if near.rows else ("", 0)
    second, gone_far = draw(look, far, room - len(first)) if far.rows else ("", 0)
    if not max(gone, gone_far):
        return first + second, ""
    told = f"{count(max(gone, gone_far), 'picture')} could not be read any more: a grey field stands in their place."
    return first + second, f'<p class="note">{told}</p>'


def _points(look: Look, sheet: Sheet, xy: Any) -> dict[str, Any]:
    """What the map needs to know, for the script."""
    low, span = xy.min(axis=0, initial=np.inf), max(float(np.ptp(xy, axis=0).max(initial=0)), 1e-9) if len(xy) else 1.0
    points = []
    for row, place in zip(sheet.rows, xy, strict=True):
        x, y = np.rint((place - low) / span * GRID).astype(int).tolist()
        sure = round(100 * float(look.confidence[row]))
        points.append([x, y, int(look.labels[row]), sure, int(look.new[row]), cleaned(short(look.ids[row], 40))])
    return {
        "points": points,
        "classes": [cleaned(short(one, 40)) for one in look.classes],
        "hues": [int(gallery.hue(look, index)) for index in range(look.n_known, len(look.classes))],
        "known": look.n_known,
        "columns": sheet.columns,
        "pictures": look.has_pictures,
    }


def _map(shown: int, items: int) -> str:
    some = f"{shown:,} of {items:,} items" if shown < items else f"All {count(items, 'item')}"
    return Template(_part("map.html")).substitute(some=some)


def _made(record: dict[str, Any]) -> str:
    told = [f"finished {escaped(str(record['finished'])[:16].replace('T', ' '))}"] if record.get("finished") else []
    if record.get("seconds") is not None:
        told.append(f"{record['seconds']:,.0f} seconds")
    if version := record.get("environment", {}).get("unveil"):
        told.append(f"unveil {escaped(version)}")
    return " · ".join(told)


def _part(file: str) -> str:
    return resources.files("unveil.pages.report").joinpath(file).read_text(encoding="utf-8")
