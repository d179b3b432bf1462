"""Texts by their words."""

import numpy as np
import pytest

from unveil.encoders.tfidf import Tfidf, fit_tfidf
from unveil.errors import UnveilError

TEXTS = ["pay the bill", "the bill is due", "pay my bill now", "book a flight", "a flight to Rome", "flight tomorrow"]


def test_texts_that_share_words_are_near() -> None:
    fitted = fit_tfidf(TEXTS)
    x = fitted(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)
    assert x[0] @ x[2] > x[0] @ x[3]
    again = Tfidf.from_arrays(fitted.arrays())
    np.testing.assert_array_equal(again(["an unknown bill"]), fitted(["an unknown bill"]))
    assert not fitted(["zzz"]).any()


@pytest.mark.parametrize("texts", [["", " "], ["one"]])
def test_texts_without_words_are_an_error(texts: list[str]) -> None:
    with pytest.raises(UnveilError, match="words"):
        fit_tfidf(texts)
