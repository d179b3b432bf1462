"""How large a file of others may become in memory: a few bytes can unpack to very many."""

import os

from unveil.errors import UnveilError

MOST_COLUMNS = 1_000_000
MOST_CELLS = 1_000_000_000  # 8 GB of numbers


def check_size(columns: int, cells: int, where: object) -> None:
    """Raise an error for a table of more columns or cells than are read (UNVEIL_MOST_COLUMNS, UNVEIL_MOST_CELLS)."""
    for count, what, name, usual in (
        (columns, "columns", "UNVEIL_MOST_COLUMNS", MOST_COLUMNS),
        (cells, "cells", "UNVEIL_MOST_CELLS", MOST_CELLS),
    ):
        if count > (most := _most(name, usual)):
            raise UnveilError(
                f"{where} has {count:,} {what}, and at most {most:,} are read: split the file, or raise the limit with "
                f"{name}={count}"
            )


def _most(name: str, usual: int) -> int:
    given = os.environ.get(name, "").replace("_", "")
    if not given:
        return usual
    if not given.isdecimal():
        raise UnveilError(f"{name}={given} is not a number: give one such as {usual}")
    return int(given)
