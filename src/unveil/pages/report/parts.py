"""The summary in words and numbers, the sizes of classes, and the settings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unveil import files
from unveil.pages.report.clusters import Cluster
from unveil.pages.report.gallery import swatch
from unveil.pages.report.text import count, escaped, name, percent, table
from unveil.runs.reader import Look

MOST_KNOWN = 60
"""Known classes whose sizes are shown, the largest ones."""
MOST_SKIPPED = 50
BEGINNINGS = {
    "how many": "How many",
    "how": "How it was done",
    "how sure": "How sure",
    "k-means": "Beside k-means",
}


def numbers(look: Look) -> str:
    """What one wants to know first, large."""
    record, new = look.record, int(look.new.sum())
    trust, estimate = record.get("trust") or {}, record.get("estimate")
    novel, known = len(look.classes) - look.n_known, look.n_known
    how = f"estimated, {estimate['low']} to {estimate['high']}" if estimate else "as you asked for"
    recognised = int((look.labels[look.new] < look.n_known).sum())
    tiles = [
        ("novel class" if novel == 1 else "novel classes", f"{novel:,}", how),
        ("new item" if new == 1 else "new items", f"{new:,}", f"{recognised:,} in known classes" if recognised else ""),
        ("known class" if known == 1 else "known classes", f"{known:,}", count(len(look.ids) - new, "item")),
    ]
    if trust.get("accuracy") is None:
        tiles.append(("expected accuracy", "–", "no rehearsal was held"))
    else:
        between = f"{100 * trust['low']:.0f} to {percent(trust['high'])}" if trust.get("low") is not None else ""
        tiles.append(("expected accuracy", percent(trust["accuracy"]), between))
    cells = "".join(f"<div><dt>{what}</dt><dd>{value}<small>{note}</small></dd></div>" for what, value, note in tiles)
    return f'<dl class="tiles">{cells}</dl>'


def words(look: Look) -> str:
    """The sentences of the record, its warnings and the files that were left out."""
    lines = []
    for line in look.record.get("words", []):
        head, _, rest = line.partition(": ")
        if head in BEGINNINGS and rest:
            lines.append(f"<dt>{BEGINNINGS[head]}</dt><dd>{_sentence(rest)}</dd>")
        else:
            title = BEGINNINGS["k-means"] if line.startswith("k-means") else "What was found"
            lines.append(f"<dt>{title}</dt><dd>{_sentence(line)}</dd>")
    told = f'<dl class="words">{"".join(lines)}</dl>'
    if warnings := look.record.get("warnings"):
        told += (
            f'<ul class="warnings" aria-label="warnings">{"".join(f"<li>{_sentence(w)}</li>" for w in warnings)}</ul>'
        )
    if skipped := look.record.get("skipped"):
        shown = "".join(f"<li>{name(one, 80)}</li>" for one in skipped[:MOST_SKIPPED])
        more = f"<li>and {len(skipped) - MOST_SKIPPED} more, listed in record.json</li>"
        told += (
            f"<details><summary>{count(len(skipped), 'file')} could not be read and "
            f"{'was' if len(skipped) == 1 else 'were'} left out</summary>"
            f"<ul>{shown}{more if len(skipped) > MOST_SKIPPED else ''}</ul></details>"
        )
    return told + _rehearsals(look.record.get("trust") or {})


def _sentence(text: str) -> str:
    return escaped(text if text.startswith("k-means") else text[:1].upper() + text[1:])


def _rehearsals(trust: dict[str, Any]) -> str:
    """How each way did on known classes that were hidden: what k-means would have given, among others."""
    held = trust.get("rehearsals") or []
    ways = [key for key in (held[0] if held else {}) if key not in ("hidden", "counted")]
    if not ways:
        return ""
    means = {way: float(np.mean([one[way] for one in held if way in one])) for way in ways}
    lines = "".join(
        f'<li class="{"taken" if way == trust.get("way") else "other"}"><span>{escaped(way)}</span>'
        f'<span class="bar"><i style="width:{100 * mean:.1f}%"></i></span><span>{percent(mean, 1)}</span></li>'
        for way, mean in means.items()
    )
    times = count(len(held), "rehearsal")
    return f'<h3>Accuracy in {times} on hidden known classes</h3><ul class="bars ways">{lines}</ul>'


def sizes(look: Look, clusters: Sequence[Cluster]) -> str:
    """Bars: clusters by size, then known classes with the new items that were put into them."""
    given = np.bincount(look.labels[~look.new], minlength=len(look.classes))
    new = np.bincount(look.labels[look.new], minlength=len(look.classes))
    largest = max(1, int((given + new).max(initial=0)))
    found = [
        _bar(look, one.index, one.size, 0, largest, link=True) for one in sorted(clusters, key=lambda one: -one.size)
    ]
    known = np.argsort(-(given + new)[: look.n_known], kind="stable")
    others = [_bar(look, int(i), int(new[i]), int(given[i]), largest) for i in known[:MOST_KNOWN]]
    told = f'<h3>Novel classes</h3><ul class="bars">{"".join(found)}</ul>'
    note = ""
    if new[: look.n_known].any():
        note = '<p class="note">The coloured part is of new items that were recognised as this class.</p>'
    if len(known) > MOST_KNOWN:
        note += f'<p class="note">The {MOST_KNOWN} largest of {len(known)}.</p>'
    return f'{told}<h3>Known classes</h3>{note}<ul class="bars known">{"".join(others)}</ul>'


def _bar(look: Look, index: int, new: int, given: int, largest: int, *, link: bool = False) -> str:
    label = swatch(look, index) + name(look.classes[index], 28)
    if link:
        label = f'<a href="#class-{index}">{label}</a>'
    parts = "".join(
        f'<i{kind} style="width:{100 * part / largest:.2f}%"></i>'
        for kind, part in (("", new), (' class="given"', given))
        if part
    )
    return f'<li><span>{label}</span><span class="bar">{parts}</span><span>{new + given:,}</span></li>'


def settings(look: Look) -> str:
    """Everything that the run was asked for, what the estimator made of it, and where it ran."""
    parameters = files.read_json(look.run / "estimator.json").get("parameters", {})
    groups = {
        "Asked for": look.record.get("request", {}),
        "Settings": parameters,
        "Environment": look.record.get("environment", {}),
    }
    parts = []
    for title, values in groups.items():
        rows = [
            (escaped(str(key).replace("_", " ")), f"<code>{name(str(value), 60)}</code>")
            for key, value in values.items()
        ]
        body = table((), rows, label=title) if rows else '<p class="empty">Nothing was recorded.</p>'
        parts.append(f"<div><h3>{title}</h3>{body}</div>")
    return f'<div class="settings">{"".join(parts)}</div>'
