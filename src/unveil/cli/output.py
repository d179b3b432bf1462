"""What commands print: a table for people, or JSON for programs (`--json`)."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

AsJson = Annotated[bool, Parameter(name="--json")]
"""The option `--json` of commands that print tables."""


def print_json(value: Any) -> None:
    """Print a value as JSON; paths and the like become text."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]], **options: Any) -> None:
    """Print a table for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, **options)
    for row in rows:
        table.add_row(*map(str, row))
    Console(markup=False).print(table)


def size_text(size: float) -> str:
    """A number of bytes for people, such as 1.5 MB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
