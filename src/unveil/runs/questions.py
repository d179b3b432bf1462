"""The questions of a review, the most useful one first: merge these, is this a known class, split, do these belong?

What a question is worth is the number of items that the answer is expected to put right: the probability of yes times
the items that yes would change. Probabilities come from one criterion each, chosen and fitted with simulated reviewers
on data whose truth is known (benchmarks/reviewers.py, results/reviewers.json).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import mean_direction, spread_rows, unit_rows
from unveil.runs.corrections import State
from unveil.runs.edited_scores import EditedScores
from unveil.runs.reader import Run

Matrix = NDArray[np.float32]
Rows = NDArray[np.int64]
SLOPES = {"merge": (5.37, -3.16), "known": (-1.9, 2.8), "split": (-7.51, 4.41)}
"""Slope and offset of the logistic curve from the criterion of a question to the probability of yes."""
DOUBTFUL = 12
"""Items in a question about doubtful ones."""
REJECTION = 0.25
"""What it is worth to reject a wrong item: it is not wrong any more, but in no class either."""
SAMPLE = 250
"""Items of a class that a criterion looks at."""
FEWEST = 4
"""Classes with fewer items are not asked about."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something that a person can answer with yes or no."""

    kind: str
    """merge, known, split or doubtful"""
    clusters: tuple[int, ...]
    """The class that it is about, and the class to merge with or the known class."""
    probability: float
    """Of yes; for doubtful items, the share that is expected to be wrong."""
    gain: float
    """Items that the answer is expected to put right."""
    parts: tuple[tuple[int, ...], ...] = ()
    """Rows of the parts of a split, or the doubtful rows as the only part."""

    def to_json(self) -> dict[str, Any]:
        """For the page."""
        return {
            **self.__dict__,
            "probability": round(self.probability, 3),
            "gain": round(self.gain, 2),
            "parts": [list(part) for part in self.parts],
        }


