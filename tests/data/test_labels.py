"""Labels as people give them."""

import numpy as np
import pytest

from unveil.data.labels import Classes, read_labels
from unveil.errors import UnveilError


@pytest.mark.parametrize(
    ("given", "known", "labels"),
    [
        ([3, -1, 7, 3], [3, 7], [0, -1, 1, 0]),
        ([3.0, np.nan, 7.0, -1.0], [3, 7], [0, -1, 1, -1]),
        (["b", None, "a", ""], ["a", "b"], [1, -1, 0, -1]),
        (["b", "-1", "a", float("nan")], ["a", "b"], [1, -1, 0, -1]),
        (np.array([5, None, 4, 5], dtype=object), [4, 5], [1, -1, 0, 1]),
        ([[1], [-1], [0], [0]], [0, 1], [1, -1, 0, 0]),
        ([True, False, True, True], [0, 1], [1, 0, 1, 1]),
        (np.array(["a", "-1", "a", "b"]), ["a", "b"], [0, -1, 0, 1]),
    ],
)
def test_labels_of_every_kind(given: object, known: list[object], labels: list[int]) -> None:
    if isinstance(given, list) and any(value is None or isinstance(value, str) for value in given):
        given = np.array(given, dtype=object)
    classes, found = read_labels(given, 4)
    assert classes.known.tolist() == known
    assert found.tolist() == labels


def test_no_labels() -> None:
    classes, found = read_labels(None, 3)
    assert len(classes.known) == 0
    assert found.tolist() == [-1, -1, -1]
    assert classes.novel(2).tolist() == [0, 1]


def test_novel_names_differ_from_known_ones() -> None:
    assert Classes(np.array([3, 9])).novel(2).tolist() == [10, 11]
    taken = Classes(np.array(["Novel-1", "new-x", "cluster-", "discovered-0"], dtype=object))
    assert taken.novel(1).tolist() == ["unveil-novel-0"]
    assert taken.named(np.array([0, 4]), 1).tolist() == ["Novel-1", "unveil-novel-0"]


@pytest.mark.parametrize("bad", [[0.5, 1, 2], np.zeros((3, 2)), [1, 2], [np.inf, 1, 2]])
def test_what_cannot_be_labels(bad: object) -> None:
    with pytest.raises(UnveilError):
        read_labels(bad, 3)


def test_a_label_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnveilError, match="not valid text"):
        read_labels(["a", "\udcff", None], 3)
