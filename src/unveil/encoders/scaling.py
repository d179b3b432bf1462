"""What is done to vectors before anything is learned from them: one scale, unit length, principal components."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from unveil.data.items import Vectors
from unveil.encoders.conditioning import Conditioning

SAMPLE = 20_000  # rows from which the components are found


@dataclass(frozen=True)
class Reduction:
    """x → (x − center) / scale → unit length → principal components; every part may be left out."""

    first: Conditioning | None = None
    """Where the numbers need it, what is done to them before anything else."""
    center: Vectors | None = None
    scale: Vectors | None = None
    unit: bool = False
    mean: Vectors | None = None
    axes: Vectors | None = None
    """(components, features)"""
    shift: Vectors | None = None
    """Subtracted from the components."""
    unit_after: bool = False
    """Bring the result to unit length."""

    def __call__(self, x: NDArray[np.floating]) -> Vectors:
        """Vectors along the last dimension, reduced."""
        reduced: Vectors = np.asarray(x, dtype=np.float32) if self.first is None else self.first(x)
        if self.center is not None and self.scale is not None:
            reduced = (reduced - self.center) / self.scale
        if self.unit:
            length = np.linalg.norm(reduced, axis=-1, keepdims=True)
            reduced = (reduced / np.maximum(length, 1e-12)).astype(np.float32)
        if self.axes is not None and self.mean is not None:
            reduced = (reduced @ self.axes.T - self.mean @ self.axes.T).astype(np.float32, copy=False)
        if self.shift is not None:
            reduced = reduced - self.shift
        if self.unit_after:
            length = np.linalg.norm(reduced, axis=-1, keepdims=True)
            reduced = (reduced / np.maximum(length, 1e-12)).astype(np.float32)
        return reduced

    def then(self, after: "Reduction") -> "Reduction":
        """Both in a row as one; `after` may only have axes, a shift and unit length."""
        axes, mean = self.axes, self.mean
        if after.axes is not None:
            axes = np.ascontiguousarray(after.axes if axes is None else after.axes @ axes, dtype=np.float32)
            mean = np.zeros(axes.shape[1], dtype=np.float32) if mean is None else mean
        return replace(self, axes=axes, mean=mean, shift=after.shift, unit_after=after.unit_after)

    @property
    def n_inputs(self) -> int:
        """The number of features that it takes, where it knows."""
        offset = None if self.first is None else self.first.offset
        part = next((part for part in (self.center, self.mean, offset) if part is not None), None)
        return 0 if part is None else len(part)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, to be stored; `from_arrays` is the way back."""
        parts = {name: getattr(self, name) for name in ("center", "scale", "mean", "axes", "shift")}
        stored: dict[str, NDArray[Any]] = {
            name: np.ascontiguousarray(part, dtype=np.float32) for name, part in parts.items() if part is not None
        }
        if self.first is not None:
            stored |= {f"first.{name}": part for name, part in self.first.arrays().items()}
        flags = {name: np.array([getattr(self, name)], dtype=np.float32) for name in ("unit", "unit_after")}
        return stored | flags

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[np.float32]]) -> "Reduction":
        """What `arrays` returned."""
        parts: dict[str, Any] = {
            name: bool(part[0]) if name in ("unit", "unit_after") else part
            for name, part in arrays.items()
            if not name.startswith("first.")
        }
        first = {name.removeprefix("first."): part for name, part in arrays.items() if name.startswith("first.")}
        return Reduction(**parts, first=Conditioning(**first) if first else None)  # type: ignore[arg-type]


def fit_reduction(
    x: NDArray[np.floating], *, unit: bool = False, components: int | None = None, standardize: bool = False
) -> Reduction:
    """Fit the reduction to a sample of rows (n, features); it has no more components than there are."""
    some = np.asarray(x[:: max(1, len(x) // SAMPLE)], dtype=np.float32)
    reduction = Reduction(unit=unit)
    if standardize:
        spread, largest = some.std(axis=0), np.abs(some).max(axis=0, initial=0)
        varied = (spread > 1e-9) | (spread > 1e-5 * largest)  # a column may be small as a whole
        reduction = replace(reduction, center=some.mean(axis=0), scale=np.where(varied, spread, 1).astype(np.float32))
    if components is None:
        return reduction
    some = reduction(some)
    with np.errstate(invalid="ignore"):  # constant vectors have no share of variance to tell
        fitted = PCA(min(components, *some.shape), random_state=0).fit(some)
    return replace(
        reduction, mean=fitted.mean_.astype(np.float32), axes=np.ascontiguousarray(fitted.components_, dtype=np.float32)
    )
