"""Reading and writing recipes: TOML in, `Settings` out, and back.

A recipe may start with `extends = "other"` and then only says what differs. A mistyped key is an error that
suggests the right one.
"""

import difflib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, get_type_hints

from unveil.errors import UnveilError, suggest
from unveil.settings import Settings
from unveil.tables import Table, build, merge

NOTHING: Mapping[str, Any] = {}
DEEPEST = 9
"""Tables in tables in a recipe: far more than there are."""


def names() -> list[str]:
    """The recipes that come with the package."""
    folder = resources.files("unveil") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(recipe: str, changes: Mapping[str, Any] = NOTHING, defaults: Mapping[str, Any] = NOTHING) -> Settings:
    """Load the settings of a shipped recipe, by its name, or of a TOML file.

    `changes` has values by `table.key`; None unsets a setting. Those in `[method]` must be settings of the chosen
    method. `defaults` are applied before them; those in `[method]` that the chosen method does not have are ignored.
    """
    return _resolve(_layers(recipe), defaults, changes, Path(recipe).stem)


def parse_set(texts: Iterable[str]) -> dict[str, Any]:
    """What `--set table.key=value` says, and the lists `set` of experiments: values by `table.key`.

    A value is written as in TOML; a word needs no quotes, and none unsets a setting.
    """
    changes: dict[str, Any] = {}
    for change in texts:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals or not key:
            raise UnveilError(f"--set got '{change}': write it as table.key=value, for example discovery.lr=0.05")
        try:
            changes[key] = None if text.lower() == "none" else tomllib.loads(f"value = {text}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError, ValueError):
            changes[key] = text  # a bare word is a string
    return changes


def from_table(table: Mapping[str, Any]) -> Settings:
    """Settings from nested tables; every key is checked."""
    return _resolve([dict(table)], NOTHING, NOTHING, None)


def parse(text: str, source: str) -> Settings:
    """Settings from the text of a resolved recipe."""
    return from_table(_toml(text, source))


def read(path: Path) -> Settings:
    """Settings of a resolved recipe, such as the `config.toml` of a run."""
    return parse(_text(path), str(path))


def dump(settings: Settings) -> str:
    """A resolved recipe as TOML, every value written out."""
    return "\n".join(_lines(to_table(settings), "")) + "\n"


def _lines(table: Table, name: str) -> Iterator[str]:
    yield from (f"{key} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict))
    for key, value in table.items():
        if isinstance(value, dict):
            yield from ("", f"[{name}{key}]")
            yield from _lines(value, f"{name}{key}.")


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


def changed(config: Any) -> Table:
    """The values that differ from the defaults, so that a setting added by a later version changes nothing here."""
    table: Table = {}
    written = to_table(config)
    for spec in fields(config):
        value = getattr(config, spec.name)
        if is_dataclass(value):
            table |= {spec.name: inner} if (inner := changed(value)) else {}
        elif value != spec.default:
            table[spec.name] = written[spec.name]
    return table


def changed_at(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """A copy of the settings with new values at `table.key` or at a top-level `key`; the method stays the same."""
    for path, value in changes.items():
        name, _, key = path.rpartition(".")
        inner = replace(getattr(settings, name), **{key: value}) if name else value
        settings = replace(settings, **{name or key: inner})
    return settings


def difference(stored: Settings, given: Settings) -> str:
    """A description of the first difference, or "". `machine` is not compared: it may change before a
    resume, but for a precision that is part of the identity of what was pre-trained."""
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


def _resolve(
    layers: list[Table], defaults: Mapping[str, Any], changes: Mapping[str, Any], name: str | None
) -> Settings:
    """Settings from the tables of recipe files (`layers`, extended files first), then defaults, then changes.

    Methods are imported last, as they need torch: a mistyped key in any other table is reported before that.
    """
    table: Table = {} if name is None else {"name": name}
    for layer in layers:
        table = merge(table, layer)
    change_tables: list[Table] = [{}, {}]  # defaults and changes, as tables
    for change_table, values in zip(change_tables, (defaults, changes), strict=True):
        for key, value in values.items():
            _put(change_table, key, value)
            _put(table, key, value)
    if not isinstance(table.get("method", {}), Mapping):
        raise UnveilError(f"'method' is a table of settings, got {table['method']!r}; its name is discovery.method")
    settings = build(Settings, {key: value for key, value in table.items() if key != "method"}, "", _elsewhere)
    from unveil.methods.settings import resolve

    tables = [(_named(layer), layer.get("method", {})) for layer in layers]
    method = resolve(settings.discovery.method, tables, *(values.get("method", {}) for values in change_tables))
    return replace(settings, method=method)


def _named(layer: Table) -> str | None:
    """The method that a recipe file names, if any."""
    stage = layer.get("discovery")
    return str(stage["method"]) if isinstance(stage, Mapping) and "method" in stage else None


def _layers(recipe: str, extended_by: tuple[str, ...] = ()) -> list[Table]:
    """The tables of a recipe and of the recipes that it extends, which come first."""
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
        return [table]
    if path.suffix == ".toml" and str(parent).endswith(".toml"):
        parent = str(path.parent / parent)
    return [*_layers(str(parent), (*extended_by, recipe)), table]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnveilError(f"{path} cannot be read ({error}): give a TOML file in UTF-8") from None


def _toml(text: str, source: str) -> Table:
    try:
        table = tomllib.loads(text)
        if _is_deep(table):
            raise ValueError(f"it has tables in tables, more than {DEEPEST} deep")
        return table
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UnveilError(f"{source} is not valid TOML: {error}; correct the file") from None


def _is_deep(table: Table) -> bool:
    """Whether tables are nested more than `DEEPEST` deep."""
    inner: list[Any] = [table]
    for _ in range(DEEPEST):
        inner = [value for one in inner for value in one.values() if isinstance(value, dict)]
    return bool(inner)


def _put(table: Table, key: str, value: Any) -> None:
    """Put a value at `table.key` into nested tables."""
    *path, last = key.split(".")
    if len(path) > DEEPEST:
        raise UnveilError(f"a setting got a key of {len(path) + 1} parts: write it as table.key")
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UnveilError(f"{key} was given: '{part}' is a value, not a table")
    table[last] = value


def _elsewhere(key: str, where: str, names: Iterable[str]) -> str:
    """`; did you mean X?` for a key that was given in the wrong table, or without one, or mistyped."""
    hints = get_type_hints(Settings)
    if key in hints:
        return f"; did you mean '{key}'?"
    tables = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    homes = [f"{name}.{key}" for name, hint in tables.items() if key in {spec.name for spec in fields(hint)}]
    if homes:
        return f"; did you mean '{homes[-1]}'?"
    if difflib.get_close_matches(key, names, n=1, cutoff=0.75) or where not in ("", "discovery."):
        return ""
    from unveil.methods.settings import closest

    return f"; did you mean 'method.{close}'?" if (close := closest(key)) else ""


def _value(value: Any) -> str:
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML has no bare DEL
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)
