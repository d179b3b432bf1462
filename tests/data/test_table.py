"""What a column holds."""

import numpy as np
import pytest

from unveil.data.table import Table, dates_in, kind_of, texts_column
from unveil.errors import UnveilError

SENTENCES = [f"the {word} of number {i} came late" for i in range(30) for word in ("bus",)]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([0.5, 1.5, np.nan], "number"),
        (list(range(30)), "id"),
        ([*range(15), *range(15)], "id"),  # counted anew in a second file
        (list(range(5)), "number"),  # too few rows to tell
        ([i * 2 for i in range(30)], "number"),
        ([3.0] * 5, "constant"),
        ([np.nan, np.nan], "empty"),
        (["red", "blue", "red", ""], "category"),
        (["yes", "yes", ""], "category"),  # whether it is there may matter
        (["yes", "yes"], "constant"),
        (["", "n/a"], "empty"),
        (SENTENCES, "text"),
        ([f"K-{i:04d}" for i in range(30)], "id"),
        (["2024-01-02", "", "2023-05-06 10:00"], "date"),
        (["02.01.2024", "31.12.2023"], "date"),
        (["01/02/2024 10:30", "12/31/2023 08:00"], "date"),
        (["2024-01-02", "soon"], "category"),
    ],
)
def test_the_kind_of_a_column(cells: list[object], kind: str) -> None:
    numbers = all(isinstance(cell, int | float) for cell in cells)
    column = np.array(cells, dtype=np.float64) if numbers else texts_column(map(str, cells))
    assert kind_of(column) == kind


def test_dates_are_days_since_1970() -> None:
    days = dates_in(texts_column(["1970-01-11", "", "1970-01-11T12:00"]))
    assert days is not None
    np.testing.assert_array_equal(days, [10, np.nan, 10.5])


def test_columns_are_found_in_other_case_and_joined_as_text() -> None:
    table = Table({"Topic": texts_column(["a"]), "x": np.array([1.0])})
    assert table.find("topic", "--label", "file") == "Topic"
    with pytest.raises(UnveilError, match=r"file has no column 'topik' .--label.; did you mean 'Topic'"):
        table.find("topik", "--label", "file")
    joined = table.and_then(Table({"Topic": np.array([2.0]), "x": np.array([3.0])}))
    assert joined.columns["Topic"].tolist() == ["a", "2"]
    assert joined.fingerprint() != table.fingerprint()
