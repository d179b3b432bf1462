"""The forecast of the accuracy, and what a confidence is worth."""

import json
from dataclasses import replace

import numpy as np
import pytest

from unveil.discovery.forecast import CONSENSUS, MOST, TRAINED, Forecast, calibration_curve


def test_confidence_is_worth_what_it_was_in_rehearsal() -> None:
    draw = np.random.default_rng(0)
    confidence = draw.uniform(0.5, 1, 4000).astype(np.float32)
    correct = draw.random(4000) < (confidence - 0.5) * 2  # a confidence of 0.75 is right half of the time
    given, share = np.array(calibration_curve([confidence], [correct])).T
    assert (np.diff(share) >= 0).all()
    np.testing.assert_allclose(share, (given - 0.5) * 2, atol=0.08)


def rehearsed(*pairs: tuple[float, float], counted: bool = False, hidden: int = 8) -> Forecast:
    """A forecast from rehearsals with these accuracies and mean confidences."""
    rows = [{"hidden": hidden, "accuracy": {"a": acc}, "confidence": {"a": sure}} for acc, sure in pairs]
    return Forecast(candidate="a", rehearsals=tuple(rows), calibration=((0.0, 0.2), (1.0, 0.9)), counted=counted)


def test_a_forecast_in_words_and_in_json() -> None:
    forecast = rehearsed((0.9, 0.95), counted=True).expected(8, 0.95)
    assert forecast.accuracy == pytest.approx(np.sin(np.arcsin(0.9**0.5) + TRAINED.intercept) ** 2)
    assert forecast.low is not None
    assert forecast.high is not None
    assert 0.75 < forecast.low < 0.9 < forecast.high < 0.99
    assert forecast.accuracy - forecast.low > forecast.high - forecast.accuracy  # there is more room below
    assert forecast.sentence() == (
        f"Probably 92 % correct; could be {100 * forecast.low:.0f} to {100 * forecast.high:.0f} %. "
        "The number of classes is an estimate, and this includes its error."
    )
    assert Forecast.from_json(json.loads(json.dumps({**forecast.to_json(), "spread": 0.1}))) == forecast
    assert forecast.mean_accuracy("a") == 0.9
    np.testing.assert_allclose(forecast.calibrated(np.array([0.5], dtype=np.float32)), [0.55])


def test_less_confidence_than_in_rehearsal_means_less_accuracy() -> None:
    forecast = rehearsed((0.9, 0.9), (0.8, 0.85))
    same, less, more = (forecast.expected(8, value).accuracy for value in (0.875, 0.7, 0.99))
    assert same == pytest.approx(0.879, abs=0.005)
    assert less is not None
    assert more is not None
    assert less < 0.74
    assert more > 0.95
    many = forecast.expected(24, 0.875).accuracy
    assert many is not None
    assert 0.75 < many < 0.84  # more classes are harder than the eight that were hidden
    before = forecast.expected(8)
    assert before.accuracy == pytest.approx(0.879, abs=0.005)
    assert before.low is not None
    assert before.low < (forecast.expected(8, 0.875).low or 0)


def test_rehearsals_that_differ_widen_the_interval_until_the_accuracy_is_hardly_known() -> None:
    narrow, wide = (
        rehearsed((0.8, 0.8), (0.8, 0.8)).expected(8, 0.8),
        rehearsed((0.5, 0.8), (0.97, 0.8)).expected(8, 0.8),
    )
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low - 0.1
    assert wide.hardly_known
    assert not rehearsed((0.99, 0.99)).expected(8, 0.99).hardly_known


def test_few_hidden_classes_say_little_about_others() -> None:
    few, many = (rehearsed((0.8, 0.8), hidden=hidden).expected(hidden, 0.8) for hidden in (2, 20))
    assert few.accuracy == many.accuracy
    assert few.low is not None
    assert many.low is not None
    assert few.low < many.low - 0.15
    assert few.hardly_known
    assert not many.hardly_known


def test_a_number_that_is_hardly_known_widens_the_interval() -> None:
    forecast = rehearsed((0.9, 0.9), counted=True)
    sure, unsure = forecast.expected(8, 0.9), replace(forecast, number_spread=0.4).expected(8, 0.9)
    assert sure.low is not None
    assert unsure.low is not None
    assert unsure.low < sure.low - 0.1
    assert unsure.accuracy is not None
    assert unsure.accuracy < 0.9  # an error of the number only costs accuracy
    assert unsure.hardly_known


def test_without_a_forecast_the_reason_is_told() -> None:
    forecast = Forecast(candidate="a", reason="no rehearsals were asked for")
    assert forecast.low is forecast.high is None
    assert forecast.sentence() == "The accuracy cannot be forecast: no rehearsals were asked for."
    np.testing.assert_array_equal(forecast.calibrated(np.array([0.3], dtype=np.float32)), [np.float32(0.3)])


def test_agreement_alone_is_a_forecast_too() -> None:
    forecast = Forecast(candidate="a", from_consensus=True)
    assert forecast.expected(5).accuracy is None
    low, high = (forecast.expected(5, value) for value in (0.5, 0.9))
    assert low.accuracy is not None
    assert high.accuracy is not None
    assert CONSENSUS.without is not None
    assert high.accuracy == pytest.approx(0.9, abs=0.05)
    assert low.accuracy < 0.6
    assert forecast.expected(5, 1.0).accuracy == pytest.approx(MOST)  # nobody is promised everything


def test_the_mean_confidence_is_the_forecast() -> None:
    certainty = np.random.default_rng(0).uniform(0.2, 1, 500).astype(np.float32)
    forecast = replace(Forecast(candidate="a", from_consensus=True), accuracy=0.8).calibrated_by(certainty)
    confidence = forecast.calibrated(certainty)
    assert confidence.mean() == pytest.approx(0.8, abs=0.01)
    assert (np.argsort(certainty, kind="stable") == np.argsort(confidence, kind="stable")).mean() > 0.9
    assert forecast.calibrated(np.zeros(1, dtype=np.float32)) >= 0
