"""The forecast of the accuracy on novel classes: expected value, interval, and calibration of confidences.

Rehearsals say how accurate a method is on hidden known classes, and how confident it was there. Novel classes may be
harder or easier than known ones: then it is less or more confident on them. The forecast is a linear regression on
these three, compared as angles θ = asin √a, because one point is more near 100 % than near 50 %. Its coefficients
(`Model`) were fitted to tasks whose truth is known, other data sets than the one that is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

INTERVAL = 1.64
"""Standard deviations to each side of the mean that hold 90 % of a normal distribution."""
NUMBER_LOSS, NUMBER_SPREAD = 0.25, 0.5
"""Mean and standard deviation of the angle by which the accuracy falls where the number of classes is an estimate, for
a standard deviation of 1 of its logarithm: classes fall together or apart where it is off. On hidden known classes the
angle falls by 0.7 for a number too small by a factor e, by 0.35 for one too large; the confidence falls with it, and
shows about half of that."""


@dataclass(frozen=True)
class Model:
    """θ(accuracy) = intercept + rehearsed θ_r + confident θ_c + confident_there θ_cr + more_classes log(K / hidden)."""

    intercept: float
    rehearsed: float
    confident: float
    confident_there: float
    more_classes: float
    spread: float
    """Standard deviation, as an angle, of what the regression does not explain."""
    few_hidden: float
    """The same for one hidden class; it falls with their number: few classes say little about others."""
    unseen: float
    """The same where the confidence on the novel classes is not known."""
    without: tuple[float, float, float] | None = None
    """Intercept, slope and standard deviation for the confidence alone, where nothing was rehearsed."""


TRAINED = Model(0.04, 1.0, 1.2, -1.2, -0.1, spread=0.06, few_hidden=0.4, unseen=0.12)
"""Methods that train; fitted to random splits of the known classes of eight data sets."""
CONSENSUS = Model(-0.02, 0.44, 1.11, -0.52, 0.0, spread=0.125, few_hidden=0.08, unseen=0.12, without=(0.0, 1.0, 0.153))
"""Neighbor consensus; fitted by least squares to the tasks of `benchmarks/own_tasks.py`, number of classes given. Left
out one data set at a time, the mean error is 9 points, and 91 % of the accuracies are inside the interval."""
MOST = 0.99
"""Nobody is promised more than this."""
WIDE = 0.4
"""An interval wider than this says that the accuracy is hardly known."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast of the accuracy on novel classes, from rehearsals."""

    candidate: str
    """The candidate that was chosen."""
    accuracy: float | None = None
    """Expected accuracy on the novel classes; None where nothing was rehearsed."""
    low: float | None = None
    """Lower end of the 90 % interval of the forecast accuracy."""
    high: float | None = None
    """Its upper end."""
    confidence: float | None = None
    """Mean confidence on the novel classes before calibration; None where they were not looked at yet."""
    counted: bool = False
    """The number of classes is an estimate, and the interval includes its error."""
    number_spread: float = 0.0
    """Standard deviation of the logarithm of the estimated number of classes."""
    from_consensus: bool = False
    """Whether the confidence is that of neighbor consensus, which means something without any rehearsal too."""
    rehearsals: tuple[dict[str, Any], ...] = ()
    """For each: classes `hidden`, `accuracy` and mean `confidence` of each candidate."""
    calibration: tuple[tuple[float, float], ...] = ()
    """Points (confidence before calibration, share of correct items) of an increasing curve."""
    reason: str = ""
    """Why there is no forecast."""

    def expected(self, n_novel: int, confidence: float | None = None) -> "Forecast":
        """The forecast, given the mean confidence (before calibration) on the novel classes where it is known."""
        model = CONSENSUS if self.from_consensus else TRAINED
        if not self.rehearsals:
            if model.without is None or confidence is None:
                return self
            intercept, slope, spread = model.without
            return self._between(intercept + slope * float(angle(confidence)), spread**2, confidence)
        accuracy = np.array([one["accuracy"][self.candidate] for one in self.rehearsals])
        there = angle(np.array([one["confidence"][self.candidate] for one in self.rehearsals]))
        hidden = np.array([one["hidden"] for one in self.rehearsals])
        angles = model.intercept + model.rehearsed * angle(accuracy) + model.confident_there * there
        angles = angles + model.more_classes * np.log(np.maximum(n_novel, 1) / hidden)
        variance = model.spread**2 + (model.few_hidden / float(hidden.mean())) ** 2
        if confidence is None:
            angles = angles + model.confident * there
            variance += model.unseen**2
        else:
            angles = angles + model.confident * angle(confidence)
        if len(angles) > 1:
            variance += float(np.var(angles, ddof=1)) / len(angles)
        return self._between(float(angles.mean()), variance, confidence)

    def _between(self, middle: float, variance: float, confidence: float | None) -> "Forecast":
        """The forecast with this angle, before an estimated number of classes lowers and widens it."""
        middle = min(middle, float(angle(MOST))) - NUMBER_LOSS * self.number_spread
        reach = INTERVAL * (variance + (NUMBER_SPREAD * self.number_spread) ** 2) ** 0.5
        low, high = share_of(middle - reach), share_of(middle + reach)
        return replace(self, accuracy=share_of(middle), low=low, high=high, confidence=confidence)

    def calibrated(self, confidence: NDArray[np.float32]) -> NDArray[np.float32]:
        """The probability that each item is in the right cluster, from the confidence before calibration."""
        if not self.calibration:
            return confidence
        given, share = zip(*self.calibration, strict=True)
        probability: NDArray[np.float32] = np.interp(confidence, given, share).astype(np.float32)
        return probability

    def calibrated_by(self, confidence: NDArray[np.float32]) -> "Forecast":
        """The forecast with a calibration after which the mean of these confidences is the accuracy that it expects.

        The log-odds of all of them move by the same amount.
        """
        if self.accuracy is None or not len(confidence):
            return self
        low, high = -20.0, 20.0
        odds = _log_odds(confidence.astype(np.float64))
        for _ in range(50):  # bisection
            middle = (low + high) / 2
            below = float((1 / (1 + np.exp(-odds - middle))).mean()) < self.accuracy
            low, high = (middle, high) if below else (low, middle)
        at = np.linspace(0, 1, 51)
        share = 1 / (1 + np.exp(-_log_odds(at) - low))
        return replace(self, calibration=tuple((float(a), float(b)) for a, b in zip(at, share, strict=True)))

    @property
    def hardly_known(self) -> bool:
        """Whether the interval is so wide that its middle means little."""
        return self.low is None or self.high is None or self.high - self.low > WIDE

    def sentence(self) -> str:
        """The forecast in one or two sentences."""
        if self.accuracy is None or self.low is None or self.high is None:
            return f"The accuracy cannot be forecast: {self.reason or 'nothing was rehearsed'}."
        low, middle, high = (f"{100 * value:.0f}" for value in (self.low, self.accuracy, self.high))
        text = f"Probably {middle} % correct; could be {low} to {high} %."
        if self.counted:
            text += " The number of classes is an estimate, and this includes its error."
        return text

    def mean_accuracy(self, candidate: str) -> float:
        """Accuracy of a candidate, averaged over the rehearsals."""
        return float(np.mean([rehearsal["accuracy"][candidate] for rehearsal in self.rehearsals]))

    def to_json(self) -> dict[str, Any]:
        """For a JSON file."""
        return {
            **self.__dict__,
            "rehearsals": list(self.rehearsals),
            "calibration": [list(point) for point in self.calibration],
        }

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "Forecast":
        """The forecast that `to_json` wrote; keys of older versions are left out."""
        values = {key: value for key, value in stored.items() if key in Forecast.__dataclass_fields__}
        points = tuple((float(a), float(b)) for a, b in values["calibration"])
        return Forecast(**{**values, "rehearsals": tuple(values["rehearsals"]), "calibration": points})


def _log_odds(share: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(share, 0.01, 0.99)
    return np.log(inside / (1 - inside))


def angle(share: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """asin √a, on which errors of accuracies have about the same size everywhere."""
    angles: NDArray[np.float64] = np.arcsin(np.sqrt(np.clip(share, 0, 1)))
    return angles


def share_of(theta: float) -> float:
    """The accuracy with this angle."""
    return float(np.sin(np.clip(theta, 0, np.pi / 2)) ** 2)


def calibration_curve(
    confidence: Sequence[NDArray[np.float32]], correct: Sequence[NDArray[np.bool_]]
) -> tuple[tuple[float, float], ...]:
    """Share of correct items by confidence, as an increasing curve through at most 20 points."""
    from sklearn.isotonic import IsotonicRegression

    given, share = np.concatenate(confidence), np.concatenate(correct).astype(float)
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(given, share)
    at = np.unique(np.quantile(given, np.linspace(0, 1, 20)))
    return tuple((float(a), float(b)) for a, b in zip(at, fitted.predict(at), strict=True))
