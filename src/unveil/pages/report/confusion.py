"""Clusters against the true classes: scores, a confusion table, and misplaced items."""

import math

from unveil.pages import words
from unveil.pages.report.gallery import item_name, items
from unveil.pages.report.sprites import Sheet
from unveil.pages.report.text import WIDE, count, escaped, name, percent, table
from unveil.pages.report.truth import Comparison
from unveil.runs.reader import Run

MOST_CELLS = 30  # with more clusters or classes than this, only the largest confusions are listed


def section(run: Run, comparison: Comparison, sheet: Sheet) -> str:
    """The comparison with the true classes."""
    scores = comparison.scores
    parts = [
        f"<p><b>{percent(scores['acc'], 1)}</b> of {count(comparison.items, 'item')} are in the cluster that is "
        f"matched to their class, under the best one-to-one assignment; k-means without training reaches "
        f"{percent(comparison.kmeans, 1)}. "
        f"NMI {scores['nmi']:.3f}, ARI {scores['ari']:.3f}.</p>",
        _scores(run),
    ]
    if comparison.rejected:
        parts.append(f'<p class="note">{count(comparison.rejected, "rejected item")} not counted.</p>')
    if comparison.unknown_ids:
        lines = count(comparison.unknown_ids, "line")
        parts.append(f'<p class="note">{lines} of truth.csv have an id that no new item has.</p>')
    large = max(comparison.counts.shape) > MOST_CELLS
    parts.append(_largest(comparison) if large else _matrix(comparison))
    if not comparison.misplaced:
        return "".join([*parts, '<p class="empty">No item is misplaced.</p>'])
    captions = [f"{name(true, 14)} <span>in {name(believed, 14)}</span>" for _, true, believed in comparison.misplaced]
    parts.append('<h3>Misplaced items</h3><p class="note">The true class, and the class of the cluster.</p>')
    if run.has_pictures:
        return "".join(parts) + items(run, sheet, [row for row, _, _ in comparison.misplaced], captions)
    pairs = zip((row for row, _, _ in comparison.misplaced), captions, strict=True)
    listed = "".join(f"<li>{item_name(run, row)} <small>{caption}</small></li>" for row, caption in pairs)
    return "".join([*parts, f'<ul class="names">{listed}</ul>'])


def _scores(run: Run) -> str:
    """The scores that the run itself recorded, beside k-means."""
    found = [(escaped(title), scores) for _, title, scores in words.score_rows(run.record)]
    rows = [(title, percent(one["acc"], 1), f"{one['nmi']:.3f}", f"{one['ari']:.3f}") for title, one in found]
    return table(("", "ACC", "NMI", "ARI"), rows, label="scores of the run and of k-means") if len(rows) > 1 else ""


def _matrix(comparison: Comparison) -> str:
    head = "".join(f'<th scope="col">{name(true, 18)}</th>' for true in comparison.classes)
    lines = []
    for i, cluster in enumerate(comparison.clusters):
        total, cells = max(1, int(comparison.counts[i].sum())), []
        for j, value in enumerate(comparison.counts[i].tolist()):
            kind = "right" if i == j and i < comparison.matched else "wrong"
            shade = f' class="{kind}" style="--a:{math.sqrt(value / total):.2f}"' if value else ""
            cells.append(f"<td{shade}>{value or '·'}</td>")
        lines.append(f'<tr><th scope="row">{name(cluster, 24)}</th>{"".join(cells)}</tr>')
    return (
        f'<div {WIDE}><table class="matrix" aria-label="items by cluster and true class"><thead><tr>'
        f'<th scope="col">cluster \\ class</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _largest(comparison: Comparison) -> str:
    confusions = comparison.counts.copy()
    confusions[range(comparison.matched), range(comparison.matched)] = 0
    order = (-confusions).ravel().argsort(kind="stable")[:MOST_CELLS]
    clusters, classes = ([name(one, 24) for one in names] for names in (comparison.clusters, comparison.classes))
    rows = [
        (clusters[i], classes[i] if i < comparison.matched else "none", classes[j], str(confusions[i, j]))
        for i, j in (divmod(int(index), confusions.shape[1]) for index in order)
        if confusions[i, j]
    ]
    note = f"With {len(clusters)} clusters and {len(classes)} classes, only the largest confusions are shown."
    header = ("cluster", "matched class", "also holds", "items")
    return f'<p class="note">{note}</p>{table(header, rows, label="largest confusions")}'
