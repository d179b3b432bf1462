"""Parts of the report: the opening, how the classes were found, their sizes, settings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unveil.pages import words
from unveil.pages.report.clusters import Cluster
from unveil.pages.report.gallery import swatch
from unveil.pages.report.text import count, escaped, name, percent, short, table
from unveil.pages.report.truth import Comparison
from unveil.review.suggestions import suggestions
from unveil.runs.reader import Run

MOST_KNOWN = 60  # known classes whose sizes are shown, the largest ones
MOST_SKIPPED = 50
EXAMPLES = 3  # of a class to add


def opening(run: Run, comparison: Comparison | None, decided: Mapping[str, int] | None) -> str:
    """The result in one sentence, one accuracy, and what people decided."""
    new, novel = run.new & (run.labels >= 0), run.n_novel
    recognized, rejected = int((run.labels[new] < run.n_known).sum()), int((run.labels < 0).sum())
    estimate = run.record.get("estimate")
    about = "About " if estimate and decided is None and novel else ""
    classes = count(novel, "novel class", "novel classes") if novel else "no novel classes"
    others = [f"{recognized:,} {'belongs' if recognized == 1 else 'belong'} to known classes"] if recognized else []
    others += [f"{rejected:,} {'was' if rejected == 1 else 'were'} rejected"] if rejected else []
    also = " and ".join(others)
    items = count(int(run.new.sum()), "new item")
    known = f", beside {count(run.n_known, 'known class', 'known classes')}" if run.n_known else ""
    sentence = f"{about}{classes} in {items}{known}{f'; {also}' if also else ''}."
    lines = [f'<p class="lead">{sentence[:1].upper()}{sentence[1:]}</p>']
    if comparison is not None:
        accuracy = f"<b>{percent(comparison.scores['acc'], 1)}</b> of the items are in the right class, by truth.csv."
    else:
        accuracy = escaped(words.headline(run.record, edited=decided is not None))
    lines.append(f'<p class="accuracy">{accuracy}</p>' if accuracy else "")
    if decided is not None:
        lines.append(f'<p class="people">{_decided(decided)}</p>')
    return "".join(lines)


def _decided(decided: Mapping[str, int]) -> str:
    """What people did, in a sentence."""
    share = percent(decided["reviewed"] / max(1, decided["new"]))
    told = [
        (decided["named"], "class named", "classes named"),
        (decided["recognized"], "recognized as a known class", "recognized as known classes"),
        (decided["merged"], "merge", "merges"),
        (decided["split"], "split", "splits"),
        (decided["moved"], "item moved", "items moved"),
        (decided["rejected"], "item rejected", "items rejected"),
    ]
    listed = ", ".join(count(number, one, many) for number, one, many in told if number)
    return f"Reviewed by people: <b>{share}</b> of the new items{f'; {listed}' if listed else ''}."


def warnings(run: Run) -> str:
    """What looked wrong."""
    if not (told := run.record.get("warnings")):
        return ""
    listed = "".join(f"<li>{_sentence(warning)}</li>" for warning in told)
    return f'<ul class="warnings" aria-label="warnings">{listed}</ul>'


def how_found(run: Run) -> str:
    """The sentences of the record, the files that could not be read, and the rehearsals."""
    sentences = run.record.get("summary") or {}
    told = [(title, sentences[key]) for key, title in words.SUMMARY.items() if sentences.get(key)]
    lines = "".join(f"<dt>{title}</dt><dd>{_sentence(text)}</dd>" for title, text in told)
    parts = [f'<dl class="words">{lines}</dl>' if lines else ""]
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


def classes_to_add(run: Run) -> str:
    """A row for each novel class; empty where there is none."""
    rows = [
        (
            escaped(short(one.name, 60)),
            escaped(short(one.cluster, 40)),
            f"{one.size:,}",
            f"{one.sure} ({percent(one.confidence)})",
            escaped(short(one.nearest_known or "", 40)),
            escaped("; ".join(short(text, 60) for text in (one.texts or one.examples)[:EXAMPLES])),
        )
        for one in suggestions(run)
    ]
    header = ("name", "in this run", "items", "how sure", "nearest known class", "examples")
    return table(header, rows, label="classes to add") if rows else ""


def sizes(run: Run, clusters: Sequence[Cluster]) -> str:
    """Bars: novel classes by size, then known classes with the new items that were recognized."""
    kept = run.labels >= 0
    given = np.bincount(run.labels[~run.new & kept], minlength=len(run.classes))
    new = np.bincount(run.labels[run.new & kept], minlength=len(run.classes))
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
    parts = [f'<h3>Novel classes</h3><ul class="bars">{"".join(novel)}</ul>'] if novel else []
    if known:
        parts.append(f'<h3>Known classes</h3>{note}<ul class="bars known">{"".join(known)}</ul>')
    return "".join(parts)


def _bar(run: Run, index: int, new: int, given: int, largest: int, *, link: bool = False) -> str:
    label = swatch(run, index) + name(run.classes[index], 28)
    if link:
        label = f'<a href="#class-{index}">{label}</a>'
    shares = ((kind, 100 * part / largest) for kind, part in (("", new), (' class="given"', given)) if part)
    parts = "".join(f'<i{kind} style="width:{share:.2f}%"></i>' for kind, share in shares)
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
        flat = ((key.replace("_", " "), str(value)) for key, value in _flat(values).items())
        rows = [(escaped(key), f"<code>{name(value, 60)}</code>") for key, value in flat]
        if rows:
            parts.append(f"<div><h3>{title}</h3>{table((), rows, label=title)}</div>")
    return f'<div class="settings">{"".join(parts)}</div>' if parts else ""


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"discovery": {"lr": 0.1}} as {"discovery.lr": 0.1}"""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
