"""Reading and writing recipes: TOML in, `Settings` out, and back.

A recipe may start with `extends = "other"` and then only says what differs. A mistyped key is an error that
suggests the right one.
"""

import difflib
import json
import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from unveil.errors import UnveilError
from unveil.settings import Settings

T = TypeVar("T")
Table = dict[str, Any]


def names() -> list[str]:
    """The recipes that come with the package."""
    folder = resources.files("unveil") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(recipe: str, overrides: Iterable[str] = ()) -> Settings:
    """The settings of a shipped recipe's name or a TOML file, with `table.key=value` overrides."""
    table = _read(recipe)
    table.setdefault("name", Path(recipe).stem)
    for override in overrides:
        _override(table, override)
    return from_table(table)


def from_table(table: Mapping[str, Any]) -> Settings:
    """Settings from nested tables; every key is checked."""
    return _build(Settings, table, "")


def parse(text: str, source: str) -> Settings:
    """Settings from the text of a resolved recipe."""
    return from_table(_toml(text, source))


def read(path: Path) -> Settings:
    """Settings of a resolved recipe, such as the `config.toml` of a run."""
    return parse(_text(path), str(path))


def dump(settings: Settings) -> str:
    """A resolved recipe as TOML, every value written out."""
    table = to_table(settings)
    lines = [f"{key} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    for name, inner in table.items():
        if isinstance(inner, dict):
            lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in inner.items())]
    return "\n".join(lines) + "\n"


def to_table(settings: Any) -> Table:
    """Nested dataclasses as nested tables without the unset values, which TOML cannot hold."""
    table: Table = {}
    for spec in fields(settings):
        value = getattr(settings, spec.name)
        if is_dataclass(value):
            table[spec.name] = to_table(value)
        elif value is not None:
            table[spec.name] = list(value) if isinstance(value, tuple) else value
    return table


def build(cls: type[T], table: Mapping[str, Any]) -> T:
    """A settings dataclass from a table that `to_table` made."""
    return _build(cls, table, "")


def changed(config: Any) -> Table:
    """The values that differ from the defaults: a setting that a later version adds leaves this as it is."""
    table = to_table(config)
    return {spec.name: table[spec.name] for spec in fields(config) if getattr(config, spec.name) != spec.default}


def changed_at(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with values changed at `table.key`, or at `key` of the top level."""
    for path, value in changes.items():
        name, _, key = path.rpartition(".")
        inner = replace(getattr(settings, name), **{key: value}) if name else value
        settings = replace(settings, **{name or key: inner})
    return settings


def difference(stored: Settings, given: Settings) -> str:
    """The first setting that differs, in words; the machine's settings may change between start and resume."""
    return _difference(to_table(stored), to_table(given))


def _difference(stored: Table, given: Table, where: str = "") -> str:
    for key in sorted({*stored, *given} - {"machine"}):
        old, new = stored.get(key), given.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := _difference(old, new, f"{where}{key}."):
                return inner
        elif old != new:
            return f"{where}{key} is {old!r} there and {new!r} here"
    return ""


def suggest(word: str, choices: Iterable[str]) -> str:
    """`; did you mean X?`, or the list of choices where nothing is close."""
    choices = list(choices)
    near = difflib.get_close_matches(word, choices, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; there are: {', '.join(choices)}"


def _read(recipe: str, extended_by: tuple[str, ...] = ()) -> Table:
    if recipe in extended_by:
        raise UnveilError(
            f"{extended_by[0]} extends itself ({' → '.join((*extended_by, recipe))}): remove one 'extends'"
        )
    path = Path(recipe)
    if path.suffix == ".toml":
        if not path.is_file():
            raise UnveilError(
                f"no recipe file at {path}: check the path, or use a shipped recipe ({', '.join(names())})"
            )
        text = _text(path)
    elif recipe in names():
        text = (resources.files("unveil") / "recipes" / f"{recipe}.toml").read_text(encoding="utf-8")
    else:
        raise UnveilError(f"no recipe called '{recipe}'{suggest(recipe, names())} (a file must end in .toml)")
    table = _toml(text, recipe)
    parent = table.pop("extends", None)
    if parent is None:
        return table
    if path.suffix == ".toml" and str(parent).endswith(".toml"):
        parent = str(path.parent / parent)
    return _merge(_read(str(parent), (*extended_by, recipe)), table)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnveilError(f"{path} cannot be read ({error}): give a TOML file in UTF-8") from None


def _toml(text: str, source: str) -> Table:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnveilError(f"{source} is not valid TOML: {error}; correct the file") from None


def _merge(base: Table, change: Table) -> Table:
    merged = dict(base)
    for key, value in change.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if nested else value
    return merged


def _override(table: Table, override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise UnveilError(f"--set got '{override}': write it as table.key=value, for example discovery.alpha=0.3")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string
    *path, last = key.strip().split(".")
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UnveilError(f"--set {override}: '{part}' is a value, not a table")
    table[last] = None if text.strip().lower() == "none" else value


def _build(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    hints = get_type_hints(cls)
    specs = {spec.name: spec for spec in fields(cls)}  # type: ignore[arg-type]
    values: Table = {}
    for key, value in table.items():
        if key not in specs:
            raise UnveilError(f"unknown key '{where}{key}'{_elsewhere(key) or suggest(key, specs)}")
        values[key] = _coerce(value, hints[key], f"{where}{key}")
    for key, spec in specs.items():
        if key not in values and spec.default is MISSING and spec.default_factory is MISSING:
            raise UnveilError(f"the recipe has no '{where}{key}': add it")
    try:
        return cls(**values)
    except UnveilError as error:
        raise UnveilError(f"{where}{error}") from None


def _elsewhere(key: str) -> str:
    """`; did you mean X?` for a key that was given in the wrong table, or without one."""
    tables = {name: hint for name, hint in get_type_hints(Settings).items() if is_dataclass(hint)}
    found = [f"{name}.{key}" for name, hint in tables.items() if key in {spec.name for spec in fields(hint)}]
    found = [key] if key in get_type_hints(Settings) else found
    return f"; did you mean '{found[-1]}'?" if found else ""


def _coerce(value: Any, hint: Any, key: str) -> Any:
    """`value` as the annotated type, or an error that says what the key takes."""
    if is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise UnveilError(f"'{key}' is a table of settings, got {value!r}")
        return _build(cast(type[Any], hint), value, f"{key}.")
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        for option in args:
            try:
                return _coerce(value, option, key)
            except UnveilError:
                continue
    elif origin is Literal:
        if value in args:
            return value
        raise UnveilError(f"'{key}' is {value!r}{suggest(str(value), args)}")
    elif origin is tuple and isinstance(value, list | tuple):
        if args[-1] is not Ellipsis and len(args) != len(value):
            raise UnveilError(f"'{key}' takes {len(args)} values, got {len(value)}")
        return tuple(_coerce(item, args[0], key) for item in value)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
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


def _value(value: Any) -> str:
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML has no bare DEL
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)
