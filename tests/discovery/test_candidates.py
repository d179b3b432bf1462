"""The candidates that rehearsals compare."""

from dataclasses import replace

import numpy as np

from unveil import recipe
from unveil.discovery.candidates import KMEANS, candidates, fitted_to_sizes, usual

SETTINGS = recipe.load("trained-vectors")


def test_kmeans_the_method_and_its_variations_are_compared() -> None:
    names = [one.name for one in candidates(SETTINGS)]
    assert names[:2] == [KMEANS.name, "ncl-hng"]
    assert len(names) == len(set(names)) == 3
    assert candidates(replace(SETTINGS, compare=False))[0].name == "ncl-hng"
    assert len(candidates(replace(SETTINGS, compare=False))) == 1
    assert candidates(recipe.load("trained-vectors", {"discovery.method": "kmeans"})) == (KMEANS,)
    assert KMEANS.applied_to(SETTINGS) == SETTINGS
    varied = candidates(SETTINGS)[2].applied_to(SETTINGS)
    assert varied.method != SETTINGS.method
    assert varied.discovery == SETTINGS.discovery


def test_unbalanced_classes_get_fewer_neighbors() -> None:
    candidate = candidates(SETTINGS)[2]
    assert fitted_to_sizes(candidate, np.repeat([0, 1], 55), SETTINGS) == candidate
    changed = fitted_to_sizes(candidate, np.repeat([0, 1], [100, 10]), SETTINGS)
    assert dict(changed.changes)["method.k1_fraction"] < dict(candidate.changes)["method.k1_fraction"]
    usually = fitted_to_sizes(candidates(SETTINGS)[1], np.repeat([0, 1], [100, 10]), SETTINGS)
    assert dict(usually.changes)["method.k1_fraction"] < 0.1
    assert "unbalanced" in changed.description
    assert fitted_to_sizes(KMEANS, np.repeat([0, 1], [100, 10]), SETTINGS) == KMEANS


def test_the_usual_candidate_is_the_method_unless_its_training_may_undo_recognized_classes() -> None:
    options = candidates(SETTINGS)
    assert usual(options, known_in_unlabeled=False).name == "ncl-hng"
    assert usual(options, known_in_unlabeled=True) == KMEANS
    assert usual(options[:1], known_in_unlabeled=False) == KMEANS
    assert usual(candidates(recipe.load("vectors")), known_in_unlabeled=True).name == "neighbor-consensus"
