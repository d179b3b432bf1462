"""The cards of the report: novel classes with pictures, or with names of items and their unusual columns."""

from collections.abc import Sequence

from unveil.pages import colors
from unveil.pages.report.clusters import Cluster, UnusualColumn
from unveil.pages.report.sprites import Sheet
from unveil.pages.report.text import SENTENCE, beginning, count, deviations, escaped, name, percent, short
from unveil.runs.reader import Run

MANY = 60  # with more clusters than this, cards are small
STRIP = 9  # pictures in the line of a class on the first screen
TEXTS = 2  # texts in the line of a class on the first screen
NAMES = 6  # items listed on a card where there are no pictures


def swatch(run: Run, index: int) -> str:
    """A spot in the color that the class has on the map."""
    style = f' style="--h:{colors.hue(index - run.n_known)}"' if index >= run.n_known else ""
    return f'<i class="swatch"{style}></i>'


def item_name(run: Run, row: int) -> str:
    """What an item without a picture is called, as HTML: the beginning of its text, or its name."""
    return f"<bdi>{escaped(beginning(run.texts[row], SENTENCE))}</bdi>" if run.texts else name(run.ids[row])


def items(run: Run, sheet: Sheet, rows: Sequence[int], captions: Sequence[str] = ()) -> str:
    """A row of thumbnails, or a list of texts or names."""
    if not run.has_pictures:
        sure = [f" <small>{percent(run.confidence[row])}</small>" if run.new[row] else "" for row in rows]
        lines = "".join(f"<li>{item_name(run, row)}{note}</li>" for row, note in zip(rows, sure, strict=True))
        return f'<ul class="names">{lines}</ul>'
    cells = []
    for number, row in enumerate(rows):
        x, y = sheet.cells[row]
        confidence = f", confidence {percent(run.confidence[row])}" if run.new[row] else ""
        title = escaped(f"{short(run.ids[row], 90)}{confidence}")
        picture = f'<span class="t {sheet.name}" role="img" title="{title}" style="--x:{x};--y:{y}"></span>'
        cells.append(f"<figure>{picture}<figcaption>{captions[number]}</figcaption></figure>" if captions else picture)
    return f'<div class="thumbs">{"".join(cells)}</div>'


def strips(run: Run, clusters: Sequence[Cluster], sheet: Sheet) -> str:
    """A line for each class: its name, its most typical items, its size. It leads to the card with more."""
    lines = []
    for cluster in clusters:
        if not cluster.size:
            continue
        shown = items(run, sheet, cluster.typical[:STRIP]) if run.has_pictures else _telling(run, cluster)
        confidence = f"<small>{percent(cluster.confidence)} confidence</small>"
        lines.append(
            f'<li><a href="#class-{cluster.index}">{swatch(run, cluster.index)}{name(cluster.name, 30)}</a>{shown}'
            f"<span><b>{count(cluster.size, 'item')}</b> {confidence}</span></li>"
        )
    if not lines:
        return '<p class="empty">No new item is in a novel class, so there is nothing to show here.</p>'
    kind = "strips many" if len(lines) > MANY else "strips"
    return f'<ul class="{kind}" aria-label="Novel classes, most confident first">{"".join(lines)}</ul>'


def _telling(run: Run, cluster: Cluster) -> str:
    """The unusual columns of a class, its most typical texts, or names of items, as one line."""
    if cluster.columns:
        columns = [f"{escaped(short(c.column, 24))} {deviations(c.difference)}" for c in cluster.columns[:3]]
        return f'<p class="few">{", ".join(columns)}</p>'
    if run.texts:
        return f'<p class="few">{" · ".join(item_name(run, row) for row in cluster.typical[:TEXTS])}</p>'
    return f'<p class="few">{", ".join(name(run.ids[row], 24) for row in cluster.typical[:4])}</p>'


def section(run: Run, clusters: Sequence[Cluster], sheet: Sheet) -> str:
    """All cards."""
    if not any(cluster.size for cluster in clusters):
        return ""
    most = NAMES if not run.has_pictures else None
    kind = "cards dense" if run.has_pictures and len(clusters) > MANY else "cards"
    return f'<div class="{kind}">{"".join(_card(run, cluster, sheet, most) for cluster in clusters)}</div>'


def _card(run: Run, cluster: Cluster, sheet: Sheet, most: int | None) -> str:
    head = f"<h3>{swatch(run, cluster.index)}{name(cluster.name)}</h3>"
    opening = f'<article class="card" id="class-{cluster.index}"><header>{head}'
    if not cluster.size:
        return f'{opening}<p>no items</p></header><p class="empty">A dead cluster: it has no items.</p></article>'
    size, confidence = count(cluster.size, "item"), percent(cluster.confidence)
    parts = [f"{opening}<p><b>{size}</b> · mean confidence <b>{confidence}</b></p></header>"]
    if cluster.columns:
        parts.append(f"<h4>Most unusual columns</h4>{_columns(cluster.columns)}")
    parts.append(f"<h4>Most typical</h4>{items(run, sheet, cluster.typical[:most])}")
    if cluster.doubtful:
        parts.append(f"<h4>Most doubtful</h4>{items(run, sheet, cluster.doubtful[:most])}")
    if cluster.nearest is not None:
        title = f"Nearest known class: <b>{name(cluster.nearest)}</b> <small>cosine {cluster.cosine:.2f}</small>"
        parts.append(f"<h4>{title}</h4>{items(run, sheet, cluster.neighbors[:most])}")
    return "".join([*parts, "</article>"])


def _columns(columns: Sequence[UnusualColumn]) -> str:
    """Bars to the left and right of zero; three standard deviations fill them."""
    lines = []
    for column in columns:
        width = min(50.0, abs(column.difference) / 3 * 50)
        left = 50.0 if column.difference >= 0 else 50.0 - width
        lines.append(
            f"<li><span>{escaped(short(column.column, 40))}</span>"
            f'<span class="both"><i style="left:{left:.1f}%;width:{width:.1f}%"></i></span>'
            f"<span>{deviations(column.difference)} <small>mean {column.mean:.3g}</small></span></li>"
        )
    return f'<ul class="telling">{"".join(lines)}</ul>'
