"""Spaces in which clusters are looked for: ways to scale the columns, times ways to shape them by known classes.

Which space suits the data nobody can know beforehand, so clusters are looked for in all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.utils.extmath import randomized_svd

from unveil.clustering.taught import taught
from unveil.numerics import Labels, Matrix, unit_rows

Scaling = Literal["standard", "unit", "none"]
SCALINGS: tuple[Scaling, ...] = ("standard", "unit", "none")
COMPONENTS = 128
"""Most principal components that are kept."""
FARTHEST = 6.0
"""Standardized values beyond this are cut: one of them would hide all other columns."""
SAME_LENGTH = 1e-3
"""Vectors whose lengths differ by less than this share are at unit length already."""


@dataclass(frozen=True)
class Space:
    """The rows in one space."""

    name: str
    z: Matrix
    """(n, d): labeled and unlabeled rows."""


def scaled(x: Matrix, scalings: Sequence[Scaling] = SCALINGS) -> dict[Scaling, Matrix]:
    """The rows of x (n, D) scaled in each way, as principal components (n, d)."""
    lengths = np.linalg.norm(x, axis=1)
    same_length = bool(lengths.std() <= SAME_LENGTH * max(float(lengths.mean()), 1e-12))
    found: dict[Scaling, Matrix] = {}
    for scaling in scalings:
        if scaling == "standard":
            spread, largest = x.std(axis=0), np.abs(x).max(axis=0, initial=0)
            varied = (spread > 1e-9) | (spread > 1e-5 * largest)
            standardized = (x - x.mean(axis=0)) / np.where(varied, spread, 1)
            found[scaling] = components(np.clip(standardized, -FARTHEST, FARTHEST))
        elif scaling == "unit":
            found[scaling] = unit_rows(components(unit_rows(x)))
        elif not (same_length and len(scalings) > 1):  # otherwise the same as "unit"
            found[scaling] = components(x)
    return found


def shaped(base: dict[Scaling, Matrix], labels: Labels, seed: int) -> Iterator[Space]:
    """Each scaling as it is, and after the map that known classes teach."""
    for scaling, z in base.items():
        yield Space(scaling, z)
        yield Space(f"{scaling}, taught", taught(z, labels, seed))


def components(x: Matrix) -> Matrix:
    """(n, d): the rows on their leading principal components; all of them where there are few."""
    x = (x - x.mean(axis=0)).astype(np.float32)
    if x.shape[1] <= COMPONENTS:
        return x
    vectors, values, _ = randomized_svd(x, COMPONENTS, n_iter=2, random_state=0)
    return np.ascontiguousarray(vectors * values, dtype=np.float32)
