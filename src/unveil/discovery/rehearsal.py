"""How far can the clusters be trusted? Nobody can compute their accuracy without labels; known classes can be hidden.

A rehearsal hides some known classes, discovers them again as if they were novel, and scores that. From rehearsals come
the way that is taken (which of k-means and training does better on data like these), the accuracy to expect, and what a
confidence is worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.isotonic import IsotonicRegression

from unveil import rng
from unveil.discovery.clusters import kmeans
from unveil.discovery.count import estimate_classes
from unveil.discovery.fitting import KMEANS, Problem, Way, start_clusters, train
from unveil.metrics import clustering_accuracy, in_matched_class
from unveil.numerics import Labels, Matrix

ROWS = 6000
"""Items of a rehearsal."""
COUNTED = 800
"""Items among which the classes of a rehearsal are counted."""
DRAWS = 20
"""Rehearsals of k-means alone, which costs little."""
LEAST_CLASSES, LEAST_ROWS = 4, 40
"""With fewer known classes, or labelled items, there is nothing to rehearse with."""
LEAST_SPREAD = 0.03
"""A forecast of accuracy is never surer than this."""
WIDTH = 1.64
"""Standard deviations to each side that hold nine of ten cases."""
MARGIN = 0.02
"""Another way than the usual one is taken where it does better by more than this in rehearsal: less is noise."""


@dataclass(frozen=True)
class Rehearsal:
    """Some known classes hidden and found again: the accuracy of each way, and how sure each item was."""

    hidden: int
    accuracy: dict[str, float]
    confidence: dict[str, NDArray[np.float32]]
    right: dict[str, NDArray[np.bool_]]
    counted: int
    """How many classes were estimated, of `hidden`."""


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What rehearsals say."""

    way: str
    """The way that did best."""
    accuracy: float | None
    """Expected accuracy on the novel classes; None where there was nothing to rehearse with."""
    spread: float | None
    """Its standard deviation."""
    count_error: float | None
    """Mean error of the number of classes, as a share of it."""
    rehearsals: tuple[dict[str, Any], ...]
    knots: tuple[tuple[float, float], ...]
    """Calibration: (confidence as given, share that was right), rising."""

    @property
    def low(self) -> float | None:
        """Where the accuracy should be above, in nine of ten cases together with `high`."""
        return None if self.accuracy is None or self.spread is None else max(0.0, self.accuracy - WIDTH * self.spread)

    @property
    def high(self) -> float | None:
        """And below."""
        return None if self.accuracy is None or self.spread is None else min(1.0, self.accuracy + WIDTH * self.spread)

    def revised(self, confidence: NDArray[np.float32]) -> "Trust":
        """With the calibrated confidence of the novel items themselves, whose mean is a second forecast."""
        if self.accuracy is None or self.spread is None or not self.knots:
            return self
        second = float(confidence.mean())
        apart = abs(second - self.accuracy) / 2
        return replace(self, accuracy=(self.accuracy + second) / 2, spread=float(np.hypot(self.spread, apart)))

    def calibrated(self, confidence: NDArray[np.float32]) -> NDArray[np.float32]:
        """The chance that each item is in the right cluster."""
        if not self.knots:
            return confidence
        given, share = zip(*self.knots, strict=True)
        found: NDArray[np.float32] = np.interp(confidence, given, share).astype(np.float32)
        return found

    def sentence(self) -> str:
        """In words."""
        if self.accuracy is None:
            return (
                "nobody can say: nothing was rehearsed (a rehearsal takes "
                f"{LEAST_CLASSES} known classes and {LEAST_ROWS} labelled items)"
            )
        assert self.low is not None
        assert self.high is not None
        tries = len(self.rehearsals)
        return (
            f"about {100 * self.accuracy:.0f} % of the items should be in the right cluster "
            f"({100 * self.low:.0f} to {100 * self.high:.0f} %), judging by known classes that were hidden and found "
            f"again {tries} time{'s' if tries != 1 else ''}"
        )

    def to_json(self) -> dict[str, Any]:
        """For a JSON file."""
        return {**self.__dict__, "rehearsals": list(self.rehearsals), "knots": [list(knot) for knot in self.knots]}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "Trust":
        """What `to_json` made."""
        knots = tuple((float(a), float(b)) for a, b in stored["knots"])
        return Trust(**{**stored, "rehearsals": tuple(stored["rehearsals"]), "knots": knots})


