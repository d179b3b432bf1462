"""The number of classes by the heights at which known classes merge.

Ward's tree of the unlabelled items is cut at the height at which trees of known classes fall into their true number of
classes; trees of about as many classes as are found count.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage

from unveil import rng
from unveil.discovery.count_agreement import Curve
from unveil.numerics import Labels, Matrix

ROWS = 1500
"""Items in a tree: its cost grows with their square."""
TREES, DRAWS = 24, 5
"""Number of trees of known classes, and of trees of unlabelled items."""
ALIKE = np.log(1.5)
"""Two numbers of classes count as similar if their logarithms differ by less than this."""


def by_merge_height(
    labelled: Matrix, y: Labels, unlabelled: Matrix, most: int, seed: int, rows: int, size: float
) -> tuple[Curve, int, int]:
    """Cut Ward's tree at the height at which trees of known classes have their true number; returns (curve, low, high).

    Trees are sampled so that a class has about as many items in each: a novel class is assumed to have `size` times as
    many items as a known class has labelled ones.
    """
    classes = np.unique(y)
    share = min(1.0, rows / max(size * len(labelled), len(unlabelled)))
    of_known = min(1.0, size * share)
    offset = 0.5 * np.log(size * share / of_known)  # heights grow with the root of the number of items
    counts, levels = [], []
    for number in range(TREES):
        draw = rng.numpy(seed, "merge height of known classes", number)
        count = round(np.exp(draw.uniform(np.log(2), np.log(len(classes)))))
        chosen = np.flatnonzero(np.isin(y, draw.permutation(classes)[:count]))
        chosen = draw.permutation(chosen)[: max(count + 2, round(of_known * len(chosen)))]
        if len(chosen) > count:
            counts.append(count)
            levels.append(float(_cuts(labelled[chosen], count)[count - 1] + offset))
    cuts = []
    for number in range(DRAWS):
        draw = rng.numpy(seed, "merge height of unlabelled items", number)
        chosen = draw.permutation(len(unlabelled))[: max(4, round(share * len(unlabelled)))]
        cuts.append(_cuts(unlabelled[chosen], min(most, len(chosen) - 1)))
    mean = np.mean([cut[: min(map(len, cuts))] for cut in cuts], axis=0)

    def nearest(height: float) -> int:
        return int(np.argmin(np.abs(mean - height))) + 1

    level, spread = float(np.median(levels)), float(np.std(levels))
    for _ in range(3):  # heights fall with the number of classes: compare with trees of about as many
        similar = np.abs(np.log(np.array(counts) / min(nearest(level), len(classes)))) < ALIKE
        if similar.sum() >= 3:
            level, spread = float(np.median(np.array(levels)[similar])), float(np.std(np.array(levels)[similar]))
    shown = min(len(mean), max(10, 3 * nearest(level)))
    curve = Curve("merge height (log)", tuple(range(1, shown + 1)), tuple(map(float, mean[:shown])), nearest(level))
    return curve, nearest(level + 1.64 * spread), nearest(level - 1.64 * spread)


def _cuts(x: Matrix, most: int) -> NDArray[np.float64]:
    """At index k − 1: the logarithm of the height at which Ward's tree of `x` has k clusters (middle of its range)."""
    merges = np.log(np.maximum(linkage(x.astype(np.float64), "ward")[::-1, 2], 1e-12))  # from the root down
    above = np.concatenate([[merges[0] + 0.05], merges[:-1]])  # one cluster: anywhere above the root
    middle: NDArray[np.float64] = (above + merges) / 2
    return middle[: max(1, most)]
