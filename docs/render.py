"""Fill the tables of README.md and docs/*.md from the records in results/.

    python docs/render.py [--check]

A page holds `<!-- KIND: NAME -->` … `<!-- end -->`; what stands between the two lines is made from records in results/:

    table           results/NAME/ROW-seedN.json, a line for each row
    paper           a table that `unveil paper` wrote to results/paper; `across`: some of them on every data set
    claims          the paper's claims; `parameters`: its six parameter figures; `from-scratch`: training on two cores
    given, versus, auto, forecasts, general, fit, ablation, counts, dimensions      on own data
    reviewers, continued, review        what simulated reviewers reached, and how quick the review page is
    bench, limits, faults, stability, and the kinds of benchmarks/cluster_tables.py

With --check nothing is written, and the exit code says whether a page is out of date.
"""

import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks import (  # noqa: E402
    claims,
    cluster_tables,
    encoder_tables,
    from_scratch,
    own_records,
    own_tables,
    parameters,
    reliability,
)

from unveil.experiments import experiment  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OWN_DATA = ("given", "versus", "auto", "forecasts", "general", "summary")
REVIEW = ("reviewers", "continued", "review")
BENCHMARKS = ("bench", "limits", "fit", "ablation", "counts", "dimensions", "encoders", "image-sizes", "text-encoders",
              "image-path", "sound", "parameters", "from-scratch")  # fmt: skip
