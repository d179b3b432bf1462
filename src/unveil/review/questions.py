"""The questions of a review, the most useful one first: merge these, is this a known class, split, here or there?

What a question is worth is the number of items that the answer is expected to put right: the probability of yes times
the items that yes would change. Probabilities come from one criterion for each kind, chosen and fitted with simulated
reviewers on data whose truth is known (benchmarks/reviewers.py, results/reviewers). Cosines mean something else in
every space of features; so they are taken relative to the cosine that a known class of the run has with its nearest.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import mean_direction, spread_rows, unit_rows
from unveil.review.corrections import State
from unveil.review.edited_scores import EditedScores
from unveil.runs.reader import Run

Matrix = NDArray[np.float32]
Rows = NDArray[np.int64]
YES = {"merge": (5.6, 0.32), "known": (-3.0, 2.0), "split": (-4.2, 0.0)}
"""From the criterion of a question to the probability of yes: slope and middle of a logistic curve."""
GAIN = {"merge": (0.3, 20.0, 0.09), "known": (0.2, -3.0, 1.7), "split": (0.25, -25.0, 0.0)}
"""From the criterion to the share of the items that yes would change and that it puts right: height, slope, middle."""
MOVED = 0.3  # of doubtful items that are expected to be wrong, the share that the answer puts right
DOUBTFUL = 12  # items in a question about doubtful ones
CANDIDATES = 48  # the least confident items of a class, from which doubtful ones are chosen
DESTINATIONS = 2  # other classes that doubtful items of a class are asked about
SAMPLE = 250  # items of a class that a criterion looks at
FEWEST = 4  # classes with fewer items are not asked about
LEAST_KNOWN, USUAL_COSINE = 3, 0.6
"""With fewer known classes than this, neighboring classes are taken to have this cosine."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something that a person can answer with yes or no."""

    kind: str  # merge, known, split or doubtful
    clusters: tuple[int, ...]
    """The class that it is about, and the one to merge with, the known one, or where doubtful items may belong."""
    probability: float  # of yes; for doubtful items, the share that is expected to belong to the other class
    gain: float  # items that the answer is expected to put right
    parts: tuple[tuple[int, ...], ...] = ()  # rows of the parts of a split, or the doubtful rows as the only part

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
            *self._doubtful(state, rows, [c for c in novel if not state.meanings[c].reviewed], confidence),
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
                criterion = float(cosines[place, other]) - self.usual_cosine()
                yield _question("merge", pair, criterion, min(len(rows[c]) for c in pair))
                break

    def _known(self, state: State, rows: dict[int, Rows], novel: list[int]) -> Iterable[Question]:
        """Each cluster and the nearest known class; the criterion is how far they are apart for their spread."""
        names, means = self._known_means()
        labeled = ~self._run.new
        for cluster in novel if names else []:
            cosines = means @ self._mean(state, cluster, rows[cluster])
            other = names[int(cosines.argmax())]
            if state.is_denied("known", (cluster, other)):
                continue
            key = ("known", cluster, other, state.changed_at(cluster))
            members = np.flatnonzero(labeled & (self._run.labels == other))
            criterion = self._keep(key, partial(self._apart, rows[cluster], members))
            yield _question("known", (cluster, other), criterion, len(rows[cluster]))

    def _apart(self, rows: Rows, others: Rows) -> float:
        return separation(self._features(rows), self._features(others))

    def _splits(self, state: State, rows: dict[int, Rows], novel: list[int]) -> Iterable[Question]:
        """Each cluster in two parts; the criterion is the cosine of the mean directions of the parts."""
        for cluster in novel:
            if state.is_denied("split", (cluster,)):
                continue
            found = self._keep(("split", cluster, state.changed_at(cluster)), partial(self._divided, rows[cluster]))
            if found is None:
                continue
            cosine, parts = found
            yield _question("split", (cluster,), cosine - self.usual_cosine(), min(map(len, parts)), parts)

    def _divided(self, rows: Rows) -> tuple[float, tuple[tuple[int, ...], ...]] | None:
        x = unit_rows(np.asarray(self._run.features[rows], dtype=np.float32))
        upper = halves(x)
        if upper.all() or not upper.any():
            return None
        if upper.sum() * 2 < len(upper):
            upper = ~upper  # the larger part keeps the name
        cosine = float(mean_direction(x[upper]) @ mean_direction(x[~upper]))
        return cosine, tuple(tuple(rows[part].tolist()) for part in (upper, ~upper))

    def _doubtful(
        self, state: State, rows: dict[int, Rows], novel: list[int], confidence: Matrix
    ) -> Iterable[Question]:
        """The least confident items of each cluster that no person has placed, by the other class nearest to them."""
        means = self._scores.means(state)
        places = {c: meaning.known if meaning.known is not None else c for c, meaning in state.meanings.items()}
        others = [c for c in state.meanings if places[c] == c and c in means]
        directions = np.stack([means[c] for c in others]) if others else np.zeros((0, 1), np.float32)
        for cluster in novel:
            free = rows[cluster][self._run.new[rows[cluster]] & ~state.by_hand[rows[cluster]]]
            free = free[np.argsort(confidence[free], kind="stable")][:CANDIDATES]
            if not len(free) or not [c for c in others if c != places[cluster]]:
                continue
            cosines = unit_rows(np.asarray(self._run.features[free], dtype=np.float32)) @ directions.T
            cosines[:, [number for number, c in enumerate(others) if c == places[cluster]]] = -2
            nearest = cosines.argmax(axis=1)
            batches = [free[nearest == number][:DOUBTFUL] for number in np.unique(nearest)]
            wrong = [float((1 - confidence[batch]).sum()) for batch in batches]
            for number in np.argsort(wrong)[::-1][:DESTINATIONS].tolist():
                batch, other = batches[number], others[int(np.unique(nearest)[number])]
                share, about, parts = MOVED * wrong[number], (cluster, other), (tuple(batch.tolist()),)
                yield Question(kind="doubtful", clusters=about, probability=share / len(batch), gain=share, parts=parts)

    def _known_means(self) -> tuple[list[int], Matrix]:
        """Known classes with labeled items, and their mean directions."""
        labeled = np.flatnonzero(~self._run.new)
        known = [(c, labeled[self._run.labels[labeled] == c]) for c in range(self._run.n_known)]
        known = [(c, members) for c, members in known if len(members)]

        if not known:
            return [], np.zeros((0, 1), np.float32)
        means = self._keep(("known means",), lambda: np.stack([self._direction(members) for _, members in known]))
        return [c for c, _ in known], means

    def usual_cosine(self) -> float:
        """The mean cosine of a known class with the known class nearest to it: how similar different classes are."""

        def usual() -> float:
            _, means = self._known_means()
            if len(means) < LEAST_KNOWN:
                return USUAL_COSINE
            cosines = means @ means.T
            np.fill_diagonal(cosines, -2)
            return float(cosines.max(axis=1).mean())

        found: float = self._keep(("usual cosine",), usual)
        return found

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


def _question(
    kind: str, clusters: tuple[int, ...], criterion: float, items: int, parts: tuple[tuple[int, ...], ...] = ()
) -> Question:
    """A question whose yes would change so many items."""
    height, *curve = GAIN[kind]
    gain = items * height * _logistic(criterion, *curve)
    return Question(kind=kind, clusters=clusters, probability=_logistic(criterion, *YES[kind]), gain=gain, parts=parts)


def _logistic(x: float, slope: float, middle: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(slope * (x - middle), -50, 50))))


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
