"""Check the parameters of the estimator before anything is computed: each has a test and words for what it takes."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unveil.encoders import registry
from unveil.errors import UnveilError, suggest
from unveil.methods.catalog import names

Check = tuple[Callable[[Any], bool], str]


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def _flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _optional(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _path(value: Any) -> bool:
    return isinstance(value, Path) or _name(value)


def _random(value: Any) -> bool:
    return value is None or _whole(0)(value) or isinstance(value, np.random.RandomState)


def _device(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"auto|(cpu|cuda|mps)(:\d+)?", value) is not None


CHECKS: Mapping[str, Check] = {
    "n_novel": (
        lambda value: (_name(value) and value == "auto") or _whole(1)(value),
        "a whole number of 1 or more, or 'auto'",
    ),
    "method": (_name, "the name of a method, or 'auto'"),
    "encoder": (_name, "the name of an encoder, or 'auto'"),
    "quick": (_flag, "True or False"),
    "scaling": (
        lambda value: isinstance(value, str) and value in ("auto", "unit", "standard", "none"),
        "'auto', 'unit', 'standard' or 'none'",
    ),
    "text": (_optional(_name), "the name of a column, or None"),
    "recipe": (_optional(_path), "the name of a recipe, the path of a TOML file, or None"),
    "known_in_unlabeled": (_flag, "True or False"),
    "rehearsals": (_optional(_whole(0)), "a whole number of 0 or more, or None"),
    "steps": (_optional(_whole(1)), "a whole number of 1 or more, or None"),
    "random_state": (_random, "a whole number of 0 or more, a numpy RandomState, or None"),
    "device": (_device, "'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'"),
    "store": (_optional(_path), "a directory, or None"),
    "verbose": (lambda value: _flag(value) or _whole(0)(value), "True or False"),
}


def check_parameters(values: Mapping[str, Any]) -> None:
    """Raise an error that says which parameter is wrong, what it is, and what it takes."""
    for name, value in values.items():
        test, expected = CHECKS[name]
        if not test(value):
            raise UnveilError(f"{name} is {_short(value)}: give {expected}")
    registry.check(values["encoder"])
    if values["method"] != "auto" and values["method"] not in names():
        raise UnveilError(f"method is {values['method']!r}{suggest(values['method'], names())}")


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"


def plain(value: Any) -> Any:
    """A parameter as JSON keeps it."""
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value
