"""The tables of docs on encoders: which there are, and the records of image_sizes, text_encoders and sound."""

from pathlib import Path
from statistics import mean
from typing import Any

from unveil.encoders.registry import ENCODERS

Record = dict[str, Any]


def encoders(_: Path) -> str:
    """A line for each encoder."""
    lines = ["| for | name | what it is | installation | license of the weights |", "|---|---|---|---|---|"]
    for entry in ENCODERS:
        install = f"`pip install {entry.install}`" if entry.install else ""
        lines.append(f"| {entry.reads} | `{entry.name}` | {entry.help} | {install} | {entry.license or ''} |")
    return "\n".join(lines)


def image_sizes(record: Record) -> str:
    """Mean over small and over large images, of each encoder at each size."""
    lines = ["| images | encoder | k-means ACC % | neighbors % | ms an image |", "|---|---|---|---|---|"]
    for large, title in ((False, "small"), (True, "large")):
        rows = [row for row in record["rows"] if row["large"] == large]
        for setting in dict.fromkeys(row["setting"] for row in rows):
            own = [row for row in rows if row["setting"] == setting]
            values = (mean(row[key] for row in own) for key in ("kmeans", "neighbors"))
            cost = mean(row["milliseconds"] for row in own)
            lines.append(f"| {title} | {setting} | {' | '.join(f'{value:.1f}' for value in values)} | {cost:.0f} |")
    return "\n".join(lines)


def image_path(record: Record) -> str:
    """Accuracy of each seed and seconds, as people call it and with --quick."""
    titles = ("--quick", "s", "as it is", "s")
    lines = [f"| ACC % of two seeds | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for task in dict.fromkeys(row["task"] for row in record["rows"]):
        cells = []
        for quick in (True, False):
            own = [row for row in record["rows"] if (row["task"], row["quick"]) == (task, quick)]
            cells += [", ".join(f"{100 * row['acc']:.1f}" for row in own), f"{own[0]['seconds']:.0f}"]
        lines.append(f"| {task} | {' | '.join(cells)} |")
    return "\n".join(lines)


def text_encoders(record: Record) -> str:
    """Mean over the draws of each data set."""
    names = list(dict.fromkeys(row["data"].partition(",")[0] for row in record["rows"]))
    header = [f"{name}, {what}" for name in names for what in ("k-means ACC %", "neighbors %")]
    lines = [f"| encoder | {' | '.join(header)} | s for 1,000 texts |", "|---" * (len(header) + 2) + "|"]
    for encoder in dict.fromkeys(row["encoder"] for row in record["rows"]):
        own = [row for row in record["rows"] if row["encoder"] == encoder]
        cells = [
            mean(row[key] for row in own if row["data"].startswith(name))
            for name in names
            for key in ("kmeans", "neighbors")
        ]
        seconds = mean(row["seconds"] for row in own)
        lines.append(f"| {encoder} | {' | '.join(f'{cell:.1f}' for cell in cells)} | {seconds:.1f} |")
    return "\n".join(lines)


def sound(record: Record) -> str:
    """One line for each draw of new digits."""
    lines = ["| new digits | unveil, ACC % | k-means, ACC % |", "|---|---|---|"]
    for row in record["rows"]:
        new = ", ".join(map(str, row["new"]))
        lines.append(f"| {new} | {100 * row['acc']:.1f} | {100 * row['kmeans']:.1f} |")
    means = (100 * mean(row[key] for row in record["rows"]) for key in ("acc", "kmeans"))
    return "\n".join([*lines, f"| mean | {' | '.join(f'{value:.1f}' for value in means)} |"])
