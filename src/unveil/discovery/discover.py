"""From vectors and some labels to clusters: scale, count, rehearse, choose a way, train, label every row."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil.data.scaling import Reduction
from unveil.discovery.clusters import Clusters, Labels, Matrix, squared_distances, sums_by
from unveil.discovery.count import Estimate, check_count, estimate_classes, unbalanced
from unveil.discovery.fitting import KMEANS, Problem, Trained, Way, recipe_of, start_clusters, train, ways
from unveil.discovery.predictor import PIECE, Learned
from unveil.discovery.preparation import choose_reduction, looks_known, training_rows
from unveil.discovery.rehearsal import Trust, rehearse, untried
from unveil.methods.catalog import method_class

REHEARSAL_STEPS = 150


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user may choose."""

    n_novel: int | None = None
    method: str = "ncl-hng"
    known_in_unlabelled: bool = False
    rehearsals: int = 3
    steps: int = 1000
    seed: int = 0
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was found. Labels count the known classes, then the clusters."""

    learned: Learned
    labels: Labels
    kmeans: Labels
    confidence: NDArray[np.float32]
    typicality: NDArray[np.float32]
    estimate: Estimate | None
    trust: Trust
    choice: str
    warnings: tuple[str, ...]

    @property
    def kmeans_clusters(self) -> int:
        return int(self.kmeans.max(initial=-1)) + 1 - self.learned.n_known


def discover(
    vectors: NDArray[np.floating], labels: Labels, options: Options, *, folder: Path, console: Console
) -> Result:
    """Find the novel classes among the rows with label -1."""
    seed, known = options.seed, int(labels.max(initial=-1)) + 1
    if options.n_novel is not None and (labels == -1).any():
        check_count(options.n_novel, int((labels == -1).sum()))
    rows = training_rows(labels, seed)
    sample, y = vectors[rows], labels[rows]
    reduction, scaled = choose_reduction(sample if sample.ndim == 2 else sample[:, 0], y, seed)
    console.print(scaled, soft_wrap=True)
    problem = Problem(x=reduction(sample), labels=y, n_novel=0)
    del sample
    x = problem.clean
    if len(problem.unlabelled) == 0:
        return _known_only(vectors, labels, problem, reduction, options, folder, console)

    estimate = None
    if options.n_novel is None:
        estimate = estimate_classes(
            x[problem.labelled],
            y[problem.labelled],
            x[problem.unlabelled],
            seed=seed,
            inside=options.known_in_unlabelled,
        )
        console.print(estimate.sentence(), soft_wrap=True)
    count = estimate.number if estimate is not None else options.n_novel
    assert count is not None
    problem = replace(problem, n_novel=count, inside=options.known_in_unlabelled and known > 0)
    start = start_clusters(problem, seed)
    notes = [] if problem.inside else looks_known(problem, seed)

    candidates = tuple(fitted_to(way, start, problem) for way in ways(options.method)) if known else (KMEANS,)
    trust = untried(candidates, problem.inside)
    if known and options.rehearsals:
        trust = rehearse(
            problem,
            candidates,
            tries=options.rehearsals,
            seed=seed,
            steps=min(options.steps, REHEARSAL_STEPS),
            folder=folder,
            console=console,
            device=options.device,
        )
    way = next(way for way in candidates if way.name == trust.way)
    choice = explain(way, candidates, trust, known)
    console.print(choice, soft_wrap=True)
    trained = None
    if known:
        trained = train(
            problem,
            way,
            start,
            seed=seed,
            steps=options.steps,
            folder=folder,
            console=console,
            device=options.device,
        )
        notes += trained.warnings
    learned = _learned(problem, reduction, way, start, trained, known)
    learned = learned.with_gate(vectors, rows, y >= 0, seed).with_reference(vectors, rows, seed)
    return _labelled_rows(
        vectors,
        labels,
        learned,
        start,
        trust,
        estimate=estimate,
        choice=choice,
        notes=tuple(notes),
        means=_means(learned, problem, trained, start),
    )


def fitted_to(way: Way, start: Clusters, problem: Problem) -> Way:
    """The way with fewer neighbours where clusters are unbalanced: k1 = |M| / C / 2 takes them to be of equal size."""
    sizes = np.unique(start.labels, return_counts=True)[1]  # a known class may not be there at all
    if way.method is None or not unbalanced(sizes.tolist()):
        return way
    share = max(0.1, float(sizes.min() * len(sizes) / sizes.sum()))
    changes = method_class(way.method).for_unbalanced(recipe_of(way).method, share)
    fewer = {f"method.{key}": value for key, value in changes.items()}
    words = f"{way.words} (fewer neighbours, as clusters are unbalanced)"
    return replace(way, overrides=tuple((dict(way.overrides) | fewer).items()), words=words)


def explain(way: Way, candidates: tuple[Way, ...], trust: Trust, known: int) -> str:
    """Which way was taken and why, in words."""
    if known == 0:
        return "k-means on the vectors: without known classes there is nothing to learn from"
    if len(candidates) == 1:
        return f"{way.words}, as asked"
    if not trust.rehearsals:
        return f"{way.words}: not rehearsed"
    tries = len(trust.rehearsals)
    means = {one.name: np.mean([r[one.name] for r in trust.rehearsals]) for one in candidates}
    others = ", ".join(f"{one.words} {100 * means[one.name]:.1f} %" for one in candidates if one is not way)
    return (
        f"{way.words}: in {tries} rehearsal{'s' if tries != 1 else ''} on hidden known classes it found "
        f"{100 * means[way.name]:.1f} % ({others})"
    )


def _learned(
    problem: Problem, reduction: Reduction, way: Way, start: Clusters | None, trained: Trained | None, known: int
) -> Learned:
    centers = start.centers if start is not None and (way.method is None or trained is None) else None
    dims = problem.x.shape[-1]
    return Learned(
        reduction=reduction,
        mean=trained.mean if trained else np.zeros(dims, dtype=np.float32),
        scale=trained.scale if trained else 1.0,
        n_known=known,
        n_novel=problem.n_novel,
        model=trained.model if trained else None,
        centers=centers,
        softness=max(1e-12, 2 * start.inertia / max(1, dims)) if start is not None else 1.0,
        inside=problem.inside,
    )


def _means(learned: Learned, problem: Problem, trained: Trained | None, start: Clusters | None) -> Matrix:
    """Mean direction of each class and cluster, of the rows that were trained on."""
    z = np.concatenate([_unit(learned.tail(part)) for part in _split(problem.clean)])
    labels = problem.labels.copy()
    if start is not None:
        first = 0 if problem.inside else learned.n_known
        labels[problem.unlabelled] = first + (trained.clusters if trained else start.labels)
    return _unit(sums_by(z, labels, learned.n_known + learned.n_novel).astype(np.float32))


def _known_only(
    vectors: NDArray[np.floating],
    labels: Labels,
    problem: Problem,
    reduction: Reduction,
    options: Options,
    folder: Path,
    console: Console,
) -> Result:
    """Nothing is unlabelled: the known classes can be learned, and there is nothing to discover."""
    start = Clusters(np.zeros((0, problem.x.shape[-1]), dtype=np.float32), np.zeros(0, dtype=np.int64), 0.0)
    trained = train(
        problem,
        KMEANS,
        start,
        seed=options.seed,
        steps=options.steps,
        folder=folder,
        console=console,
        device=options.device,
    )
    learned = _learned(problem, reduction, KMEANS, None, trained, problem.n_known)
    learned = learned.with_reference(vectors, np.arange(len(labels)), options.seed)
    return _labelled_rows(
        vectors,
        labels,
        learned,
        None,
        untried((KMEANS,)),
        estimate=None,
        choice="no row is unlabelled: there is nothing to discover",
        notes=("no row is unlabelled (y == -1): there is nothing to discover",),
        means=_means(learned, problem, trained, None),
    )


def _labelled_rows(
    vectors: NDArray[np.floating],
    labels: Labels,
    learned: Learned,
    start: Clusters | None,
    trust: Trust,
    *,
    estimate: Estimate | None,
    choice: str,
    notes: tuple[str, ...],
    means: Matrix,
) -> Result:
    """Go through all rows once: label, confidence, typicality."""
    known = learned.n_known
    found, plain = labels.copy(), labels.copy()
    sure, typical = np.ones(len(labels), dtype=np.float32), np.zeros(len(labels), dtype=np.float32)
    for at, part in zip(range(0, len(labels), PIECE), learned.pieces(vectors), strict=True):
        here = slice(at, at + PIECE)
        hidden = labels[here] == -1
        if start is not None and hidden.any():
            rows = part[hidden]
            first = 0 if learned.inside else known
            plain[here][hidden] = first + squared_distances(rows, start.centers).argmin(axis=1)
            scores, confidence = learned.novel(rows)
            found[here][hidden] = first + scores.argmax(axis=1)
            sure[here][hidden] = trust.calibrated(confidence)
        z = _unit(learned.tail(part))
        typical[here] = (z * means[found[here]]).sum(axis=1)
    return Result(
        learned=learned,
        labels=found,
        kmeans=plain,
        confidence=sure,
        typicality=typical,
        estimate=estimate,
        trust=trust.revised(sure[labels == -1]),
        choice=choice,
        warnings=notes,
    )


def _unit(x: Matrix) -> Matrix:
    unit: Matrix = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return unit


def _split(x: Matrix) -> Iterator[Matrix]:
    return (x[start : start + PIECE] for start in range(0, len(x), PIECE))
