"""`unveil suggest RUN`: classes to add, with name, size, examples, the nearest known class and how sure each is."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import mean_direction
from unveil.review.names import Names, free_name
from unveil.runs.reader import Run

EXAMPLES = 5
SURE, DOUBTFUL = 0.85, 0.6  # mean confidences from which a class is sure, and below which it is doubtful


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A class that could be added."""

    cluster: str  # its name in the run
    name: str  # a name to begin with; that of the cluster where nothing tells
    size: int
    confidence: float  # mean over its items
    sure: str  # sure, likely or doubtful
    nearest_known: str | None
    cosine: float | None  # of the mean directions of the two
    examples: tuple[str, ...]  # ids of the items most typical of it, best first
    texts: tuple[str, ...] = ()  # the same items as texts, where they are texts

    def to_json(self) -> dict[str, Any]:
        """For a JSON file."""
        return asdict(self)


def suggestions(run: Run) -> list[Suggestion]:
    """The novel classes of a run, the surest first; empty ones are left out."""
    names, taken = Names(run), list(run.classes)
    means = _known_means(run)
    found = []
    for cluster in run.novel:
        rows = np.flatnonzero(run.labels == cluster)
        if not len(rows):
            continue
        here = mean_direction(np.asarray(run.features[rows])) if means else np.zeros(0)
        near = sorted(((name, float(here @ mean)) for name, mean in means.items()), key=lambda pair: -pair[1])
        given = run.classes[cluster]
        name = given
        if given.startswith("novel-"):  # nobody has named it yet
            told = names.suggest(run.labels, cluster, [label for label, _ in near])
            name = free_name(told[0], taken) if told else given
            taken.append(name)
        best = rows[np.argsort(-run.typicality[rows], kind="stable")][:EXAMPLES].tolist()
        confidence = float(run.confidence[rows].mean())
        found.append(
            Suggestion(
                cluster=given,
                name=name,
                size=len(rows),
                confidence=round(confidence, 4),
                sure="sure" if confidence >= SURE else "doubtful" if confidence < DOUBTFUL else "likely",
                nearest_known=near[0][0] if near else None,
                cosine=round(near[0][1], 4) if near else None,
                examples=tuple(run.ids[row] for row in best),
                texts=tuple(run.texts[row] for row in best) if run.texts else (),
            )
        )
    return sorted(found, key=lambda one: (-one.confidence, -one.size, one.cluster))


def _known_means(run: Run) -> dict[str, NDArray[np.float32]]:
    """The mean direction of each known class."""
    if not run.has_features:
        return {}
    rows = {run.classes[c]: np.flatnonzero(~run.new & (run.labels == c)) for c in range(run.n_known)}
    return {name: mean_direction(np.asarray(run.features[some])) for name, some in rows.items() if len(some)}
