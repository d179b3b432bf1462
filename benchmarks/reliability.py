"""Records of how well the tests watch the code (branch coverage, mutants), and the table of the spread over seeds.

make coverage    tests with coverage.py    → python -m benchmarks.reliability coverage build/coverage.json
make mutants     changed code by mutmut    → python -m benchmarks.reliability mutants mutants
"""

import argparse
import json
import platform
import random
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SURVIVED = 0
"""Exit code of tests that notice nothing."""


def coverage(path: Path) -> dict[str, Any]:
    """The record of a report of `coverage json`: lines and branches by package, and the files with most to cover."""
    report = json.loads(path.read_text())
    packages: dict[str, Counter[str]] = {}
    files = {}
    for name, found in report["files"].items():
        inside = name.partition("src/unveil/")[2]
        counts = {key: found["summary"][key] for key in ("num_statements", "covered_lines", "num_branches")}
        counts["covered_branches"] = found["summary"]["covered_branches"]
        package = f"{inside.partition('/')[0]}/" if "/" in inside else "modules"
        packages.setdefault(package, Counter()).update(counts)
        if counts["num_statements"]:
            files[inside] = share(counts)
    total = sum(packages.values(), Counter[str]())
    return {
        "percent": share(total),
        "branches_percent": round(100 * total["covered_branches"] / total["num_branches"], 1),
        "packages": {name: {"percent": share(counts), **counts} for name, counts in sorted(packages.items())},
        "least": dict(sorted(files.items(), key=lambda item: item[1])[:10]),
    }


def share(counts: Any) -> float:
    """Percent of lines and branches that were run."""
    run = counts["covered_lines"] + counts["covered_branches"]
    return round(100 * run / max(1, counts["num_statements"] + counts["num_branches"]), 1)


def mutants(folder: Path) -> dict[str, Any]:
    """The record of what mutmut left: for each file how many mutants it has, how many were tried, how many died."""
    files = {}
    for path in sorted(folder.rglob("*.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"]
        tried = {name: code for name, code in codes.items() if code is not None}
        survivors = sorted(name for name, code in tried.items() if code == SURVIVED)
        if codes:
            inside = str(path.relative_to(folder)).removeprefix("src/unveil/").removesuffix(".meta")
            files[inside] = {"mutants": len(codes), "tried": len(tried), "died": len(tried) - len(survivors)}
            files[inside]["survivors"] = survivors
    tried, died = (sum(found[key] for found in files.values()) for key in ("tried", "died"))
    return {"percent": round(100 * died / max(1, tried), 1), "tried": tried, "died": died, "files": files}


def sample(folder: Path, most: int) -> list[str]:
    """The names of at most so many mutants of each file, always the same ones."""
    chosen = []
    for path in sorted(folder.rglob("*.meta")):
        names = sorted(json.loads(path.read_text())["exit_code_by_key"])
        chosen += sorted(random.Random(0).sample(names, min(most, len(names))))
    return chosen


def stability_table(path: Path) -> str:
    """A line for each part of `benchmarks.stability`: accuracy over seeds, collapsed runs, actions of the guard."""
    record = _read(path)
    if record is None:
        return "*Not measured yet.*"
    columns = ("", "seeds", "ACC %, mean", "worst", "best", "deviation", "collapsed", "guard acted in")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, part in record.items():
        runs = part["runs"]
        found = [100 * run["acc"] for run in runs]
        numbers = statistics.fmean(found), min(found), max(found), statistics.stdev(found)
        acted = str(sum(bool(run["acted"]) for run in runs)) if "guard" in name else "—"
        cells = [name, str(len(runs)), *(f"{number:.1f}" for number in numbers)]
        lines.append(f"| {' | '.join([*cells, str(sum(run['collapsed'] for run in runs)), acted])} |")
    return "\n".join(lines)


def _read(path: Path) -> Any:
    path = path.with_suffix(".json")
    return json.loads(path.read_text()) if path.exists() else None


def main() -> None:
    from unveil.hardware import commit

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("coverage", "mutants", "sample"))
    parser.add_argument("source", type=Path)
    parser.add_argument("--most", type=int, default=25, help="mutants of a file in a sample")
    parser.add_argument("--note", default="", help="what was left out")
    options = parser.parse_args()
    if options.what == "sample":
        print(*sample(options.source, options.most))
        return
    record = {"coverage": coverage, "mutants": mutants}[options.what](options.source)
    record |= {"note": options.note} if options.note else {}
    record |= {"commit": commit(), "python": platform.python_version()}
    name = {"coverage": "coverage.json", "mutants": "mutation.json"}[options.what]
    (ROOT / "results" / name).write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps({key: record[key] for key in record if key not in ("files", "packages")}, indent=2))


if __name__ == "__main__":
    main()
