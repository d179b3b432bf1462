"""The exception type for user-facing errors, and suggestions for mistyped names."""

import difflib
from collections.abc import Iterable


class UnveilError(ValueError):
    """Bad input or a failed environment: what was given, what was expected, what to do.

    The command line prints the message alone and exits with code 2.
    """


class DamagedError(UnveilError):
    """A file is not what was written: bits have changed, or a part is missing."""


def suggest(word: str, choices: Iterable[str]) -> str:
    """The end of an error message: `; did you mean X?`, or all choices where none is similar."""
    choices = list(choices)
    close = difflib.get_close_matches(word, choices, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(choices)}"
