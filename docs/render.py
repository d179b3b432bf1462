"""Fill the tables of README.md and docs/*.md from the records in results/.

    python docs/render.py [--check]

A page holds `<!-- table: NAME -->` … `<!-- end -->`; the table between the two lines is made of the records
`results/NAME/ROW-seedN.json`. `<!-- tried: NAME -->` lists single records with what each of them changed. With --check
nothing is written and the exit code says whether a page is out of date.
"""

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKER = re.compile(r"(<!-- (?P<kind>table|tried): (?P<name>[\w./-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = ("", "seeds", "ACC %", "NMI", "ARI", "test ACC %", "known test %", "pre-training s", "discovery s")
HEADER = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def rendered(page: str) -> str:
    """The page with every table made anew."""

    def fill(match: re.Match[str]) -> str:
        make = table if match["kind"] == "table" else tried
        return f"{match[1]}{make(ROOT / 'results' / match['name'])}\n{match[4]}"

    return MARKER.sub(fill, page)


def table(folder: Path) -> str:
    """One line per row name, k-means on the same features first, then by falling accuracy."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*-seed*.json")):
        rows.setdefault(path.stem.rpartition("-seed")[0], []).append(json.loads(path.read_text()))
    if not rows:
        return "*No records yet.*"
    everything = [record for records in rows.values() for record in records]
    lines = [HEADER]
    if "kmeans_inputs" in everything[0]:
        lines.append(line("k-means, raw inputs", unique(everything, "kmeans_inputs"), []))
    lines.append(line("k-means, pre-trained features", unique(everything, "kmeans"), everything[:1]))
    ordered = sorted(rows, key=lambda name: -mean([r["metrics"]["acc"] for r in rows[name]]))
    lines += [line(name, [r["metrics"] for r in rows[name]], rows[name]) for name in reversed(ordered)]
    return "\n".join(lines)


def tried(folder: Path) -> str:
    """A line for each record: what was tried, and its own `shown` values or else its accuracies."""
    lines: list[str] = []
    for record in (json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))):
        shown = record.get("shown") or {
            "k-means, pre-trained features %": f"{100 * record['kmeans']['acc']:.1f}",
            f"{record['method']} %": f"{100 * record['metrics']['acc']:.1f}",
        }
        if not lines:
            lines += [f"| tried | {' | '.join(shown)} |", "|---" * (len(shown) + 1) + "|"]
        lines.append(f"| {record['tried']} | {' | '.join(map(str, shown.values()))} |")
    return "\n".join(lines) or "*No records yet.*"


def unique(records: list[dict[str, Any]], key: str) -> list[dict[str, float]]:
    """The k-means scores of each seed once, however many methods were run with it."""
    return list({record["seed"]: record[key] for record in records if key in record}.values())


def line(name: str, scores: list[dict[str, float]], records: list[dict[str, Any]]) -> str:
    """A row of the table: means and, from two seeds on, standard deviations."""
    cells = [spread(scores, "acc", 100), spread(scores, "nmi"), spread(scores, "ari")]
    cells += [spread(scores, "test_acc", 100), spread(scores, "known_acc", 100)]
    before = [sum(v for k, v in r["seconds"].items() if k != "discovery") for r in records]
    after = [r["seconds"]["discovery"] for r in records if "acc" in r["metrics"] and r["metrics"] in scores]
    cells += [f"{mean(values):.0f}" if values else "" for values in (before, after)]
    return f"| {name} | {len(scores)} | {' | '.join(cells)} |"


def spread(scores: list[dict[str, float]], key: str, scale: float = 1) -> str:
    values = [scale * score[key] for score in scores if key in score]
    if not values:
        return ""
    digits = 1 if scale == 100 else 3
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation}"


def mean(values: list[float]) -> float:
    return statistics.fmean(values)


def main() -> int:
    outdated = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := rendered(text)) != text:
            outdated += 1
            if "--check" in sys.argv:
                print(f"{page.relative_to(ROOT)} is out of date: run make docs")
            else:
                page.write_text(new, encoding="utf-8")
    return outdated if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
