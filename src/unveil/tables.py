"""Build settings dataclasses from tables of plain values, as in TOML. Errors name the key."""

import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from unveil.errors import UnveilError, suggest

T = TypeVar("T")
Table = dict[str, Any]
Elsewhere = Callable[[str, str, Iterable[str]], str]


def nowhere(key: str, where: str, names: Iterable[str]) -> str:
    """No suggestion: an unknown key belongs to no other table."""
    return ""


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> Table:
    """`base` with the values of `change`, table by table; both stay as they are."""
    merged = dict(base)
    for key, value in change.items():
        inner = merged.get(key)
        merged[key] = merge(inner if isinstance(inner, dict) else {}, value) if isinstance(value, dict) else value
    return merged


def build(cls: type[T], table: Mapping[str, Any], where: str, elsewhere: Elsewhere = nowhere) -> T:
    """An instance of the dataclass; every key is checked. `where` is the prefix of its keys, such as `data.`.

    `elsewhere` (key, where, names) may suggest where an unknown key belongs, instead of the most similar name.
    """
    hints = get_type_hints(cls)
    specs = {spec.name: spec for spec in fields(cls)}  # type: ignore[arg-type]
    values: Table = {}
    for key, value in table.items():
        if key not in specs:
            raise UnveilError(f"unknown key '{where}{key}'{elsewhere(key, where, specs) or suggest(key, specs)}")
        values[key] = _coerce(value, hints[key], f"{where}{key}", elsewhere)
    for key, spec in specs.items():
        if key not in values and spec.default is MISSING and spec.default_factory is MISSING:
            raise UnveilError(f"the recipe has no '{where}{key}': add it")
    try:
        return cls(**values)
    except UnveilError as error:
        raise UnveilError(f"{where}{error}") from None


def _coerce(value: Any, hint: Any, key: str, elsewhere: Elsewhere) -> Any:
    """`value` as the annotated type, or an error that says what the key takes."""
    if is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise UnveilError(f"'{key}' is a table of settings, got {value!r}")
        return build(cast(type[Any], hint), value, f"{key}.", elsewhere)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        for option in args:
            try:
                return _coerce(value, option, key, elsewhere)
            except UnveilError:
                continue
    elif origin is Literal:
        if value in args:
            return value
        raise UnveilError(f"'{key}' is {value!r}{suggest(str(value), args)}")
    elif origin is tuple and isinstance(value, list | tuple):
        if args[-1] is not Ellipsis and len(args) != len(value):
            raise UnveilError(f"'{key}' takes {len(args)} values, got {len(value)}")
        return tuple(_coerce(item, args[0], key, elsewhere) for item in value)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) <= sys.float_info.max:  # not a number, infinite, or a whole number beyond all others
            raise UnveilError(f"{key} is {value!r}: give a finite number")
        return float(value)
    elif hint is int and type(value) is int:
        if abs(value) >= 2**63:
            raise UnveilError(f"{key} is a number of {len(str(value))} digits: give a smaller one")
        return value
    elif isinstance(hint, type) and type(value) is hint:
        return value
    raise UnveilError(f"'{key}' is {value!r}, expected {_describe(hint)}")


def _describe(hint: Any) -> str:
    words = {int: "a whole number", float: "a number", str: "a string", bool: "true or false", type(None): "nothing"}
    if hint in words:
        return words[hint]
    args = [arg for arg in get_args(hint) if arg not in (type(None), Ellipsis)]
    if get_origin(hint) is tuple:
        count = "" if Ellipsis in get_args(hint) else f"{len(args)} "
        return f"a list of {count}{_describe(args[0]).removeprefix('a ')}s"
    return " or ".join(_describe(arg) for arg in args)
