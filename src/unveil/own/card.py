"""README.md of a saved estimator: a model card with a YAML head, as model hubs show it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unveil import files

MOST_CLASSES = 50


def write_card(folder: Path, record: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Write README.md. `sizes`: items of each class, by name."""
    head = {"library_name": "unveil", "tags": ["novel-class-discovery", "clustering", "tabular"]}
    known, novel = list(record["known"]), list(record["novel"])
    lines = [
        "---",
        *(f"{key}: {json.dumps(value)}" for key, value in head.items()),
        "---",
        "",
        f"# {record['name']}",
        "",
        f"Novel class discovery: {len(known)} known and {len(novel)} novel classes in {sum(sizes.values()):,} items.",
        "",
        *(f"- {sentence}" for sentence in record["summary"].values() if sentence),
        *(f"- Warning: {sentence}" for sentence in record["warnings"]),
        "",
        "## Use it",
        "",
        "```python",
        "from unveil import NovelClassDiscovery",
        "",
        'discovery = NovelClassDiscovery.load("FOLDER")',
        "discovery.predict(X_new, coverage=0.95)",
        "```",
        "",
        "or `unveil predict FOLDER FILE`, `unveil report FOLDER`, `unveil review FOLDER`, `unveil export FOLDER`.",
        "",
        "## Classes",
        "",
        "| class | kind | items |",
        "|---|---|---|",
    ]
    for name in [*novel, *known][:MOST_CLASSES]:
        kind = "novel" if name in set(novel) else "known"
        lines.append(f"| {_cell(name)} | {kind} | {sizes.get(name, 0):,} |")
    if len(known) + len(novel) > MOST_CLASSES:
        lines.append(f"| … | {len(known) + len(novel) - MOST_CLASSES} more | |")
    environment = record.get("environment") or {}
    lines += ["", "## How it was made", "", f"- method: {record['method']}, seed {record['seed']}"]
    lines += [
        f"- {key}: {value}" for key, value in environment.items() if key in ("unveil", "commit", "python", "torch")
    ]
    lines += ["- settings: `config.toml`; everything else: `record.json`", ""]
    files.write(folder / "README.md", "\n".join(lines))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
