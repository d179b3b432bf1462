"""The scaling of vectors, chosen or given."""

import numpy as np
import pytest
from blobs import blobs
from rich.console import Console

from unveil import NovelClassDiscovery, recipe
from unveil.data.items import Items
from unveil.data.task import Task
from unveil.discovery.scaled import scale
from unveil.encoders.preparation import Preparation
from unveil.errors import UnveilError
from unveil.numerics import Matrix


def scaled(x: Matrix, name: str, *overrides: str) -> Matrix:
    """The vectors after scaling by a recipe; two of five classes are hidden."""
    y = np.repeat(np.arange(5), len(x) // 5)
    task = Task(name="blobs", items=Items.of(x), labels=np.where(y < 3, y, -1), known=("a", "b", "c"), n_novel=2)
    array: Matrix = scale(
        task, recipe.load(name, recipe.parse_set(overrides)), Preparation(), Console(quiet=True)
    ).task.items.array
    return array


@pytest.mark.parametrize("name", ["vectors", "trained-vectors"])
def test_a_given_scaling_is_used(name: str) -> None:
    x, _ = blobs(5, 30)
    lengths = np.random.default_rng(0).uniform(1, 9, (len(x), 1)).astype(np.float32)
    spreads = np.linspace(1, 90, 8, dtype=np.float32)
    unit, standard = ("data.vector_scaling=unit", "data.vector_scaling=standard")
    np.testing.assert_allclose(np.abs(scaled(x, name, unit)), np.abs(scaled(x * lengths, name, unit)), atol=1e-3)
    np.testing.assert_allclose(
        np.abs(scaled(x, name, standard)), np.abs(scaled(x * spreads, name, standard)), atol=1e-2
    )
    assert not np.allclose(np.abs(scaled(x, name, unit)), np.abs(scaled(x, name, standard)), atol=1e-1)


def test_a_scaling_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(UnveilError, match="for vectors by the default recipes"):
        scaled(blobs(5, 30)[0], "vectors", "data.vector_scaling=unit", "data.scaling=common")
    x, y = blobs(5, 30)
    with pytest.raises(UnveilError, match="'standard' or 'none'"):
        NovelClassDiscovery(2, scaling="unti").fit(x, np.where(y < 3, y, -1))
    fitted = NovelClassDiscovery(2, scaling="none", rehearsals=0, random_state=0).fit(x, np.where(y < 3, y, -1))
    assert fitted._settings_used.data.vector_scaling == "none"