def rehearse(
    problem: Problem,
    ways: Sequence[Way],
    *,
    tries: int,
    seed: int,
    steps: int,
    folder: Path,
    console: Console,
    device: str,
) -> Trust:
    """Hide known classes `tries` times and find them again by each way."""
    x, y = problem.x[problem.labelled], problem.labels[problem.labelled]
    classes = np.unique(y)
    if tries < 1 or len(classes) < LEAST_CLASSES or len(y) < LEAST_ROWS:
        return untried(ways, problem.inside)
    done = []
    for number in range(tries):
        draw = rng.numpy(seed, "rehearsal", number)
        hidden = hide(x, y, problem, draw)
        options = {"seed": seed + number, "steps": steps, "console": console, "device": device}
        done.append(_once(*hidden, ways, folder / f"rehearsal-{number}", options))
    means = {way.name: float(np.mean([one.accuracy[way.name] for one in done])) for way in ways}
    usual = untried(ways).way
    best = max(means, key=lambda name: means[name] - (0 if name == usual else MARGIN))
    clean = x if x.ndim == 2 else x[:, 0]
    foretold = _plain(done, best) if problem.inside else _expected(clean, y, problem.n_novel, done, best, seed)
    errors = [abs(one.counted - one.hidden) / one.hidden for one in done]
    return Trust(
        way=best,
        accuracy=foretold[0],
        spread=foretold[1],
        count_error=float(np.mean(errors)),
        rehearsals=tuple(
            {"hidden": one.hidden, "counted": one.counted, **{name: round(a, 4) for name, a in one.accuracy.items()}}
            for one in done
        ),
        knots=_calibration(done, best),
    )


def untried(ways: Sequence[Way], inside: bool = False) -> Trust:
    """Nothing was rehearsed: the method that was asked for, or, where known classes are inside, what it starts from.

    There the start tells known items from others by their neighbours, and training may undo that.
    """
    return Trust(
        way=ways[0 if inside else min(1, len(ways) - 1)].name,
        accuracy=None,
        spread=None,
        count_error=None,
        rehearsals=(),
        knots=(),
    )


