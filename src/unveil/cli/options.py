"""Options of `own/parameters.py` on the command line: cyclopts takes names, help and types from there."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar, get_type_hints

from cyclopts import Parameter, Token

from unveil.own.accepts import Option, flag, options_of
from unveil.own.parameters import OPTIONS

T = TypeVar("T")


def command_line(cls: type[T]) -> type[T]:
    """Make a dataclass of options one that a command takes as its argument: each field is an option."""
    types = get_type_hints(cls)
    cls.__annotations__ = {
        name: Annotated[types[name], option, _parameter(name, option, types[name])]
        for name, option in options_of(cls).items()
    }
    return Parameter(name="*")(cls)


def parameter(name: str) -> Parameter:
    """A single option of the table, for a command that takes few of them."""
    return _parameter(name, OPTIONS[name])


def _parameter(name: str, option: Option, kind: Any = None) -> Parameter:
    return Parameter(
        name=list(option.names) or [flag(name)],
        help=f"{option.help} {option.cli}".strip(),
        allow_leading_hyphen=False,
        converter=_number_or_word if kind == int | str else None,
    )


def _number_or_word(_: Any, tokens: Sequence[Token]) -> int | str:
    text = tokens[0].value
    return int(text) if text.isdecimal() else text
