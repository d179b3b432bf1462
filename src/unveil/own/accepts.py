"""What an option accepts and what is said about it, once for the command line and the estimator. The options themselves
stand in `own/parameters.py`."""

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from unveil.errors import UnveilError, suggest


def plain(value: Any) -> Any:
    """A value as JSON keeps it."""
    import numpy as np  # late, as all that is heavy: the command line imports this file for its help

    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value


@dataclass(frozen=True)
class Accepts:
    """A test of values, and words for what passes it. None passes where it is the default."""

    test: Callable[[Any], bool]
    words: str
    among: Callable[[], Sequence[str]] | None = None
    """The names that there are, where the words do not list them."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What is to be said about an option beside its type and default."""

    accepts: Accepts
    help: str
    cli: str = ""
    """What the help adds on the command line."""
    python: str = ""
    """What the documentation of the estimator adds."""
    setting: str | None = None
    """The `table.key` of a recipe that it stands for."""
    names: tuple[str, ...] = ()
    """On the command line, where there are several."""


def whole(least: int, or_word: str | None = None) -> Accepts:
    """Whole numbers from `least` on, or one word."""
    words = f"a whole number of {least} or more"
    return Accepts(
        lambda value: value >= least if type(plain(value)) is int else isinstance(value, str) and value == or_word,
        words if or_word is None else f"{words}, or '{or_word}'",
    )


def named(words: str, among: Callable[[], Sequence[str]] | None = None) -> Accepts:
    """Text that is not empty, or a path."""
    return Accepts(lambda value: isinstance(plain(value), str) and bool(str(value).strip()), words, among)


def matching(pattern: str, words: str) -> Accepts:
    """Text of this form."""
    return Accepts(lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None, words)


FLAG = Accepts(lambda value: type(plain(value)) is bool, "True or False")
COLUMN, DIRECTORY = named("the name of a column"), named("a directory")


def options_of(kind: Any) -> dict[str, Option]:
    """The options that a class of these has, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        spec.name: next(one for one in hints[spec.name].__metadata__ if isinstance(one, Option))
        for spec in fields(kind)
    }


def check(options: Any, *, flags: bool = False) -> None:
    """Raise an error that says which option is wrong, what it is, and what it takes; `flags`: as the command line calls
    it."""
    for spec, option in zip(fields(options), options_of(type(options)).values(), strict=True):
        value, accepts = getattr(options, spec.name), option.accepts
        if value is None and spec.default is None:
            continue
        name, words = (flag(spec.name), accepts.words.replace("'", "")) if flags else (spec.name, _takes(spec, option))
        if not accepts.test(value):
            raise UnveilError(f"{name} is {_short(value)}: give {words}")
        if accepts.among is not None and value not in accepts.among():
            raise UnveilError(f"{name} is {value!r}{suggest(value, accepts.among())}")


def flag(name: str) -> str:
    """An option as the command line calls it."""
    return f"--{name.strip('_').replace('_', '-')}"


def parameters(kind: Any) -> str:
    """The options of a class, as a docstring lists parameters."""
    entries = []
    for spec, option in zip(fields(kind), options_of(kind).values(), strict=True):
        text = textwrap.fill(f"{option.help} {option.python}".strip(), 112)
        entries.append(
            f"{spec.name} : {_takes(spec, option)}; default {spec.default!r}\n{textwrap.indent(text, '    ')}"
        )
    return "\n".join(entries)


def _takes(spec: Any, option: Option) -> str:
    """What a parameter of the estimator takes."""
    return option.accepts.words if spec.default is not None else f"{option.accepts.words}, or None"


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
