"""The forecast of the accuracy on novel classes: expected value, interval, and calibration of confidences.

Rehearsals say how accurate a candidate is on hidden known classes, and how confident it was there. Novel classes may be
harder or easier than known ones: then it is less or more confident on them. So the forecast is the accuracy of the
rehearsals, moved as the confidence differs, and by how many more classes there are. Accuracies are compared as angles
θ = asin √a, because one point is more near 100 % than near 50 %. The constants below were fitted to random splits of
the *known* classes of eight data sets into known and novel ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

INTERVAL = 1.64
"""Standard deviations to each side of the mean that hold 90 % of a normal distribution."""
SPREAD, FEW_HIDDEN = 0.06, 0.4
"""Standard deviation, as an angle, of what rehearsals cannot know, because novel classes are other classes; the second
is divided by the number of hidden classes: few classes say little about others."""
BEFORE_A_LOOK = 0.12
"""Standard deviation that is added where the confidence on the novel classes is not known."""
BETTER = 0.04
"""Angle by which novel classes are found better than hidden ones: all known classes shape the metric, and there are
more rows."""
SLOPE = 1.2
"""Angle by which the accuracy moves for an angle of the confidence."""
NUMBER_LOSS, NUMBER_SPREAD = 0.25, 0.5
"""Mean and standard deviation of the angle by which the accuracy falls where the number of classes is an estimate, for
a standard deviation of 1 of its logarithm: classes fall together or apart where it is off. On hidden known classes the
angle falls by 0.7 for a number too small by a factor e, by 0.35 for one too large; the confidence falls with it, and
shows about half of that."""
MORE_CLASSES = 0.1
"""Angle by which it falls where there are e times as many novel classes as were hidden."""
WIDE = 0.15
"""An interval that reaches farther than this to one side says that the accuracy is hardly known."""


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
    rehearsals: tuple[dict[str, Any], ...] = ()
    """For each: classes `hidden`, `accuracy` and mean `confidence` of each candidate."""
    calibration: tuple[tuple[float, float], ...] = ()
    """Points (confidence before calibration, share of correct items) of an increasing curve."""
    reason: str = ""
    """Why there is no forecast."""

    def expected(self, n_novel: int, confidence: float | None = None) -> "Forecast":
        """The forecast, given the mean confidence (before calibration) on the novel classes where it is known."""
        if not self.rehearsals:
            return self
        accuracy = np.array([one["accuracy"][self.candidate] for one in self.rehearsals])
        hidden = np.array([one["hidden"] for one in self.rehearsals])
        angles = angle(accuracy) + BETTER - MORE_CLASSES * np.log(np.maximum(n_novel, 1) / hidden)
        angles = angles - NUMBER_LOSS * self.number_spread
        variance = SPREAD**2 + (FEW_HIDDEN / float(hidden.mean())) ** 2 + (NUMBER_SPREAD * self.number_spread) ** 2
        if confidence is None:
            variance += BEFORE_A_LOOK**2
        else:
            rehearsed = np.array([one["confidence"][self.candidate] for one in self.rehearsals])
            angles = angles + SLOPE * (angle(confidence) - angle(rehearsed))
        if len(angles) > 1:
            variance += float(np.var(angles, ddof=1)) / len(angles)
        middle, reach = float(angles.mean()), INTERVAL * variance**0.5
        low, high = share_of(middle - reach), share_of(middle + reach)
        return replace(self, accuracy=share_of(middle), low=low, high=high, confidence=confidence)

    def calibrated(self, confidence: NDArray[np.float32]) -> NDArray[np.float32]:
        """The probability that each item is in the right cluster, from the confidence before calibration."""
        if not self.calibration:
            return confidence
        given, share = zip(*self.calibration, strict=True)
        probability: NDArray[np.float32] = np.interp(confidence, given, share).astype(np.float32)
        return probability

    @property
    def hardly_known(self) -> bool:
        """Whether the interval is so wide that its middle means little."""
        if self.accuracy is None or self.low is None or self.high is None:
            return True
        return max(self.high - self.accuracy, self.accuracy - self.low) > WIDE

    def sentence(self) -> str:
        """The forecast in one or two sentences."""
        if self.accuracy is None or self.low is None or self.high is None:
            return f"The accuracy cannot be forecast: {self.reason or 'nothing was rehearsed'}."
        count = len(self.rehearsals)
        source = f"from {count} rehearsal{'s' if count != 1 else ''} on hidden known classes"
        low, middle, high = (f"{100 * value:.0f}" for value in (self.low, self.accuracy, self.high))
        if self.hardly_known:
            text = (
                f"The accuracy is hardly known: {low} to {high} % with 90 % probability, perhaps {middle} %, {source}."
            )
        else:
            text = f"Expected accuracy {middle} % (90 % interval {low}-{high} %), {source}."
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
