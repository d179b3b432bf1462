"""`unveil report RUN`: all parts of the report in one HTML file that needs nothing else."""

import base64
import hashlib
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from unveil import files
from unveil.pages import colors
from unveil.pages.report import confusion, curves, gallery, parts
from unveil.pages.report.clusters import describe
from unveil.pages.report.sprites import Sheet, draw
from unveil.pages.report.text import SENTENCE, as_json, beginning, cleaned, count, escaped, short
from unveil.pages.report.truth import compare
from unveil.review.edited_scores import reviewed
from unveil.runs.map import Layout, layout_of
from unveil.runs.reader import Run, load

LARGEST = 4_900_000  # largest size of the file in bytes; pictures use what the other parts leave
GALLERY_SHARE = 0.45  # share of the bytes for pictures that the cards may use; the map uses the others
GRID = 4095  # coordinates on the map are whole numbers from 0 to this: finer than any screen
EMPTY = Layout(xy=np.zeros((0, 2), dtype=np.float32), sample=np.array([], dtype=np.int64))


def write(folder: Path, out: Path | None = None, *, with_map: bool = True, original: bool = False) -> Path:
    """Write the report of a run directory, with the corrections of its review or as it was; returns the file."""
    target, run = out or folder / "report.html", load(folder)
    run, decided = (run, None) if original else reviewed(run)
    files.write(target, build(run, with_map=with_map, decided=decided))
    return target


def build(run: Run, *, with_map: bool = True, decided: dict[str, int] | None = None) -> str:
    """The report as HTML. Sections without content are left out, and those for experts are folded."""
    clusters, comparison = describe(run), compare(run)
    shown = [row for cluster in clusters for row in (*cluster.typical, *cluster.doubtful, *cluster.neighbors)]
    shown += [row for row, _, _ in comparison.misplaced] if comparison else []
    layout = layout_of(run) if with_map else EMPTY
    placed = layout.sample[run.labels[layout.sample] >= 0]
    in_cards = Sheet(name="g", rows=tuple(dict.fromkeys(shown)))
    in_map = Sheet(name="m", rows=tuple(placed.tolist()))
    drawn, items = len(in_map.rows), int((run.labels >= 0).sum())
    note = f"{drawn:,} of {items:,} items" if drawn < items else f"All {count(items, 'item')}"
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sections = {
        "map": ("Map", Template(_part("map.html")).substitute(shown=note) if with_map else "", False),
        "suggested": ("Classes to add", parts.classes_to_add(run), True),
        "clusters": ("Classes in detail", gallery.section(run, clusters, in_cards), True),
        "sizes": ("Sizes", parts.sizes(run, clusters), True),
        "truth": ("Against the truth", confusion.section(run, comparison, in_cards) if comparison else "", False),
        "how": ("How the classes were found", parts.how_found(run), True),
        "curves": ("Training", curves.section(run.history), True),
        "settings": ("Settings", parts.settings(run), True),
    }
    sections = {key: section for key, section in sections.items() if section[1]}
    values = {
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'",
        "title": escaped(short(run.name, 80)),
        "made": _made(run.record),
        "css": colors.css_variables() + _part("page.css"),
        "nav": "".join(f'<a href="#{key}">{title}</a>' for key, (title, _, _) in sections.items()),
        "opening": parts.opening(run, comparison, decided),
        "strips": gallery.strips(run, clusters, in_cards),
        "warnings": parts.warnings(run),
        "sections": "".join(_section(key, *section) for key, section in sections.items()),
        "data": as_json(_points(run, in_map, layout)),
        "script": script,
    }
    page = Template(_part("page.html"))
    room = LARGEST - len(page.substitute(values, sprites="", missing="").encode())
    rules, missing = _sprites(run, in_cards, in_map, room)
    return page.substitute(values, sprites=rules, missing=missing)


def _section(key: str, title: str, content: str, folded: bool) -> str:
    heading, kind = f'<h2 id="h-{key}">{title}</h2>', ' class="folded"' if folded else ""
    content = f"<details><summary>{heading}</summary>{content}</details>" if folded else heading + content
    return f'<section id="{key}" aria-labelledby="h-{key}"{kind}>{content}</section>'


def _sprites(run: Run, in_cards: Sheet, in_map: Sheet, room: int) -> tuple[str, str]:
    """CSS rules of both sheets, and a note about pictures that cannot be read any more."""
    if not run.has_pictures:
        return "", ""
    first, missing = draw(run, in_cards, round(GALLERY_SHARE * room)) if in_cards.rows else ("", 0)
    second, missing_in_map = draw(run, in_map, room - len(first)) if in_map.rows else ("", 0)
    if not max(missing, missing_in_map):
        return first + second, ""
    pictures = count(max(missing, missing_in_map), "picture")
    return first + second, f'<p class="note">{pictures} could not be read any more and are shown as a gray field.</p>'


def _points(run: Run, sheet: Sheet, layout: Layout) -> dict[str, Any]:
    """The data of the map, for the script."""
    grid = np.rint(layout.xy[list(sheet.rows)] * GRID).astype(int).tolist()
    points = []
    for row, (x, y) in zip(sheet.rows, grid, strict=True):
        confidence = round(100 * float(run.confidence[row]))
        title = beginning(run.texts[row], SENTENCE) if run.texts else short(run.ids[row], 40)
        points.append([x, y, int(run.labels[row]), confidence, int(run.new[row]), cleaned(title)])
    return {
        "points": points,
        "classes": [cleaned(short(one, 40)) for one in run.classes],
        "hues": [colors.hue(number) for number in range(len(run.classes) - run.n_known)],
        "sizes": np.bincount(run.labels[run.labels >= 0], minlength=len(run.classes)).tolist(),
        "known": run.n_known,
        "columns": sheet.columns,
        "pictures": run.has_pictures,
    }


def _made(record: dict[str, Any]) -> str:
    """When the run finished, how long it took, and the version of unveil."""
    parts = [f"finished {escaped(str(record['finished'])[:16].replace('T', ' '))}"] if record.get("finished") else []
    if seconds := record.get("seconds"):
        parts.append(f"{sum(seconds.values()):,.0f} seconds")
    if version := (record.get("environment") or {}).get("unveil"):
        parts.append(f"unveil {escaped(version)}")
    return " · ".join(parts)


def _part(file: str) -> str:
    return resources.files("unveil.pages.report").joinpath(file).read_text(encoding="utf-8")
