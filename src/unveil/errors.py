"""The one exception that reaches people, and how a mistyped word is answered."""

import difflib
from collections.abc import Iterable


class UnveilError(ValueError):
    """Bad input or a failed environment: what was given, what was expected, what to do.

    The command line prints the message alone and exits with code 2.
    """


def suggest(word: str, choices: Iterable[str]) -> str:
    """`; did you mean X?`, or the list of choices where nothing is close."""
    choices = list(choices)
    close = difflib.get_close_matches(word, choices, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(choices)}"
