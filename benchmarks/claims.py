"""The paper's claims beside what was measured here, from docs/claims.toml and the tables in results/paper."""

import csv
import tomllib
from collections import Counter
from pathlib import Path

from unveil.experiments.summary import SMALL

ROOT = Path(__file__).resolve().parent.parent
LIKELY = 0.05
"""An effect that seeds alone would give more often than this is undecided."""
VERDICTS = ("reproduced", "in sign", "not", "undecided", "no effect in the paper")
DATA = {
    "desk-cifar10": "CIFAR-10, from scratch",
    "desk-cifar100": "CIFAR-100, from scratch",
    "desk-cifar10-embedded": "CIFAR-10, embeddings",
    "desk-cifar100-embedded": "CIFAR-100, embeddings",
}


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
    """How many claims are found, and a line for each claim and data set of which there are records."""
    claims = tomllib.loads((ROOT / "docs" / "claims.toml").read_text(encoding="utf-8"))["claim"]
    titles = (
        "the paper's claim",
        "on",
        "beside",
        "ACC % in the paper (effect)",
        "ACC % here (effect)",
        "seeds",
        "p",
        "",
    )
    lines = [f"| {' | '.join(titles)} | records |", "|---" * (len(titles) + 1) + "|"]
    said: Counter[str] = Counter()
    for claim in claims:
        for data, name in DATA.items():
            path = folder / data / f"{claim['table']}.csv"
            rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
            for row in rows if data not in claim.get("without", ()) else ():
                if row["row"] == claim["row"] and row["effect"] and row["paper_effect"]:
                    paper, here = float(row["paper_effect"]), float(row["effect"])
                    chance = float(row["p"]) if row["p"] else None
                    said[found := verdict(paper, here, chance)] += 1
                    cells = [claim["text"], name, row["beside"], f"{float(row['paper']):.1f} ({paper:+.1f})"]
                    cells += [f"{float(row['acc_mean']):.1f} ({here:+.1f})", row["seeds"], _chance(chance)]
                    cells += [f"**{found}**", f"[{claim['table']}](../results/paper/{data}/{claim['table']}.csv)"]
                    lines.append(f"| {' | '.join(cells)} |")
    if not said:
        return "*No records yet.*"
    counts = ", ".join(f"{said[one]} {one}" for one in VERDICTS)
    return "\n".join([f"Of {said.total()} effects: {counts}.", "", *lines])


def _chance(chance: float | None) -> str:
    return "" if chance is None else "< 0.001" if chance < 0.001 else f"{chance:.3f}"
