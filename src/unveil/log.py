"""Messages of library calls: to the logger `unveil`, or to the terminal where a call was asked to be verbose."""

import io
import logging
from typing import IO, cast

from rich.console import Console

LOGGER = logging.getLogger("unveil")
LOGGER.addHandler(logging.NullHandler())


class _Lines(io.TextIOBase):
    """A text file whose lines go to the logger."""

    def __init__(self) -> None:
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.strip():
                LOGGER.info("%s", line.rstrip())
        return len(text)


def console(*, verbose: bool) -> Console:
    """Where a library call says what it does: the terminal, or nothing but the log."""
    if verbose:
        return Console(stderr=True, markup=False)
    return Console(file=cast(IO[str], _Lines()), markup=False, quiet=not LOGGER.isEnabledFor(logging.INFO))
