"""Resolve the `[method]` tables of recipes to the settings of the chosen method.

A recipe that extends another, or a change, may change the method: settings for another method are then ignored. A
setting that is given together with a method must be a setting of that method.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from unveil.errors import UnveilError, suggest
from unveil.methods.catalog import names, settings_class
from unveil.settings import Discovery, MethodSettings
from unveil.tables import Table, build, merge

Given = Mapping[str, Any]


def resolve(
    name: str,
    recipes: Sequence[tuple[str | None, Mapping[str, Any]]],
    defaults: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> MethodSettings:
    """Settings of the method `name`.

    `recipes`: for each file, extended files first, the method that it names, if any, and its `[method]` table. A key
    there must be a setting of the method of that file. It is used where the chosen method inherits the same setting:
    the temperature of one method is never used for that of another. `defaults` are used where the chosen method has
    the key; `changes` must be settings of the chosen method.
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
    _check(changes, name)
    return build(chosen, merge(values, changes), "method.")


def closest(key: str) -> str:
    """The setting of any method with this name or the most similar one; "" where none is similar."""
    keys = list(dict.fromkeys(key for name in names() for key in _names(settings_class(name))))
    return key if key in keys else next(iter(difflib.get_close_matches(key, keys, n=1)), "")


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
    return [name for name in names() if key in _names(settings_class(name))]


def _names(kind: type[MethodSettings]) -> list[str]:
    return [spec.name for spec in fields(kind)]


def _same(key: str, first: type[MethodSettings], second: type[MethodSettings]) -> bool:
    """Whether both inherit the setting from the same definition: subclasses share the field objects of dataclasses."""
    specs = [{spec.name: spec for spec in fields(kind)} for kind in (first, second)]
    return key in specs[1] and specs[0][key] is specs[1][key]
