"""The paper's claims and systems beside what was measured here: docs/claims.toml and results/paper."""

import csv
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from unveil.experiments.summary import SMALL

ROOT = Path(__file__).resolve().parent.parent
LIKELY = 0.05
"""An effect that seeds alone would give more often than this is undecided."""
VERDICTS = ("reproduced", "in sign", "not", "undecided", "no effect in the paper")
DATA = {
    "CIFAR-10": {"desk-cifar10": "from scratch", "desk-cifar10-embedded": "embeddings"},
    "CIFAR-100": {"desk-cifar100": "from scratch", "desk-cifar100-embedded": "embeddings"},
}
"""The data sets of the paper, and the folders of results/paper with what was measured on each."""
MISSING = "*No records yet.*"
PAIR_RULES, THRESHOLD = "pair-rules", "cosine above 0.95"
"""The table of rules for pairs: rows with the paper's own rule are shown there alone."""


def verdict(paper: float, here: float, chance: float | None) -> str:
    """How much of an effect of the paper is found here."""
    if abs(paper) < SMALL:
        return "no effect in the paper"
    if chance is None or chance >= LIKELY:
        return "undecided"
    if here * paper <= 0:
        return "not"
    return "reproduced" if abs(here) >= abs(paper) / 2 else "in sign"


def table(folder: Path) -> str:
    """How many claims are found, and a line for each: the effect in the paper, and here with its verdict."""
    claims = tomllib.loads((ROOT / "docs" / "claims.toml").read_text(encoding="utf-8"))["claim"]
    rows, said = list[list[str]](), Counter[str]()
    for claim in claims:
        cells = [claim["text"]]
        for folders in DATA.values():
            effects = {data: _effect(folder / data, claim) for data in folders}
            measured = [one for one in effects.values() if one is not None]
            cells.append(f"{measured[0][0]:+.1f}" if measured else "")
            for one in effects.values():
                if one is None:
                    cells.append("")
                    continue
                said[found := verdict(*one)] += 1
                cells.append(f"{one[1]:+.1f} **{found}**")
        if any(cells[1:]):
            rows.append(cells)
    if not said:
        return MISSING
    counts = ", ".join(f"{said[one]} {one}" for one in VERDICTS)
    return f"Of {said.total()} effects: {counts}.\n\n{_markdown('the paper says', rows)}"


def across(path: Path) -> str:
    """ACC of every row of some tables (`table4+table3`) on every data set, beside the paper's; each row once."""
    rows: dict[str, list[str]] = {}
    for table in path.name.split("+"):
        shown = {data: _shown(path.parent / data / f"{table}.md") for folders in DATA.values() for data in folders}
        names = dict.fromkeys(name for some in sorted(shown.values(), key=len, reverse=True) for name in some)
        if table != PAIR_RULES:
            names = {name: None for name in names if THRESHOLD not in name}
        for name in names if any(shown.values()) else ():
            cells = []
            for folders in DATA.values():
                found = [shown[data].get(name, ("", "")) for data in folders]
                cells += [max(paper for _, paper in found), *(acc for acc, _ in found)]
            rows.setdefault(name, [name, *cells])
    starts_first = sorted(rows.values(), key=lambda row: not row[0].startswith("k-means on"))
    return _markdown("ACC %", starts_first) if rows else MISSING


def _effect(folder: Path, claim: dict[str, Any]) -> tuple[float, float, float | None] | None:
    """The effect in the paper and here, and how often seeds alone would give it (None: one seed)."""
    path = folder / f"{claim['table']}.csv"
    if folder.name in claim.get("without", ()) or not path.exists():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["row"] == claim["row"] and row["effect"] and row["paper_effect"]:
                return float(row["paper_effect"]), float(row["effect"]), float(row["p"]) if row["p"] else None
    return None


def _shown(path: Path) -> dict[str, tuple[str, str]]:
    """By row of a table that `unveil paper` wrote: ACC, and that of the paper."""
    if not path.exists():
        return {}
    header, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in path.read_text(encoding="utf-8").splitlines()
    )
    named = [dict(zip(header, row, strict=True)) for row in rows]
    return {row[""]: (row["ACC %"], row.get("paper", "")) for row in named}


def _markdown(title: str, rows: list[list[str]]) -> str:
    columns = [title]
    for data, folders in DATA.items():
        columns += [f"{data}: paper", *folders.values()]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
