"""One table of options serves the command line and the estimator: both have all of it, with the same words."""

import inspect
import subprocess
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from unveil import NovelClassDiscovery, recipe
from unveil.cli.own import Discover
from unveil.errors import UnveilError
from unveil.own.accepts import check, flag, options_of
from unveil.own.parameters import OPTIONS, DiscoveryOptions, EstimatorOptions, FileOptions, VectorOptions, changes

Call = Callable[..., subprocess.CompletedProcess[str]]
VALUES: dict[str, Any] = {
    "n_novel": 4,
    "method": "kmeans",
    "scaling": "none",
    "quick": True,
    "known_in_unlabeled": True,
    "rehearsals": 0,
    "steps": 7,
    "device": "cpu",
    "seed": 3,
}
"""A value of every option that stands for a setting."""


def words(text: str) -> str:
    """Text without line breaks and frames."""
    return " ".join(text.replace("│", " ").split())


def test_the_estimator_has_every_parameter_and_documents_it() -> None:
    parameters = inspect.signature(NovelClassDiscovery).parameters
    assert {name: one.default for name, one in parameters.items()} == {
        spec.name: spec.default for spec in fields(EstimatorOptions)
    }
    documentation = words(NovelClassDiscovery.__doc__ or "")
    for name, option in options_of(EstimatorOptions).items():
        assert f"{name} : {option.accepts.words}" in documentation
        assert words(f"{option.help} {option.python}") in documentation


@pytest.mark.parametrize("command", ["discover", "classes", "forecast"])
def test_commands_have_every_option_and_document_it(unveil: Call, command: str) -> None:
    shown = words(unveil(command, "--help").stdout)
    for name, option in options_of(Discover if command == "discover" else FileOptions).items():
        for one in option.names or (flag(name),):
            assert f"{one} " in shown
        assert words(f"{option.help} {option.cli}".replace("`", "")) in shown


def test_what_is_discovered_can_be_chosen_in_both() -> None:
    shared = {spec.name for kind in (DiscoveryOptions, VectorOptions) for spec in fields(kind)}
    assert shared <= {spec.name for spec in fields(Discover)}
    assert shared <= {spec.name for spec in fields(EstimatorOptions)}


def test_every_option_reaches_its_setting() -> None:
    assert {name for name, option in OPTIONS.items() if option.setting is not None} == set(VALUES)
    for name, value in VALUES.items():
        (key,) = chosen = changes({name: value})
        assert chosen == {key: value}
        settings: Any = recipe.load("vectors", chosen)
        for part in key.split("."):
            settings = getattr(settings, part)
        assert settings == value


def test_an_option_that_was_left_alone_leaves_the_setting_to_the_recipe() -> None:
    assert changes(vars(EstimatorOptions())) == {}
    assert changes(vars(Discover())) == {"seed": 0}
    assert changes({"rehearsals": np.int64(0), "known_in_unlabeled": np.False_}) == {"rehearsals": 0}
    assert type(changes({"n_novel": np.int32(3)})["data.n_novel"]) is int


@pytest.mark.parametrize(
    ("given", "python", "command_line"),
    [
        (
            {"n_novel": "few"},
            "n_novel is 'few': give a whole number of 1 or more, or 'auto'",
            "--n-novel is 'few': give",
        ),
        ({"rehearsals": -1}, "rehearsals is -1: give a whole number of 0 or more, or None", "0 or more"),
        ({"method": "nlc"}, "method is 'nlc'; did you mean 'ncl'?", "--method is 'nlc'; did you mean 'ncl'?"),
        ({"device": "gpu"}, "device is 'gpu': give 'auto', 'cpu'", "--device is 'gpu': give auto, cpu, cuda"),
        ({"recipe": " "}, "recipe is ' ': give the name of a recipe", "--recipe is ' ': give the name of a recipe"),
    ],
)
def test_a_wrong_value_is_told_in_the_words_of_who_gave_it(
    given: dict[str, Any], python: str, command_line: str
) -> None:
    with pytest.raises(UnveilError) as error:
        check(EstimatorOptions(**given))
    assert str(error.value).startswith(python)
    with pytest.raises(UnveilError) as error:
        check(Discover(**given), flags=True)
    assert command_line in str(error.value)
    assert "None" not in str(error.value)


def test_with_continue_the_settings_are_those_of_the_run(unveil: Call) -> None:
    refused = unveil("discover", "--continue", "run", "--set", "seed=1", "--columns", "a,b", "--known-in-unlabelled")
    assert refused.returncode == 2
    assert "--continue takes its settings from the run: leave out" in refused.stderr
    assert {"--known-in-unlabeled", "--columns", "--set"} == set(
        refused.stderr.strip().rpartition("leave out ")[2].split(", ")
    )


@pytest.mark.parametrize("number", ["0", "1.5", "few", "-2"])
def test_the_number_of_classes_is_a_number_or_auto(unveil: Call, number: str) -> None:
    refused = unveil("discover", "known", "new", f"--classes={number}")
    assert refused.returncode == 2
    assert "give a whole number of 1 or more, or auto" in refused.stderr
