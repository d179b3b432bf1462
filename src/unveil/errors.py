"""The one exception that reaches people: it says what was given, what was expected and what to do."""


class UnveilError(ValueError):
    """Bad input or a failed environment. The command line prints the message alone and exits with code 2."""