def hide(x: Matrix, y: Labels, problem: Problem, draw: np.random.Generator) -> tuple[Problem, Labels]:
    """A problem of known classes alone, some of which play the novel ones, and the truth of its unlabelled rows.

    As large a share is hidden as novel classes have of all. Where unlabelled rows may be of known classes, every second
    row of the others loses its label.
    """
    classes = np.unique(y)
    known, novel = len(classes), problem.n_novel
    count = int(np.clip(-(-known * novel // (known + novel)), 2, known - 2))
    hidden = draw.permutation(classes)[:count]
    rows = np.sort(draw.permutation(len(y))[:ROWS])
    part, truth = x[rows], y[rows]
    absent = np.isin(truth, hidden)
    left = np.unique(truth[~absent])
    labels = np.where(absent, -1, np.searchsorted(left, truth))
    if problem.inside:
        first = np.zeros(len(labels), dtype=bool)
        first[[np.flatnonzero(truth == label)[0] for label in left]] = True  # no class loses all its labels
        labels = np.where((draw.random(len(labels)) < 0.5) & ~first, -1, labels)
    found = max(1, len(np.unique(truth[absent])))
    # classes are numbered as clusters are: those that are left, then the hidden ones
    place = {int(label): index for index, label in enumerate([*left, *np.unique(truth[absent])])}
    told = np.array([place[int(label)] for label in truth[labels == -1]])
    return Problem(x=part, labels=labels, n_novel=found, inside=problem.inside), told


def _once(problem: Problem, truth: Labels, ways: Sequence[Way], folder: Path, options: dict[str, Any]) -> Rehearsal:
    clean, rows, held = problem.clean, problem.unlabelled, problem.labelled
    start = start_clusters(problem, options["seed"])
    counted = estimate_classes(
        clean[held],
        problem.labels[held],
        clean[rows],
        seed=options["seed"],
        rows=COUNTED,
        inside=problem.inside,
    ).number
    accuracy, sure, right = {}, {}, {}
    for place, way in enumerate(ways):
        clusters, confidence = start.labels, start.confidence(clean[rows])
        if way.method is not None:
            got = train(problem, way, start, folder=folder / str(place), stages=folder / "stages", **options)
            clusters, confidence = got.clusters, got.confidence
        accuracy[way.name] = clustering_accuracy(truth, clusters)
        sure[way.name], right[way.name] = confidence, in_matched_class(truth, clusters)
    return Rehearsal(problem.n_novel, accuracy, sure, right, counted)


def _expected(
    x: Matrix, y: Labels, n_novel: int, done: Sequence[Rehearsal], way: str, seed: int
) -> tuple[float, float]:
    """Accuracy for as many novel classes as there are: more classes are harder than the few that can be hidden.

    k-means needs no known classes beside the hidden ones, so it can be rehearsed with (almost) as many as there are
    novel ones, often; the trained way makes so many times the errors of k-means as it did in its own rehearsals.
    """
    classes = np.unique(y)
    at = min(n_novel, len(classes))
    tries = DRAWS // 2 if at < len(classes) else 3
    scores = [_subset(x, y, classes, at, number, seed, ROWS) for number in range(tries)]
    few = max(2, round(0.6 * at))
    around = [_subset(x, y, classes, few, DRAWS + number, seed, ROWS // 3) for number in range(DRAWS)]
    errors_k = np.mean([1 - one.accuracy[KMEANS.name] for one in done])
    errors_w = np.mean([1 - one.accuracy[way] for one in done])
    ratio = float((errors_w + 0.01) / (errors_k + 0.01))
    errors = ratio * (1 - np.array(scores))
    if n_novel > at > 1:  # even more classes: errors grow about as their logarithm
        errors = errors * np.log(n_novel) / np.log(at)
    expected = float(np.clip(1 - errors.mean(), 1 / max(1, n_novel), 1))
    return expected, max(LEAST_SPREAD, float(np.std(around)), float(np.std([one.accuracy[way] for one in done])) / 2)


def _plain(done: Sequence[Rehearsal], way: str) -> tuple[float, float]:
    """Accuracy as it was in rehearsal."""
    scores = [one.accuracy[way] for one in done]
    return float(np.mean(scores)), max(LEAST_SPREAD, float(np.std(scores)))


def _subset(x: Matrix, y: Labels, classes: Labels, count: int, number: int, seed: int, most: int) -> float:
    draw = rng.numpy(seed, "k-means rehearsal", number)
    chosen = draw.permutation(classes)[:count]
    rows = draw.permutation(np.flatnonzero(np.isin(y, chosen)))[:most]
    return clustering_accuracy(y[rows], kmeans(x[rows], count, seed).labels)


def _calibration(done: Sequence[Rehearsal], way: str) -> tuple[tuple[float, float], ...]:
    """Confidence against the share that was right, as a rising curve through at most 20 points."""
    given = np.concatenate([one.confidence[way] for one in done])
    right = np.concatenate([one.right[way] for one in done]).astype(float)
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(given, right)
    at = np.unique(np.quantile(given, np.linspace(0, 1, 20)))
    return tuple((float(a), float(b)) for a, b in zip(at, fitted.predict(at), strict=True))
