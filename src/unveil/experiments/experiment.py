"""Experiments and scales, read from the TOML files of this package."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from unveil import recipe
from unveil.errors import UnveilError, suggest
from unveil.settings import Settings

Shape = Literal["table", "bars", "curve", "map", "epochs"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table or one point of a figure."""

    name: str
    changes: Mapping[str, Any]
    """What it changes in the recipe."""
    self_supervised: bool = True
    paper: dict[str, list[float]] = field(default_factory=dict)
    """Mean and, where given, standard deviation in the paper, by column."""
    against: str | None = None
    """The row that it is compared with, where that is not the one of the experiment; an empty name: with none."""
    value: float | None = None  # its position on the x axis of a curve


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    rows: tuple[Row, ...]
    shape: Shape = "table"
    against: str | None = None  # the row that the others are compared with
    data: tuple[str, ...] = ()  # the data sets that it is for; none: for all
    inputs: bool = False  # also show k-means on the inputs and on features of unit length


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A data set at a scale: its recipe, and what experiments change in it."""

    name: str
    data: str
    recipe: str
    column: str | None = None
    seeds: int = 3
    changes: Mapping[str, Any] = field(default_factory=dict)
    without_self_supervision: Mapping[str, Any] | None = None
    by_seed: Sequence[Mapping[str, Any]] = ()
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By method: settings that its authors chose differently."""
    experiments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By experiment: settings of all its rows at this scale."""


def names() -> list[str]:
    """Names of all experiments."""
    folder = resources.files("unveil.experiments") / "tables"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(name: str, data: str) -> Experiment:
    """An experiment by name; the points of a curve may depend on the data set."""
    if name not in names():
        raise UnveilError(f"there is no experiment '{name}'{suggest(name, names())}")
    text = (resources.files("unveil.experiments") / "tables" / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    common = table.pop("set", [])  # settings of every row
    rows = [Row(changes=recipe.parse_set([*common, *row.pop("set")]), **row) for row in table.pop("row", [])]
    if each := table.pop("each", None):
        rows = [_repeated(row, name, recipe.parse_set(texts)) for name, texts in each.items() for row in rows]
    if sweep := table.pop("sweep", None):
        rows += _points(sweep, data)
    table["data"] = tuple(table.get("data", ()))
    return Experiment(name=name, rows=tuple(rows), **table)


def check_data(experiment: Experiment, data: str) -> None:
    """Raise an error for a data set that the experiment is not for."""
    if experiment.data and data.removesuffix("-embedded") not in experiment.data:
        raise UnveilError(f"{experiment.name} is for {', '.join(experiment.data)}: give --data {experiment.data[0]}")


def _repeated(row: Row, name: str, changes: Mapping[str, Any]) -> Row:
    """The row with these changes, beside the row with the same ones."""
    against = f"{name}: {row.against}" if row.against else row.against
    return replace(row, name=f"{name}: {row.name}", against=against, changes={**row.changes, **changes})


def _points(sweep: dict[str, Any], data: str) -> list[Row]:
    values = sweep["values"].get(data.removesuffix("-embedded"), sweep["values"]["default"])
    keys = [sweep["key"]] if isinstance(sweep["key"], str) else sweep["key"]
    rows = []
    for value in values:
        without = value == 0 and "zero" in sweep
        changes = recipe.parse_set(sweep["zero" if without else "set"])
        if not without:
            changes |= dict.fromkeys(keys, value)
        rows.append(Row(name=f"{sweep['name']} = {value}", changes=changes, value=value))
    return rows


def scale(name: str, data: str) -> Scale:
    """A data set at a scale."""
    table = tomllib.loads((resources.files("unveil.experiments") / "scales.toml").read_text(encoding="utf-8"))
    if name not in table:
        raise UnveilError(f"there is no scale '{name}'{suggest(name, table)}")
    if data not in table[name]:
        raise UnveilError(f"'{data}' is not available at the scale {name}{suggest(data, table[name])}")
    values: dict[str, Any] = {key: _parsed(value) for key, value in table[name][data].items()}
    return Scale(name=name, data=data, changes=values.pop("set", {}), **values)


def _parsed(value: Any) -> Any:
    """Lists of `table.key=value` as mappings, wherever they stand."""
    if isinstance(value, dict):
        return {key: _parsed(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    return [_parsed(inner) for inner in value] if isinstance(value[0], list) else recipe.parse_set(value)


def settings(row: Row, scale: Scale, seed: int, extra: Mapping[str, Any] = recipe.NOTHING) -> Settings | None:
    """The settings of a row; None where it leaves out self-supervision and the data set has none."""
    without: Mapping[str, Any] = {}
    if not row.self_supervised:
        if scale.without_self_supervision is None:
            return None
        without = scale.without_self_supervision
    subset = scale.by_seed[seed % len(scale.by_seed)] if scale.by_seed else {}
    defaults = {**scale.changes, **without, **subset, **extra}
    method = recipe.load(scale.recipe, row.changes, defaults).discovery.method
    return recipe.load(scale.recipe, {**scale.methods.get(method, {}), **row.changes, "seed": seed}, defaults)
