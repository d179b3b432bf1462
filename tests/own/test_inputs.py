"""What the estimator says of inputs that it cannot use, before anything is computed."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from unveil import NovelClassDiscovery
from unveil.errors import UnveilError
from unveil.own.inputs import check_kind, frame_table, read_items, row_ids

FRAME = pd.DataFrame({"size": [1.0, 2.0, 3.0], "color": ["red", "blue", "red"]})


def read(X: Any, text: str | None = None) -> Any:
    return read_items(NovelClassDiscovery(text=text), X, reset=True)


@pytest.mark.parametrize(
    ("X", "text", "message"),
    [
        (np.ones((3, 2)), "words", "text names a column of a data frame, and X is none"),
        (["a sentence", "another"], "words", "text names a column of a data frame, and X is none"),
        (["  ", ""], None, "every text of X is empty"),
        (["a sentence", 3, "another"], None, "row 1 is 3: give a text for every item"),
        (np.ones((3, 0, 2)), None, r"shape \(3, 0, 2\): give at least one view"),
        (np.full((3, 2), 1e39), None, "too large for float32"),
        (["a.png", "b.png"], None, r"2 of 2 image files do not exist, the first is a\.png"),
    ],
)
def test_what_cannot_be_used_is_told(X: Any, text: str | None, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        read(X, text)


def test_columns_that_the_fit_had_must_be_there() -> None:
    estimator = NovelClassDiscovery(text=None)
    items = read_items(estimator, FRAME, reset=True)
    assert items.kind == "table"
    assert set(estimator.feature_names_in_) == {"size", "color"}
    with pytest.raises(UnveilError, match="lacks the column 'color', which the fit had"):
        read_items(estimator, FRAME[["size"]].assign(size=[1.0, np.nan, 2.0]), reset=False)


def test_numbers_with_gaps_stay_numbers() -> None:
    table = frame_table(pd.DataFrame({"a": [1, None, pd.NA], "b": ["x", None, "y"]}, dtype=object))
    np.testing.assert_array_equal(table.columns["a"], [1.0, np.nan, np.nan])
    assert [str(value) for value in table.columns["b"]] == ["x", "", "y"]


def test_another_kind_than_that_of_the_fit_is_told() -> None:
    for fitted, X, what in (("images", np.ones((2, 3)), "vectors"), ("texts", FRAME, "a data frame")):
        with pytest.raises(UnveilError, match=f"the fit was on {fitted}, and X holds {what}: give {fitted}"):
            check_kind(X, fitted)
    check_kind(["a sentence"], "texts")
    check_kind(np.ones((2, 3)), "vectors")


def test_rows_have_the_names_of_an_index_that_says_more_than_a_count() -> None:
    assert row_ids(FRAME) is None
    assert row_ids(FRAME.set_index(pd.Index(["x", "y", "z"]))) == ("x", "y", "z")
    assert row_ids(FRAME.set_index(pd.Index(["x", "y", "x"]))) is None
    assert row_ids([1, 2]) is None
