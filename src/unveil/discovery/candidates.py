"""The candidates that rehearsals compare: k-means, and the method with different settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unveil import recipe
from unveil.clustering.catalog import CLUSTERERS
from unveil.counting.estimate import unbalanced
from unveil.methods.catalog import method_class
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
    """k-means, and the method with its usual settings and its variations; or, without `compare`, the method alone."""
    name = settings.discovery.method
    method = method_class(name)
    description = CLUSTERERS[name].description if method is None else f"training by {name}"
    as_it_is = Candidate(name, name, description=description)
    if not settings.compare:
        return (as_it_is,)
    if name == "kmeans":
        return (KMEANS,)
    variations = [
        Candidate(
            f"{name}, {one.name}",
            name,
            tuple((f"method.{key}", value) for key, value in one.settings.items()),
            f"training by {name} {one.description}",
        )
        for one in (() if method is None else method.variations)
    ]
    return (KMEANS, as_it_is, *variations)


def fitted_to_sizes(candidate: Candidate, start: Labels, settings: Settings) -> Candidate:
    """With fewer neighbors where clusters are unbalanced: k1 = |M| / C / 2 takes them to be of equal size."""
    sizes = np.unique(start, return_counts=True)[1]  # a known class may not be there at all
    method = None if candidate.method is None else method_class(candidate.method)
    if method is None or not settings.compare or not unbalanced(sizes.tolist()):
        return candidate
    share = max(0.1, float(sizes.min() * len(sizes) / sizes.sum()))
    changes = method.for_unbalanced(candidate.applied_to(settings).method, share)
    if not changes:
        return candidate
    fewer = {f"method.{key}": value for key, value in changes.items()}
    description = f"{candidate.description} (with fewer neighbors, because the clusters are unbalanced)"
    return replace(candidate, changes=tuple((dict(candidate.changes) | fewer).items()), description=description)


def usual(options: Sequence[Candidate], known_in_unlabeled: bool) -> Candidate:
    """The candidate that is taken where nothing was rehearsed: the method as the recipe has it.

    Where known classes are among the unlabeled items and the method trains, it is k-means: its start tells known items
    from others by their neighbors, and training may undo that.
    """
    first = options[min(1, len(options) - 1)]
    undoes = known_in_unlabeled and first.method is not None and method_class(first.method) is not None
    return options[0] if undoes else first
