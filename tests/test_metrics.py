"""Clustering accuracy against brute force over all assignments."""

import math
from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy, clustering_scores, contingency, in_matched_class, open_accuracy

thorough = settings(max_examples=100, deadline=None, derandomize=True)


def brute_force(y_true: list[int], y_pred: list[int]) -> float:
    """Try every one-to-one assignment of clusters to classes; a cluster or a class may be left over."""
    size = max(*y_true, *y_pred) + 1
    best = max(sum(perm[p] == t for t, p in zip(y_true, y_pred, strict=True)) for perm in permutations(range(size)))
    return best / len(y_true)


@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25))
@thorough
def test_is_the_best_of_all_permutations(rows: list[tuple[int, int]]) -> None:
    y_true, y_pred = map(list, zip(*rows, strict=True))
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(brute_force(y_true, y_pred))


@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30),
    order=st.permutations(range(6)),
)
@thorough
def test_names_of_clusters_do_not_matter(rows: list[tuple[int, int]], order: list[int]) -> None:
    y_true, y_pred = map(list, zip(*rows, strict=True))
    renamed = [order[p] for p in y_pred]
    assert clustering_scores(y_true, renamed) == pytest.approx(clustering_scores(y_true, y_pred))


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30),
    draw=st.randoms(note_method_calls=False),
)
@thorough
def test_scores_are_those_of_scikit_learn_in_any_order_of_the_items(rows: list[tuple[int, int]], draw: Random) -> None:
    y_true, y_pred = map(list, zip(*rows, strict=True))
    scores = clustering_scores(y_true, y_pred)
    assert scores["nmi"] == pytest.approx(normalized_mutual_info_score(y_true, y_pred))
    assert scores["ari"] == pytest.approx(adjusted_rand_score(y_true, y_pred))
    draw.shuffle(rows)
    y_true, y_pred = map(list, zip(*rows, strict=True))
    assert clustering_scores(y_true, y_pred) == pytest.approx(scores)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "expected"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        (["cat", "cat", "dog"], [7, 7, -3], 1.0),
        ([100, 100, -5, -5], ["b", "a", "a", "a"], 0.75),
        ([0.5, 0.5, 1.5], ["x", "x", "x"], 2 / 3),
        ([0, 0, 0, 0], [0, 1, 2, 3], 0.25),  # more clusters than classes: one cluster counts
        ([0, 1, 2, 3], [0, 0, 0, 0], 0.25),  # more classes than clusters
        ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1], 4 / 6),
        (np.array([True, False]), np.array([3, 4]), 1.0),
    ],
)
def test_any_label_values_and_any_numbers_of_them(y_true: object, y_pred: object, expected: float) -> None:
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(expected)  # type: ignore[arg-type]


def test_contingency_counts_clusters_by_classes() -> None:
    assert contingency(["a", "b", "b", "c"], [9, 9, 5, 9]).tolist() == [[0, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize(("y_true", "y_pred"), [([0, 1], [0]), ([[0, 1]], [[0, 1]]), ([], [1]), (3, 3)])
def test_other_shapes_are_an_error(y_true: object, y_pred: object) -> None:
    with pytest.raises(UnveilError, match="equal length"):
        clustering_accuracy(y_true, y_pred)  # type: ignore[arg-type]


def test_nothing_has_no_accuracy() -> None:
    assert math.isnan(clustering_accuracy([], []))


def test_scores_of_a_perfect_and_of_a_useless_clustering() -> None:
    y = load_digits().target
    assert clustering_scores(y, (y + 3) % 10) == pytest.approx({"acc": 1, "nmi": 1, "ari": 1})
    useless = clustering_scores(y, np.zeros_like(y))
    assert useless == pytest.approx({"acc": np.bincount(y).max() / len(y), "nmi": 0, "ari": 0}, abs=1e-12)


def test_one_assignment_for_known_and_novel() -> None:
    truth, predicted = [0, 0, 1, 1, 2, 2, 2, 3], [5, 5, 6, 7, 7, 7, 7, 8]
    assert open_accuracy(truth, predicted, 2) == pytest.approx({"all": 7 / 8, "old": 3 / 4, "new": 1.0})
    swapped = open_accuracy([0, 0, 1, 1], [1, 1, 0, 0], 1)
    assert swapped == pytest.approx({"all": 1.0, "old": 1.0, "new": 1.0})  # names do not matter
    one = open_accuracy([0, 0, 0, 1], [4, 4, 4, 4], 1)
    assert one == pytest.approx({"all": 3 / 4, "old": 1.0, "new": 0.0})


def test_no_items_have_no_accuracy() -> None:
    nothing = open_accuracy([], [], 1)
    assert set(nothing) == {"all", "old", "new"}
    assert all(np.isnan(value) for value in nothing.values())
    assert np.isnan(open_accuracy([0, 0], [0, 0], 1)["new"])


def test_items_of_the_matched_class() -> None:
    truth, clusters = np.array([0, 0, 0, 1, 1]), np.array([5, 5, 2, 2, 2])
    assert in_matched_class(truth, clusters).tolist() == [True, True, False, True, True]


def test_labels_may_be_of_several_types_and_none() -> None:
    truth = np.array([None, None, "a", 1, 1.5, "a"], dtype=object)
    found = np.array([0, 0, 1, 2, 3, 1])
    assert clustering_accuracy(truth, found) == 1
    assert clustering_scores(truth, found) == {"acc": 1, "nmi": 1, "ari": 1}


def test_scores_of_nothing_agree() -> None:
    nothing = clustering_scores([], [])
    assert set(nothing) == {"acc", "nmi", "ari"}
    assert all(np.isnan(value) for value in nothing.values())
    assert in_matched_class([], []).dtype == bool
    assert contingency([0, 1], [1, 1]).dtype == np.int64
