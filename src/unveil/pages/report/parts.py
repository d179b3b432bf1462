"""Parts of the report that come from the record: summary, sizes of classes, settings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unveil.pages import words
from unveil.pages.report.clusters import Cluster
from unveil.pages.report.gallery import swatch
from unveil.pages.report.text import count, escaped, name, percent, table
from unveil.runs.reader import Run

MOST_KNOWN = 60
"""Known classes whose sizes are shown, the largest ones."""
MOST_SKIPPED = 50


def numbers(run: Run) -> str:
    """The most important numbers as large tiles."""
    forecast, estimate = run.record.get("forecast"), run.record.get("estimate")
    new, novel, known = int(run.new.sum()), run.n_novel, run.n_known
    recognised = int((run.labels[run.new] < run.n_known).sum())
    origin = f"estimated, {estimate['low']} to {estimate['high']}" if estimate else "as given"
    tiles = [
        ("novel class" if novel == 1 else "novel classes", f"{novel:,}", origin),
        ("new item" if new == 1 else "new items", f"{new:,}", f"{recognised:,} in known classes" if recognised else ""),
        ("known class" if known == 1 else "known classes", f"{known:,}", count(len(run.ids) - new, "item")),
    ]
    if not forecast or forecast.get("accuracy") is None:
        tiles.append(("expected accuracy", "–", "no rehearsals"))
    else:
        low, high = forecast.get("low"), forecast.get("high")
        interval = f"{100 * low:.0f} to {percent(high)}" if low is not None and high is not None else ""
        tiles.append(("expected accuracy", percent(forecast["accuracy"]), interval))
    cells = "".join(f"<div><dt>{what}</dt><dd>{value}<small>{note}</small></dd></div>" for what, value, note in tiles)
    return f'<dl class="tiles">{cells}</dl>'


def summary(run: Run) -> str:
    """The sentences of the record, its warnings, the files that could not be read, and the rehearsals."""
    sentences = run.record.get("summary") or {}
    lines = "".join(
        f"<dt>{title}</dt><dd>{_sentence(sentences[key])}</dd>"
        for key, title in words.SUMMARY.items()
        if sentences.get(key)
    )
    parts = [f'<dl class="words">{lines}</dl>']
    if warnings := run.record.get("warnings"):
        listed = "".join(f"<li>{_sentence(warning)}</li>" for warning in warnings)
        parts.append(f'<ul class="warnings" aria-label="warnings">{listed}</ul>')
    if skipped := run.record.get("skipped"):
        shown = "".join(f"<li>{name(one, 80)}</li>" for one in skipped[:MOST_SKIPPED])
        more = f"<li>and {len(skipped) - MOST_SKIPPED} more, listed in record.json</li>"
        parts.append(
            f"<details><summary>{count(len(skipped), 'file')} could not be read and "
            f"{'was' if len(skipped) == 1 else 'were'} left out</summary>"
            f"<ul>{shown}{more if len(skipped) > MOST_SKIPPED else ''}</ul></details>"
        )
    return "".join(parts) + _rehearsals(run.record.get("forecast") or {})


def _sentence(text: str) -> str:
    return escaped(text if text.startswith("k-means") else text[:1].upper() + text[1:])


def _rehearsals(forecast: dict[str, Any]) -> str:
    """Mean accuracy of each candidate on known classes that were hidden; the chosen candidate is marked."""
    rehearsals = forecast.get("rehearsals") or []
    candidates = list(dict.fromkeys(candidate for rehearsal in rehearsals for candidate in rehearsal["accuracy"]))
    if not candidates:
        return ""
    lines = []
    for candidate in candidates:
        accuracies = [row["accuracy"][candidate] for row in rehearsals if candidate in row["accuracy"]]
        mean = float(np.mean(accuracies))
        kind = "taken" if candidate == forecast.get("candidate") else "other"
        lines.append(
            f'<li class="{kind}"><span>{escaped(candidate)}</span>'
            f'<span class="bar"><i style="width:{100 * mean:.1f}%"></i></span><span>{percent(mean, 1)}</span></li>'
        )
    title = f"Accuracy in {count(len(rehearsals), 'rehearsal')} on hidden known classes"
    return f'<h3>{title}</h3><ul class="bars candidates">{"".join(lines)}</ul>'


def sizes(run: Run, clusters: Sequence[Cluster]) -> str:
    """Bars: novel classes by size, then known classes with the new items that were recognised."""
    given = np.bincount(run.labels[~run.new], minlength=len(run.classes))
    new = np.bincount(run.labels[run.new], minlength=len(run.classes))
    largest = max(1, int((given + new).max(initial=0)))
    by_size = sorted(clusters, key=lambda cluster: -cluster.size)
    novel = [_bar(run, cluster.index, cluster.size, 0, largest, link=True) for cluster in by_size]
    order = np.argsort(-(given + new)[: run.n_known], kind="stable")
    known = [_bar(run, int(i), int(new[i]), int(given[i]), largest) for i in order[:MOST_KNOWN]]
    note = ""
    if new[: run.n_known].any():
        note = '<p class="note">The colored part shows new items that were assigned to this class.</p>'
    if len(order) > MOST_KNOWN:
        note += f'<p class="note">The {MOST_KNOWN} largest of {len(order)}.</p>'
    return (
        f'<h3>Novel classes</h3><ul class="bars">{"".join(novel)}</ul>'
        f'<h3>Known classes</h3>{note}<ul class="bars known">{"".join(known)}</ul>'
    )


def _bar(run: Run, index: int, new: int, given: int, largest: int, *, link: bool = False) -> str:
    label = swatch(run, index) + name(run.classes[index], 28)
    if link:
        label = f'<a href="#class-{index}">{label}</a>'
    parts = "".join(
        f'<i{kind} style="width:{100 * part / largest:.2f}%"></i>'
        for kind, part in (("", new), (' class="given"', given))
        if part
    )
    return f'<li><span>{label}</span><span class="bar">{parts}</span><span>{new + given:,}</span></li>'


def settings(run: Run) -> str:
    """Where the data came from, every setting, and the machine."""
    record = run.record
    origin = {key: record.get(key) for key in ("recipe", "method", "seed") if record.get(key) is not None}
    groups = {
        "Run": {**{f"data.{key}": value for key, value in (record.get("source") or {}).items()}, **origin},
        "Settings": record.get("config") or {},
        "Environment": record.get("environment") or {},
    }
    parts = []
    for title, values in groups.items():
        rows = [
            (escaped(key.replace("_", " ")), f"<code>{name(str(value), 60)}</code>")
            for key, value in _flat(values).items()
        ]
        body = table((), rows, label=title) if rows else '<p class="empty">Nothing was recorded.</p>'
        parts.append(f"<div><h3>{title}</h3>{body}</div>")
    return f'<div class="settings">{"".join(parts)}</div>'


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"discovery": {"lr": 0.1}} as {"discovery.lr": 0.1}"""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
