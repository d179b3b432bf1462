"""Numbers, dates and categories as vectors."""

import numpy as np
import pytest

from unveil.data.table import Table, as_texts, texts_column
from unveil.data.table_encoding import TableEncoding, column_transformer, fit_table
from unveil.errors import UnveilError


def shop(rows: int = 40) -> Table:
    draw = np.random.default_rng(0)
    price = draw.normal(100, 20, rows)
    price[3] = np.nan
    return Table(
        {
            "nr": np.arange(rows, dtype=np.float64),
            "price": price,
            "color": texts_column(["red", "blue", "", "green"][i % 4] for i in range(rows)),
            "sold": texts_column(f"2024-01-{1 + i % 28:02d}" for i in range(rows)),
            "shop": texts_column(["north"] * rows),
            "code": texts_column(f"K{i}" for i in range(rows)),
        }
    )


def test_columns_become_numbers_and_what_is_left_out_is_told() -> None:
    table = shop()
    encoding, notes = fit_table(table)
    assert encoding.names == ("price", "color=blue", "color=green", "color=red", "sold")
    assert notes == [
        "left out: nr, code, which numbers or names the rows",
        "left out: shop, which has one value in all rows",
        "1 missing value of price became its median",
    ]
    x = encoding(table)
    np.testing.assert_allclose(x[:, [0, 4]].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(x[:, [0, 4]].std(axis=0), 1, atol=1e-6)
    assert encoding.shown(table)[3, 0] == np.nanmedian(table.columns["price"])
    assert x[:3, 1:4].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]


def test_it_agrees_with_scikit_learn_and_survives_json() -> None:
    table = shop()
    encoding, _ = fit_table(table, ["price", "color"])
    matrix = np.empty((len(table), 2), dtype=object)
    matrix[:, 0], matrix[:, 1] = table.columns["price"], as_texts(table.columns["color"])
    expected = column_transformer(["price"], ["color"]).fit_transform(matrix)
    assert expected.shape[1] == 5  # scikit-learn has a column for the empty text
    np.testing.assert_allclose(encoding(table), np.delete(expected.astype(float), 1, axis=1), atol=1e-6)
    again = TableEncoding.from_json(encoding.to_json())
    assert again == encoding


def test_new_rows_may_have_new_values_and_lack_some() -> None:
    encoding, _ = fit_table(shop(), ["price", "color", "sold"])
    new = Table({"price": np.array([np.nan]), "color": texts_column(["pink"]), "sold": texts_column([""])})
    np.testing.assert_allclose(encoding(new)[0, 1:4], 0)
    assert np.isfinite(encoding(new)).all()
    with pytest.raises(UnveilError, match="lacks the column 'sold'"):
        encoding(new.only(["price", "color"]))
    with pytest.raises(UnveilError, match="'sold' held dates in the fit"):
        encoding(Table({**new.columns, "sold": texts_column(["soon"])}))


def test_columns_that_are_asked_for_are_used_whatever_they_hold() -> None:
    encoding, notes = fit_table(shop(), ["nr", "shop"])
    assert encoding.names == ("nr", "shop=north")
    assert notes == []


def test_rare_values_are_not_told_apart() -> None:
    table = Table({"town": texts_column([f"town {i % 70}" for i in range(210)] + ["big"] * 300)})
    encoding, notes = fit_table(table)
    assert len(encoding.names) < 60
    assert "rare values of town are not told apart" in notes[0]


def test_vectors_stand_alone_unless_more_is_asked_for() -> None:
    table = Table({"v": np.ones((5, 3), dtype=np.float32), "x": np.arange(5.0)})
    encoding, notes = fit_table(table)
    assert encoding.names == ("v[0]", "v[1]", "v[2]")
    assert notes == ["left out: x, which stands beside the vectors: --columns names what to use"]
    assert fit_table(table, ["v", "x"])[0].names == ("v[0]", "v[1]", "v[2]", "x")
