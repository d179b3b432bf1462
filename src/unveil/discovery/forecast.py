"""The forecast of the accuracy on novel classes: expected value, interval, and calibration of confidences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

INTERVAL = 1.64
"""Standard deviations to each side of the mean that hold 90 % of a normal distribution."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast of the accuracy on novel classes, from rehearsals."""

    candidate: str
    """The candidate that was chosen."""
    accuracy: float | None = None
    """Expected accuracy on the novel classes; None where nothing was rehearsed."""
    spread: float | None = None
    """Standard deviation of the expected accuracy."""
    count_error: float | None = None
    """Mean error of the estimated number of classes, as a share of the true number."""
    rehearsals: tuple[dict[str, Any], ...] = ()
    """For each rehearsal: classes `hidden`, classes `counted`, and the `accuracy` of each candidate."""
    calibration: tuple[tuple[float, float], ...] = ()
    """Points (confidence before calibration, share of correct items) of an increasing curve."""
    reason: str = ""
    """Why there is no forecast."""

    @property
    def low(self) -> float | None:
        """Lower end of the 90 % interval of the forecast accuracy."""
        if self.accuracy is None or self.spread is None:
            return None
        return max(0.0, self.accuracy - INTERVAL * self.spread)

    @property
    def high(self) -> float | None:
        """Upper end of the 90 % interval of the forecast accuracy."""
        if self.accuracy is None or self.spread is None:
            return None
        return min(1.0, self.accuracy + INTERVAL * self.spread)

    def combined_with(self, confidence: NDArray[np.float32]) -> "Forecast":
        """Averaged with a second forecast: the mean calibrated confidence of the novel items themselves."""
        if self.accuracy is None or self.spread is None or not self.calibration:
            return self
        second = float(confidence.mean())
        half_gap = abs(second - self.accuracy) / 2
        return replace(self, accuracy=(self.accuracy + second) / 2, spread=float(np.hypot(self.spread, half_gap)))

    def calibrated(self, confidence: NDArray[np.float32]) -> NDArray[np.float32]:
        """The probability that each item is in the right cluster, from the confidence before calibration."""
        if not self.calibration:
            return confidence
        given, share = zip(*self.calibration, strict=True)
        probability: NDArray[np.float32] = np.interp(confidence, given, share).astype(np.float32)
        return probability

    def sentence(self) -> str:
        """The forecast in one sentence."""
        if self.accuracy is None or self.low is None or self.high is None:
            return f"Expected accuracy unknown: {self.reason or 'nothing was rehearsed'}."
        count = len(self.rehearsals)
        return (
            f"Expected accuracy {100 * self.accuracy:.0f} % (90 % interval {100 * self.low:.0f}-{100 * self.high:.0f} "
            f"%), from {count} rehearsal{'s' if count != 1 else ''} on hidden known classes."
        )

    def mean_accuracy(self, candidate: str) -> float:
        """Accuracy of a candidate, averaged over the rehearsals."""
        return float(np.mean([rehearsal["accuracy"][candidate] for rehearsal in self.rehearsals]))

    def to_json(self) -> dict[str, Any]:
        """For a JSON file."""
        return {
            **self.__dict__,
            "low": self.low,
            "high": self.high,
            "rehearsals": list(self.rehearsals),
            "calibration": [list(point) for point in self.calibration],
        }

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "Forecast":
        """The forecast that `to_json` wrote."""
        values = {key: value for key, value in stored.items() if key not in ("low", "high")}
        points = tuple((float(a), float(b)) for a, b in values["calibration"])
        return Forecast(**{**values, "rehearsals": tuple(values["rehearsals"]), "calibration": points})


def calibration_curve(
    confidence: Sequence[NDArray[np.float32]], correct: Sequence[NDArray[np.bool_]]
) -> tuple[tuple[float, float], ...]:
    """Share of correct items by confidence, as an increasing curve through at most 20 points."""
    from sklearn.isotonic import IsotonicRegression

    given, share = np.concatenate(confidence), np.concatenate(correct).astype(float)
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(given, share)
    at = np.unique(np.quantile(given, np.linspace(0, 1, 20)))
    return tuple((float(a), float(b)) for a, b in zip(at, fitted.predict(at), strict=True))
