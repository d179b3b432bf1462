"""Which settings of a recipe's `[method]` table hold for the method that was chosen.

A recipe may be extended, and its method changed: then what it says of another method is not used. Where somebody names
a method and a setting together, the setting must be one of that method.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from unveil.errors import UnveilError, suggest
from unveil.methods.catalog import METHODS, settings_class
from unveil.settings import Discovery, MethodSettings
from unveil.tables import Table, build, merge


def resolve(
    name: str,
    recipes: Sequence[tuple[str | None, Mapping[str, Any]]],
    defaults: Mapping[str, Any],
    overrides: Mapping[str, Any],
) -> MethodSettings:
    """Settings of the method `name`.

    `recipes`: of each file, what is extended first, the method it names, if any, and its `[method]` table. A key there
    must be a setting of the method as that file has it; it is used where the chosen method has the very same setting,
    so that for example the temperature of one method is never taken for that of another. `defaults` are used where the
    chosen method has the key at all; `overrides` must fit it.
    """
    chosen, values = settings_class(name), Table()
    written_for = Discovery().method
    for named, table in recipes:
        written_for = named or written_for
        if not isinstance(table, Mapping):
            raise UnveilError(f"'method' is a table of settings, got {table!r}; its name is discovery.method")
        _check(table, written_for)
        origin = settings_class(written_for)
        values = merge(values, {key: table[key] for key in table if _same(key, origin, chosen)})
    for key in defaults:
        if not _owners(key):
            raise UnveilError(_unknown(key, name))
    values = merge(values, {key: defaults[key] for key in defaults if key in _names(chosen)})
    _check(overrides, name)
    return build(chosen, merge(values, overrides), "method.")


def closest(key: str) -> str:
    """The setting of any method that is called so, or nearly so; else nothing."""
    every = list(dict.fromkeys(key for name in METHODS for key in _names(settings_class(name))))
    return key if key in every else next(iter(difflib.get_close_matches(key, every, n=1)), "")


def _check(table: Mapping[str, Any], name: str) -> None:
    """Every key must be a setting of the method `name`."""
    for key in table:
        if key not in _names(settings_class(name)):
            raise UnveilError(_unknown(key, name))


def _unknown(key: str, name: str) -> str:
    if owners := _owners(key):
        return f"'{key}' is a setting of {', '.join(owners)}; the method is {name}"
    names = _names(settings_class(name))
    hint = suggest(key, names) if names else f"; {name} has no settings"
    close = closest(key)
    return f"unknown key 'method.{key}'" + (hint if close in ("", *names) else f"; did you mean '{close}'?")


def _owners(key: str) -> list[str]:
    return [name for name in METHODS if key in _names(settings_class(name))]


def _names(kind: type[MethodSettings]) -> list[str]:
    return [spec.name for spec in fields(kind)]


def _same(key: str, first: type[MethodSettings], second: type[MethodSettings]) -> bool:
    """Whether both have the setting from one definition: dataclasses hand their fields down as they are."""
    specs = [{spec.name: spec for spec in fields(kind)} for kind in (first, second)]
    return key in specs[1] and specs[0][key] is specs[1][key]