class Questions:
    """Questions about a state. What was computed about classes that did not change is kept."""

    def __init__(self, run: Run, scores: EditedScores) -> None:
        self._run = run
        self._scores = scores
        self._kept: dict[tuple[Any, ...], Any] = {}

    def about(self, state: State) -> list[Question]:
        """All open questions, the most useful first."""
        confidence, _ = self._scores.of(state)
        novel = [c for c in state.meanings if state.is_novel(c)]
        rows = {c: np.flatnonzero(state.labels == c) for c in novel}
        novel = [c for c in novel if len(rows[c]) >= FEWEST]
        questions = [
            *self._merges(state, rows, [c for c in novel if state.meanings[c].known is None]),
            *self._known(state, rows, [c for c in novel if state.meanings[c].known is None]),
            *self._splits(state, rows, [c for c in novel if not state.meanings[c].reviewed]),
            *_doubtful(state, rows, [c for c in novel if not state.meanings[c].reviewed], confidence),
        ]
        return sorted(questions, key=lambda question: -question.gain)

    def _merges(self, state: State, rows: dict[int, Rows], novel: list[int]) -> Iterable[Question]:
        """Each cluster and the one nearest to it; the criterion is the cosine of their mean directions."""
        if len(novel) < 2:
            return
        means = np.stack([self._mean(state, c, rows[c]) for c in novel])
        cosines = means @ means.T
        np.fill_diagonal(cosines, -2)
        seen = set()
        for place, cluster in enumerate(novel):
            for other in np.argsort(-cosines[place], kind="stable").tolist():
                pair = tuple(sorted((cluster, novel[other])))
                if other == place or pair in seen or state.is_denied("merge", pair):
                    continue
                seen.add(pair)
                probability = _probability("merge", float(cosines[place, other]))
                gain = probability * min(len(rows[c]) for c in pair)
                yield Question(kind="merge", clusters=pair, probability=probability, gain=gain)
                break

    def _known(self, state: State, rows: dict[int, Rows], novel: list[int]) -> Iterable[Question]:
        """Each cluster and the nearest known class; the criterion is how far they are apart for their spread."""
        labelled = np.flatnonzero(~self._run.new)
        known = {c: labelled[self._run.labels[labelled] == c] for c in range(self._run.n_known)}
        known = {c: members for c, members in known.items() if len(members)}
        if not known:
            return
        names = list(known)
        means = np.stack([self._keep(("known mean", c), lambda c=c: self._direction(known[c])) for c in names])  # type: ignore[misc]
        for cluster in novel:
            cosines = means @ self._mean(state, cluster, rows[cluster])
            for place in np.argsort(-cosines, kind="stable").tolist():
                if not state.is_denied("known", (cluster, names[place])):
                    break
            else:
                continue
            other = names[place]

            def apart(cluster: int = cluster, other: int = other) -> float:
                return separation(self._features(rows[cluster]), self._features(known[other]))

            criterion = self._keep(("known", cluster, other, state.changed_at(cluster)), apart)
            probability = _probability("known", criterion)
            gain = probability * len(rows[cluster])
            yield Question(kind="known", clusters=(cluster, other), probability=probability, gain=gain)

    def _splits(self, state: State, rows: dict[int, Rows], novel: list[int]) -> Iterable[Question]:
        """Each cluster in two parts; the criterion is the cosine of the mean directions of the parts."""
        for cluster in novel:
            if state.is_denied("split", (cluster,)):
                continue

            def divided(cluster: int = cluster) -> tuple[float, tuple[tuple[int, ...], ...]] | None:
                return self._divided(rows[cluster])

            found = self._keep(("split", cluster, state.changed_at(cluster)), divided)
            if found is None:
                continue
            criterion, parts = found
            probability = _probability("split", criterion)
            gain = probability * min(map(len, parts))
            yield Question(kind="split", clusters=(cluster,), probability=probability, gain=gain, parts=parts)

    def _divided(self, rows: Rows) -> tuple[float, tuple[tuple[int, ...], ...]] | None:
        x = unit_rows(np.asarray(self._run.features[rows], dtype=np.float32))
        upper = halves(x)
        if upper.all() or not upper.any():
            return None
        if upper.sum() * 2 < len(upper):
            upper = ~upper  # the larger part keeps the name
        cosine = float(mean_direction(x[upper]) @ mean_direction(x[~upper]))
        return cosine, tuple(tuple(rows[part].tolist()) for part in (upper, ~upper))

    def _mean(self, state: State, cluster: int, rows: Rows) -> Matrix:
        mean: Matrix = self._keep(("mean", cluster, state.changed_at(cluster)), lambda: self._direction(rows))
        return mean

    def _direction(self, rows: Rows) -> Matrix:
        return mean_direction(self._features(rows))

    def _features(self, rows: Rows) -> Matrix:
        rows = rows[spread_rows(len(rows), SAMPLE)]
        return unit_rows(np.asarray(self._run.features[rows], dtype=np.float32))

    def _keep(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def _doubtful(
    state: State, rows: dict[int, Rows], novel: list[int], confidence: NDArray[np.float32]
) -> Iterable[Question]:
    """The least confident items of each cluster that no person has placed."""
    for cluster in novel:
        free = rows[cluster][state.run.new[rows[cluster]] & ~state.by_hand[rows[cluster]]]
        worst = free[np.argsort(confidence[free], kind="stable")][:DOUBTFUL]
        if not len(worst):
            continue
        wrong = float((1 - confidence[worst]).mean())
        gain, parts = REJECTION * wrong * len(worst), (tuple(worst.tolist()),)
        yield Question(kind="doubtful", clusters=(cluster,), probability=wrong, gain=gain, parts=parts)


def _probability(kind: str, criterion: float) -> float:
    slope, offset = SLOPES[kind]
    return float(1 / (1 + np.exp(-(slope * criterion + offset))))


def separation(a: Matrix, b: Matrix) -> float:
    """The distance of two groups' means in standard deviations of the groups along the line between the means."""
    axis = a.mean(axis=0) - b.mean(axis=0)
    axis /= max(float(np.linalg.norm(axis)), 1e-12)
    left, right = a @ axis, b @ axis
    return float((left.mean() - right.mean()) / np.sqrt((left.var() + right.var()) / 2 + 1e-12))


def _main_direction(x: Matrix, rounds: int = 12) -> Matrix:
    """(d,): about the first principal direction of centered rows, by power iteration from the longest row."""
    direction: Matrix = x[int(np.square(x).sum(axis=1).argmax())]
    for _ in range(rounds):
        direction = ((x @ direction) @ x).astype(np.float32)
        direction = (direction / max(float(np.linalg.norm(direction)), 1e-12)).astype(np.float32)
    return direction


def halves(x: Matrix, rounds: int = 8) -> NDArray[np.bool_]:
    """(n,): two parts by k-means, which starts from the median along the first principal direction."""
    centered = x - x.mean(axis=0)
    along = centered @ _main_direction(centered[spread_rows(len(x), SAMPLE)])
    upper: NDArray[np.bool_] = along > np.median(along)
    for _ in range(rounds):
        if upper.all() or not upper.any():
            break
        centers = x[upper].mean(axis=0), x[~upper].mean(axis=0)
        nearer = np.square(x - centers[0]).sum(axis=1) < np.square(x - centers[1]).sum(axis=1)
        if np.array_equal(nearer, upper):
            break
        upper = nearer
    return upper
