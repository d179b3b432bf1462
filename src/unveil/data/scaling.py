"""What is done to vectors before anything is learned from them: one scale, unit length, principal components."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from unveil.data.dataset import Dataset, Split, Vectors
from unveil.errors import UnveilError
from unveil.numerics import unit_rows
from unveil.settings import Data

SAMPLE = 20_000  # rows from which the components are found


@dataclass(frozen=True)
class Reduction:
    """x → (x − center) / scale → unit length → principal components; every part may be left out."""

    center: Vectors | None = None
    scale: Vectors | None = None
    unit: bool = False
    mean: Vectors | None = None
    axes: Vectors | None = None
    """(components, features)"""

    def __call__(self, x: NDArray[np.floating]) -> Vectors:
        """Vectors along the last dimension, reduced."""
        found: Vectors = np.asarray(x, dtype=np.float32)
        if self.center is not None and self.scale is not None:
            found = (found - self.center) / self.scale
        if self.unit:
            found = unit_rows(found)
        if self.axes is not None and self.mean is not None:
            found = (found @ self.axes.T - self.mean @ self.axes.T).astype(np.float32, copy=False)
        return found

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Everything, to be stored; `from_arrays` is the way back."""
        parts = {name: getattr(self, name) for name in ("center", "scale", "mean", "axes")}
        stored = {
            name: np.ascontiguousarray(part, dtype=np.float32) for name, part in parts.items() if part is not None
        }
        return stored | {"unit": np.array([self.unit], dtype=np.float32)}

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[np.float32]]) -> "Reduction":
        """What `arrays` returned."""
        parts: dict[str, Any] = {name: bool(part[0]) if name == "unit" else part for name, part in arrays.items()}
        return Reduction(**parts)


def fit_reduction(
    x: NDArray[np.floating], *, unit: bool = False, components: int | None = None, standardise: bool = False
) -> Reduction:
    """Find the reduction of a sample of rows (n, features); it has no more components than there are."""
    some = np.asarray(x[:: max(1, len(x) // SAMPLE)], dtype=np.float32)
    found = Reduction(unit=unit)
    if standardise:
        spread = some.std(axis=0)
        found = replace(found, center=some.mean(axis=0), scale=np.where(spread > 1e-9, spread, 1).astype(np.float32))
    if components is None:
        return found
    some = found(some)
    with np.errstate(invalid="ignore"):  # constant vectors have no share of variance to tell
        fitted = PCA(min(components, *some.shape), random_state=0).fit(some)
    return replace(found, mean=fitted.mean_.astype(np.float32), axes=fitted.components_.astype(np.float32))


def reduced(dataset: Dataset, config: Data) -> Dataset:
    """The data set with its vectors at unit length and on fewer axes, as the settings ask."""
    if not config.unit and config.pca is None:
        return dataset
    if dataset.kind != "vectors":
        raise UnveilError(f"data.unit and data.pca are for vectors, and {dataset.name} has images: leave them out")
    found = fit_reduction(dataset.train.items, unit=config.unit, components=config.pca)  # type: ignore[arg-type]

    def split(part: Split) -> Split:
        return replace(part, items=found(part.items))  # type: ignore[arg-type]

    return replace(dataset, train=split(dataset.train), test=None if dataset.test is None else split(dataset.test))
