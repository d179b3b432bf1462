"""Clusters as cards: pictures where there are some, else names and the columns that tell most."""

from collections.abc import Sequence

from unveil.pages.report.clusters import Cluster, Telling
from unveil.pages.report.sprites import Sheet
from unveil.pages.report.text import count, escaped, name, percent, short
from unveil.runs.reader import Look

MANY = 60
"""Clusters above which cards are small."""
NAMES = 6
"""Items that a card names where there are no pictures."""


def hue(look: Look, index: int) -> str:
    """The colour of a class: steps of the golden angle keep neighbours apart, however many there are."""
    return f"{(30 + 137.508 * (index - look.n_known)) % 360:.0f}"


def swatch(look: Look, index: int) -> str:
    """A spot in the colour that the class has on the map."""
    colour = f' style="--h:{hue(look, index)}"' if index >= look.n_known else ""
    return f'<i class="swatch"{colour}></i>'


def items(look: Look, sheet: Sheet, rows: Sequence[int], captions: Sequence[str] = ()) -> str:
    """A row of thumbnails, or a list of names."""
    if not look.has_pictures:
        told = [f" <small>{percent(look.confidence[row])}</small>" if look.new[row] else "" for row in rows]
        lines = [f"<li>{name(look.ids[row])}{sure}</li>" for row, sure in zip(rows, told, strict=True)]
        return f'<ul class="names">{"".join(lines)}</ul>'
    cells = []
    for place, row in enumerate(rows):
        x, y = sheet.place(row)
        how = f", confidence {percent(look.confidence[row])}" if look.new[row] else ""
        title = escaped(f"{short(look.ids[row], 90)}{how}")
        picture = f'<span class="t {sheet.name}" role="img" title="{title}" style="--x:{x};--y:{y}"></span>'
        cells.append(f"<figure>{picture}<figcaption>{captions[place]}</figcaption></figure>" if captions else picture)
    return f'<div class="thumbs">{"".join(cells)}</div>'


def section(look: Look, clusters: Sequence[Cluster], sheet: Sheet) -> str:
    """All cards."""
    if not any(cluster.size for cluster in clusters):
        return '<p class="empty">No new item is in a novel class, so there is nothing to show here.</p>'
    most = NAMES if not look.has_pictures else None
    kind = "cards dense" if look.has_pictures and len(clusters) > MANY else "cards"
    return f'<div class="{kind}">{"".join(_card(look, cluster, sheet, most) for cluster in clusters)}</div>'


def _card(look: Look, cluster: Cluster, sheet: Sheet, most: int | None) -> str:
    head = f"<h3>{swatch(look, cluster.index)}{name(cluster.name)}</h3>"
    opening = f'<article class="card" id="class-{cluster.index}"><header>{head}'
    if not cluster.size:
        return f'{opening}<p>no items</p></header><p class="empty">A dead cluster: no item was put here.</p></article>'
    sure = percent(cluster.confidence)
    parts = [f"{opening}<p><b>{count(cluster.size, 'item')}</b> · mean confidence <b>{sure}</b></p></header>"]
    if cluster.telling:
        parts.append(f"<h4>Most telling columns</h4>{_telling(cluster.telling)}")
    parts.append(f"<h4>Most typical</h4>{items(look, sheet, cluster.typical[:most])}")
    if cluster.doubtful:
        parts.append(f"<h4>Most doubtful</h4>{items(look, sheet, cluster.doubtful[:most])}")
    if cluster.nearest is not None:
        told = f"Nearest known class: <b>{name(cluster.nearest)}</b> <small>cosine {cluster.cosine:.2f}</small>"
        parts.append(f"<h4>{told}</h4>{items(look, sheet, cluster.near[:most])}")
    return "".join([*parts, "</article>"])


def _telling(columns: Sequence[Telling]) -> str:
    """Bars to the left and right of zero; three spreads fill them."""
    lines = []
    for column in columns:
        sign = "+" if column.difference >= 0 else "−"
        width = min(50.0, abs(column.difference) / 3 * 50)
        left = 50.0 if column.difference >= 0 else 50.0 - width
        lines.append(
            f"<li><span>{escaped(short(column.column, 40))}</span>"
            f'<span class="both"><i style="left:{left:.1f}%;width:{width:.1f}%"></i></span>'
            f"<span>{sign}{abs(column.difference):.1f} spreads <small>mean {column.mean:.3g}</small></span></li>"
        )
    return f'<ul class="telling">{"".join(lines)}</ul>'
