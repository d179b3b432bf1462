"""Classes to add, as a table of the report."""

from unveil.pages.report.text import escaped, percent, short, table
from unveil.review.suggestions import suggestions
from unveil.runs.reader import Run

SHOWN = 3


def section(run: Run) -> str:
    """A row for each novel class; empty where there is none."""
    rows = [
        (
            escaped(short(one.name, 60)),
            escaped(short(one.cluster, 40)),
            f"{one.size:,}",
            f"{one.sure} ({percent(one.confidence)})",
            escaped(short(one.nearest_known or "", 40)),
            escaped("; ".join(short(text, 60) for text in (one.texts or one.examples)[:SHOWN])),
        )
        for one in suggestions(run)
    ]
    header = ("name", "in this run", "items", "how sure", "nearest known class", "examples")
    return table(header, rows, label="classes to add") if rows else ""
