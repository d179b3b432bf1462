"""The candidates that rehearsals compare: k-means, and the method with different settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unveil import recipe
from unveil.discovery.count import unbalanced
from unveil.numerics import Labels
from unveil.settings import Settings


@dataclass(frozen=True)
class Candidate:
    """A method with its settings, or k-means as it is."""

    name: str
    method: str | None = None
    """None: the clusters of k-means are kept."""
    changes: tuple[tuple[str, Any], ...] = ()
    """Settings that differ from the recipe, by `table.key`."""
    description: str = ""

    def applied_to(self, settings: Settings) -> Settings:
        """The settings with which this candidate trains."""
        return recipe.changed_at(settings, dict(self.changes))


KMEANS = Candidate("k-means", description="k-means on the vectors")


def candidates(settings: Settings) -> tuple[Candidate, ...]:
    """k-means, and the method with few and with many neighbours where it has any; else the method alone."""
    method = settings.discovery.method
    if settings.compare and method == "kmeans":
        return (KMEANS,)
    usual = Candidate(method, method, description=f"training by {method}")
    if not settings.compare:
        return (usual,)
    if not method.startswith("ncl"):
        return (KMEANS, usual)
    many = Candidate(
        f"{method}, many neighbors",
        method,
        (("discovery.k1_fraction", 0.5),),
        f"training by {method} with five times as many neighbors",
    )
    return (KMEANS, usual, many)


def fitted_to_sizes(candidate: Candidate, start: Labels, settings: Settings) -> Candidate:
    """With fewer neighbors where clusters are unbalanced: k1 = |M| / C / 2 takes them to be of equal size."""
    sizes = np.unique(start, return_counts=True)[1]  # a known class may not be there at all
    if candidate.method is None or not settings.compare or not unbalanced(sizes.tolist()):
        return candidate
    share = max(0.1, float(sizes.min() * len(sizes) / sizes.sum()))
    usual = candidate.applied_to(settings).discovery
    fewer = {
        "discovery.k1_fraction": usual.k1_fraction * share,
        "discovery.rank_fraction": usual.rank_fraction * max(share, 0.3),
    }
    description = f"{candidate.description} (with fewer neighbors, because the clusters are unbalanced)"
    return replace(candidate, changes=tuple((dict(candidate.changes) | fewer).items()), description=description)


def usual(options: Sequence[Candidate], known_in_unlabelled: bool) -> Candidate:
    """The candidate that is taken where nothing was rehearsed: the method as the recipe has it.

    Where known classes are among the unlabelled items it is k-means: its start tells known items from others by their
    neighbors, and training may undo that.
    """
    return options[0 if known_in_unlabelled else min(1, len(options) - 1)]