KINDS = "|".join(
    (
        "faults",
        "stability",
        "table",
        "paper",
        "across",
        "claims",
        *BENCHMARKS,
        *OWN_DATA,
        *REVIEW,
        *cluster_tables.TABLES,
    )
)
MARKER = re.compile(rf"(<!-- (?P<kind>{KINDS}): (?P<name>[\w./+-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = ("", "seeds", "ACC %", "NMI", "ARI", "test ACC %", "known test %", "pre-training s", "discovery s")
HEADER = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


FAULTS = {
    "kills": "killed at a random moment",
    "changes": "killed before a change of a file",
    "twice": "killed twice in a row",
    "ranks": "ranks of `torchrun` killed",
    "reviews": "killed while reviewing",
    "together": "two processes on one run directory or store",
    "disks": "full disk",
    "read-only": "read-only directory",
    "clocks": "clock goes backwards",
    "readers": "fuzzed files, 13 kinds",
    "archives": "fuzzed archive",
    "page": "fuzzed review page",
    "log": "damaged review",
    "damages": "damaged file of a run or the store",
}
"""What each part of `python -m tests.faults` does."""


def rendered(page: str) -> str:
    """The page with every table made anew."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}{MAKERS[match['kind']](ROOT / 'results' / match['name'])}\n{match[4]}"

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
    lines.append(line("k-means, features of unit length", unique(everything, "kmeans"), everything[:1]))
    ordered = sorted(rows, key=lambda name: -mean([r["metrics"]["acc"] for r in rows[name]]))
    lines += [line(name, [r["metrics"] for r in rows[name]], rows[name]) for name in reversed(ordered)]
    return "\n".join(lines)


def faults(path: Path) -> str:
    """A line for each kind of fault: how many there were, and what became of them."""
    if not path.with_suffix(".json").exists():
        return "*Not measured yet.*"
    record = record_at(path)
    kinds, bad = ("exact", "made again", "refused", "read"), ("lost", "silently wrong", "traceback")
    lines = [f"| fault | cases | {' | '.join(kinds)} | {', '.join(bad)} |", "|---" * (len(kinds) + 3) + "|"]
    for name, part in record["parts"].items():
        counts = sum((Counter[str](outcome) for outcome in part["outcomes"].values()), Counter[str]())
        cells = [
            FAULTS.get(name, name),
            f"{sum(counts.values()):,}",
            *(f"{counts[kind]:,}" for kind in kinds),
            str(sum(counts[kind] for kind in bad)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def reviewers(folder: Path) -> str:
    """The mean accuracy after some answers, by the order of the questions."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if not records:
        return "*Not measured yet.*"
    answers = list(records[0]["rows"][0]["most useful first"])
    lines = [f"| tasks | questions | {' | '.join(answers)} answers |", "|---" * (len(answers) + 2) + "|"]
    for group in ("fitted on", "held out"):
        of_group = [record for record in records if record["group"] == group]
        rows = [row for record in of_group for row in record["rows"]]
        for order in ("most useful first", "class by class") if rows else ():
            cells = [f"{100 * mean([row[order][n] for row in rows]):.1f}" for n in answers]
            lines.append(f"| {len(of_group)}, {group} | {order} | {' | '.join(cells)} |")
    return "\n".join(lines)


def continued(folder: Path) -> str:
    """The accuracy of a review and of the fit that goes on from it."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    records = [record for record in records if record["rows"][0]["continued"]]
    if not records:
        return "*Not measured yet.*"
    answers = list(records[0]["rows"][0]["most useful first"])
    lines = [f"| task | accuracy % of | {' | '.join(answers)} answers |", "|---" * (len(answers) + 2) + "|"]
    for record in records:
        for title, key in (("the review", "most useful first"), ("the next fit", "continued")):
            curves = [row[key] for row in record["rows"]]
            cells = [f"{100 * mean([curve[n] for curve in curves]):.1f}" if n in curves[0] else "" for n in answers]
            lines.append(f"| {record['task']} | {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def review(path: Path) -> str:
    """What was measured of the review page."""
    record = record_at(path)
    lines = [f"| {record['items']:,} items, {record['clusters']} clusters | |", "|---" * 2 + "|"]
    for what in record["goals"]:
        lines.append(f"| {what} | {record['measured'][what]:.3g} |")
    if "slowest action, s of the processor" in record:
        lines.append(f"| slowest action, s of the processor | {record['slowest action, s of the processor']:.3g} |")
    if thumbnails := record.get("thumbnails"):
        both = f"{thumbnails['embeddings, s']:.1f}, {thumbnails['with thumbnails, s']:.1f}"
        lines.append(f"| embeddings of {thumbnails['files']:,} photographs, s: alone, with thumbnails | {both} |")
    return "\n".join(lines)


def bench(path: Path) -> str:
    """Every part of a step beside the literal procedure."""
    lines = ["| what | precision | literal ms | unveil ms | |", "|---" * 5 + "|"]
    for row in record_at(path)["rows"]:
        digits = 0 if row["unit"] == "images/s" else 1
        literal = "" if row["literal_seconds"] is None else f"{1000 * row['literal_seconds']:.0f}"
        reached = f"{row['value']:.{digits}f} {row['unit']}"
        cells = [row["name"], row["precision"], literal, f"{1000 * row['seconds']:.1f}", reached]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def limits(path: Path) -> str:
    """Every part of a step beside the limit of the machine."""
    lines = ["| precision | part | GFLOP | ms | its convolutions alone, ms | share of the peak |", "|---" * 6 + "|"]
    for report in record_at(path)["reports"]:
        for part in report["parts"]:
            if part["fraction"] is None:
                continue
            alone = "" if part["convolutions"] is None else f"{1000 * part['convolutions']:.0f}"
            share = f"{100 * part['fraction']:.0f} %"
            cells = [report["precision"], part["name"], f"{part['flops'] / 1e9:.1f}", f"{1000 * part['seconds']:.1f}"]
            lines.append(f"| {' | '.join([*cells, alone, share])} |")
    return "\n".join(lines)


def paper(path: Path) -> str:
    """What matters most of a table that `unveil paper` wrote, and the command that makes it again."""
    file = path.with_suffix(".md")
    if not file.exists():
        return "*Not measured yet.*"
    scale, _, data = path.parent.name.partition("-")
    data, _, imbalance = data.partition("-imbalance")
    options = ("" if scale == "desk" else f" --scale {scale}") + (imbalance and f" --imbalance {imbalance}")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in file.read_text(encoding="utf-8").splitlines()
    ]
    seeds = max(int(row[rows[0].index("seeds")]) for row in rows[2:])
    if seeds != experiment.scale(scale, data).seeds:
        options += f" --seeds {seeds}"
    shown = [rows[0].index(title) for title in ("", "ACC %", "beside", "effect")]
    text = "\n".join(f"| {' | '.join(row[column] for column in shown)} |" for row in rows)
    return f"{text}\n\n`unveil paper {path.name} --data {data}{options}`"


def fit(path: Path) -> str:
    """How long a fit takes, and how much memory."""
    if not path.with_suffix(".json").exists():
        return "*Not measured yet.*"
    lines = ["| rows | file MB | s | MB above what was there before |", "|---" * 4 + "|"]
    for row in record_at(path)["rows"]:
        lines.append(f"| {row['rows']:,} | {row['file_mb']:,} | {row['seconds']:.0f} | {row['peak_mb']:,} |")
    return "\n".join(lines)


def ablation(folder: Path) -> str:
    """Accuracy of every variant on each task, mean over seeds, and the mean over tasks; first that of whole fits."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if not records:
        return "*Not measured yet.*"
    lines = [f"| | {' | '.join(record['task'] for record in records)} | mean |", "|---" * (len(records) + 2) + "|"]
    fits = [sorted((folder.parent / "own-data" / record["task"]).glob("given-seed*.json")) for record in records]
    rows = {"the whole fit": [[json.loads(path.read_text())["acc"] for path in paths] for paths in fits]}
    for name in records[0]["accuracy"]:
        title = "without the vote of neighbors" if name == "as it is" else f"without the vote: {name}"
        rows[title] = [record["accuracy"][name] for record in records]
    for title, accuracies in rows.items():
        scores = [100 * mean(accuracy) for accuracy in accuracies]
        lines.append(f"| {title} | {' | '.join(f'{score:.1f}' for score in [*scores, mean(scores)])} |")
    return "\n".join(lines)


def stored(table: Callable[[dict[str, Any]], str]) -> Callable[[Path], str]:
    """A table of one record, where it is there."""
    return lambda path: table(record_at(path)) if path.with_suffix(".json").exists() else "*Not measured yet.*"


def own_data(kind: str) -> Callable[[Path], str]:
    """A table of the records of `python -m benchmarks.own_data`."""

    def make(folder: Path) -> str:
        return str(getattr(own_tables, kind)(own_records.read(folder)))

    return make


def record_at(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return record


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


MAKERS = {
    "reviewers": reviewers,
    "continued": continued,
    "review": review,
    "faults": faults,
    "stability": reliability.stability_table,
    "table": table,
    "bench": bench,
    "limits": limits,
    "paper": paper,
    "fit": fit,
    "ablation": ablation,
    "claims": claims.table,
    "across": claims.across,
    "counts": stored(own_tables.counts),
    "dimensions": stored(own_tables.dimensions),
    "encoders": encoder_tables.encoders,
    "image-sizes": stored(encoder_tables.image_sizes),
    "text-encoders": stored(encoder_tables.text_encoders),
    "image-path": stored(encoder_tables.image_path),
    "sound": stored(encoder_tables.sound),
    "parameters": parameters.table,
    "from-scratch": from_scratch.table,
    **{kind: own_data(kind) for kind in OWN_DATA},
    **cluster_tables.TABLES,
}


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
