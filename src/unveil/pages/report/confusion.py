"""Clusters against the truth, as a table and as pictures of what is misplaced."""

import math

from unveil.pages.report.gallery import items
from unveil.pages.report.sprites import Sheet
from unveil.pages.report.text import count, name, percent
from unveil.pages.report.truth import Comparison
from unveil.runs.reader import Look

MOST_CELLS = 30
"""Clusters or classes up to which confusion is a table; above, the largest confusions are listed."""


def section(look: Look, found: Comparison | None, sheet: Sheet) -> str:
    """Clusters against the truth, and examples of what is misplaced."""
    if found is None:
        return (
            '<p class="empty">The truth of the new items is not known. Where it is, put a file <code>truth.csv</code> '
            "with the columns <code>id</code> and <code>label</code> into the run directory, and report again.</p>"
        )
    scores = found.scores
    told = (
        f"<p><b>{percent(scores['acc'], 1)}</b> of {count(found.items, 'item')} are in the cluster that stands for "
        f"their class, under the best one-to-one assignment; k-means on the same vectors reaches "
        f"{percent(found.kmeans, 1)}. "
        f"NMI {scores['nmi']:.3f}, ARI {scores['ari']:.3f}.</p>"
    )
    if found.strangers:
        told += f'<p class="note">{count(found.strangers, "line")} of truth.csv have an id that no new item has.</p>'
    large = max(found.counts.shape) > MOST_CELLS
    told += _largest(found) if large else _matrix(found)
    if not found.misplaced:
        return f'{told}<p class="empty">No item is misplaced.</p>'
    captions = [f"{name(true, 14)} <span>in {name(stands, 14)}</span>" for _, true, stands in found.misplaced]
    told += '<h3>Misplaced items</h3><p class="note">What it is, and what its cluster stands for.</p>'
    if look.has_pictures:
        return told + items(look, sheet, [row for row, _, _ in found.misplaced], captions)
    lines = [
        f"<li>{name(look.ids[row])} <small>{caption}</small></li>"
        for (row, _, _), caption in zip(found.misplaced, captions, strict=True)
    ]
    return f'{told}<ul class="names">{"".join(lines)}</ul>'


def _matrix(found: Comparison) -> str:
    head = "".join(f'<th scope="col">{name(true, 18)}</th>' for true in found.classes)
    lines = []
    for i, cluster in enumerate(found.clusters):
        total, cells = max(1, int(found.counts[i].sum())), []
        for j, value in enumerate(found.counts[i].tolist()):
            kind = "right" if i == j and i < found.matched else "wrong"
            shade = f' class="{kind}" style="--a:{math.sqrt(value / total):.2f}"' if value else ""
            cells.append(f"<td{shade}>{value or '·'}</td>")
        lines.append(f'<tr><th scope="row">{name(cluster, 24)}</th>{"".join(cells)}</tr>')
    return (
        '<div class="wide"><table class="matrix" aria-label="items by cluster and true class"><thead><tr>'
        f'<th scope="col">cluster \\ class</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _largest(found: Comparison) -> str:
    off = found.counts.copy()
    off[range(found.matched), range(found.matched)] = 0
    order = [divmod(int(place), off.shape[1]) for place in (-off).ravel().argsort(kind="stable")[:MOST_CELLS]]
    lines = [
        f'<tr><th scope="row">{name(found.clusters[i], 24)}</th>'
        f"<td>{name(found.classes[i], 24) if i < found.matched else 'none'}</td>"
        f"<td>{name(found.classes[j], 24)}</td><td>{off[i, j]}</td></tr>"
        for i, j in order
        if off[i, j]
    ]
    return (
        f'<p class="note">With {len(found.clusters)} clusters and {len(found.classes)} classes, only the largest '
        'confusions are shown.</p><div class="wide"><table aria-label="largest confusions"><thead><tr>'
        '<th scope="col">cluster</th><th scope="col">stands for</th><th scope="col">also holds</th>'
        f'<th scope="col">items</th></tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )
