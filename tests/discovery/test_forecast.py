"""The forecast of the accuracy, and what a confidence is worth."""

import json

import numpy as np
import pytest

from unveil.discovery.forecast import Forecast, calibration_curve

ROW = {"hidden": 2, "counted": 3, "accuracy": {"a": 0.8}}


def test_confidence_is_worth_what_it_was_in_rehearsal() -> None:
    draw = np.random.default_rng(0)
    confidence = draw.uniform(0.5, 1, 4000).astype(np.float32)
    correct = draw.random(4000) < (confidence - 0.5) * 2  # a confidence of 0.75 is right half of the time
    given, share = np.array(calibration_curve([confidence], [correct])).T
    assert (np.diff(share) >= 0).all()
    np.testing.assert_allclose(share, (given - 0.5) * 2, atol=0.08)


def test_a_forecast_in_words_and_in_json() -> None:
    forecast = Forecast(
        candidate="a",
        accuracy=0.8,
        spread=0.1,
        rehearsals=(ROW,),
        calibration=((0.0, 0.2), (1.0, 0.9)),
        count_error=0.5,
    )
    assert (forecast.low, forecast.high) == (pytest.approx(0.636), pytest.approx(0.964))
    assert (
        forecast.sentence()
        == "Expected accuracy 80 % (90 % interval 64-96 %), from 1 rehearsal on hidden known classes."
    )
    assert Forecast.from_json(json.loads(json.dumps(forecast.to_json()))) == forecast
    assert forecast.mean_accuracy("a") == 0.8
    np.testing.assert_allclose(forecast.calibrated(np.array([0.5], dtype=np.float32)), [0.55])


def test_the_confidence_of_the_items_is_a_second_forecast() -> None:
    forecast = Forecast(candidate="a", accuracy=0.8, spread=0.1, calibration=((0.0, 0.2), (1.0, 0.9)))
    combined = forecast.combined_with(np.array([0.4, 0.6], dtype=np.float32))
    assert combined.accuracy == pytest.approx(0.65)
    assert combined.spread == pytest.approx(np.hypot(0.1, 0.15))
    without = Forecast(candidate="a", accuracy=0.8, spread=0.1)
    assert without.combined_with(np.array([0.1], dtype=np.float32)) == without


def test_without_a_forecast_the_reason_is_told() -> None:
    forecast = Forecast(candidate="a", reason="no rehearsals were asked for")
    assert forecast.low is forecast.high is None
    assert forecast.sentence() == "Expected accuracy unknown: no rehearsals were asked for."
    np.testing.assert_array_equal(forecast.calibrated(np.array([0.3], dtype=np.float32)), [np.float32(0.3)])
