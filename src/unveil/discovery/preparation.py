"""Before a fit on vectors: which rows it is trained on, how they are scaled, whether known classes are among them."""

from collections.abc import Sequence

import numpy as np

from unveil import rng
from unveil.data.scaling import Reduction, fit_reduction
from unveil.discovery.clusters import kmeans
from unveil.discovery.fitting import Problem
from unveil.discovery.known_neighbors import among_known
from unveil.metrics import clustering_accuracy
from unveil.numerics import Labels, Matrix

MOST = 60_000
"""Rows that are trained on; the others are only labelled."""
KEPT = 50
"""Items of a known class that are among them, where it has so many."""
COMPONENTS = 256
UNIT_FROM = 16
"""Vectors of fewer numbers are not brought to unit length: too much would be lost."""
SCALED, DRAWS = 3000, 5
"""Known items by which the scaling is chosen, and draws of them: a single k-means may be far off."""
ALIKE = 0.05, 1.2
"""So many unlabelled items may lie deep in a known class before a warning: a share, and a multiple of the share of
labelled items that lie as deep in another class than theirs."""


def training_rows(labels: Labels, seed: int) -> Labels:
    """At most so many rows, half of them labelled where there are that many; no class is left out."""
    if len(labels) <= MOST:
        return np.arange(len(labels))
    draw = rng.numpy(seed, "training rows")
    order = draw.permutation(len(labels))
    labelled, unlabelled = order[labels[order] != -1], order[labels[order] == -1]
    few = min(len(labelled), max(MOST // 2, MOST - len(unlabelled)))
    rank = np.zeros(len(labelled), dtype=np.int64)  # the first items of every class come before all others
    for label in np.unique(labels[labelled]):
        members = np.flatnonzero(labels[labelled] == label)
        rank[members] = np.minimum(np.arange(len(members)), KEPT)
    first = labelled[np.argsort(rank, kind="stable")[:few]]
    return np.sort(np.concatenate([first, unlabelled[: MOST - few]]))


def choose_reduction(x: Matrix, y: Labels, seed: int) -> tuple[Reduction, str]:
    """Unit length or standardised columns: whichever lets k-means find the known classes better."""
    standard = fit_reduction(x, standardise=True, components=COMPONENTS)
    if x.shape[1] < UNIT_FROM:
        return standard, "every column is standardised"
    unit = fit_reduction(x, unit=True, components=COMPONENTS)
    known, labelled = len(np.unique(y[y >= 0])), np.flatnonzero(y >= 0)
    if known < 2 or min(len(labelled), SCALED) < 5 * known:
        return unit, "every vector is brought to unit length"
    first, second = np.mean([_found(x, y, (unit, standard), known, seed, number) for number in range(DRAWS)], axis=0)
    told = f"k-means finds known classes at {100 * first:.0f} % with unit length, at {100 * second:.0f} % with columns"
    if second > first + 0.02:
        return standard, f"every column is standardised ({told} standardised)"
    return unit, f"every vector is brought to unit length ({told} standardised)"


def _found(x: Matrix, y: Labels, ways: Sequence[Reduction], known: int, seed: int, number: int) -> list[float]:
    """Accuracy of k-means on a draw of known items, in several ways of scaling."""
    draw = rng.numpy(seed, "scaling", number)
    rows = np.sort(draw.permutation(np.flatnonzero(y >= 0))[:SCALED])
    return [clustering_accuracy(y[rows], kmeans(way(x[rows]), known, seed + number, n_init=3).labels) for way in ways]


def looks_known(problem: Problem, seed: int) -> list[str]:
    """A warning where more unlabelled items lie among one known class than classes have in common.

    What is usual between classes is measured on the known ones.
    """
    labelled, unlabelled, x = problem.labelled, problem.unlabelled, problem.clean
    if min(len(labelled), len(unlabelled)) < 50 or problem.n_known < 2:
        return []
    near = among_known(x[labelled], problem.labels[labelled], x[unlabelled], seed)
    deep = near.own.mean()  # as deep in a class as items usually are in their own
    share, usual = float((near.share >= deep).mean()), float((near.other >= deep).mean())
    if share <= ALIKE[0] + ALIKE[1] * usual:
        return []
    return [
        f"{100 * share:.0f} % of the unlabelled items lie deep among items of a known class: the unlabelled data seems "
        "to contain known classes; use known_in_unlabelled=True (--may-contain-known) if it may"
    ]
