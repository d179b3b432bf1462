"""What each system reached with every try on known classes: `unveil paper tuning` and `tuning-own`."""

import csv
from pathlib import Path


def tries(folder: Path) -> dict[str, dict[str, float]]:
    """By system: ACC in % of each try. Rows are named "try: system" in the one table and "system: try" in the other."""
    found: dict[str, dict[str, float]] = {}
    for name, system_first in (("tuning", False), ("tuning-own", True)):
        path = folder / f"{name}.csv"
        if not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                first, _, second = row["row"].partition(": ")
                system, what = (first, second) if system_first else (second, first)
                found.setdefault(system, {})[what] = float(row["acc_mean"])
    return found


def table(folder: Path) -> str:
    """Markdown: a line for each system and try, the best of a system in bold."""
    found = tries(folder)
    if not found:
        return "*Not measured yet.*"
    shared = list(dict.fromkeys(what for of_system in found.values() for what in of_system))
    shared = [what for what in shared if all(what in of_system for of_system in found.values())]
    lines = [f"| system | {' | '.join(shared)} | of its own |", "|---" * (len(shared) + 2) + "|"]
    for system, of_system in found.items():
        most = max(of_system.values())
        shown = {what: f"**{acc:.1f}**" if acc == most else f"{acc:.1f}" for what, acc in of_system.items()}
        own = ", ".join(f"{what}: {acc}" for what, acc in shown.items() if what not in shared)
        lines.append(f"| {system} | {' | '.join(shown[what] for what in shared)} | {own} |")
    return "\n".join(lines)
