"""Simulated reviewers answer the questions of the review page, on data whose truth is known.

    python -m benchmarks.reviewers --out results/reviewers [--tasks digits,letter]
    python -m benchmarks.reviewers --criteria results/reviewers

A reviewer knows the true class of every item and answers the questions of the page: the most useful first, or class by
class in the order of the page. The accuracy after some answers is compared, and on three tasks the accuracy of a fit
that goes on from these answers, as `unveil discover --continue` does. There are too few or too many clusters at first.
The curves of `unveil.review.questions` were fitted on the first tasks; the others had no part in that. One record for
each task. `--criteria` shows how well each criterion tells yes from no, by the area under the ROC curve.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.own_tasks import TASKS, draw, with_known_classes
from unveil import NovelClassDiscovery, files, recipe
from unveil.discovery.result import environment
from unveil.metrics import contingency
from unveil.numerics import match_clusters, mean_direction, unit_rows
from unveil.own.constraints import decided, steered_labels
from unveil.review.corrections import State
from unveil.review.decisions import folded_labels
from unveil.review.edited_scores import EditedScores
from unveil.review.log import Entry
from unveil.review.questions import GAIN, YES, Question, Questions, separation
from unveil.runs.reader import Run, load

FITTED_ON = ("digits", "letter", "cifar10", "fashion-mnist", "omniglot-greek")
HELD_OUT = ("digits-reversed", "mnist", "fashion-mnist-reversed", "omniglot-latin", "letter-10")
CONTINUED = ("digits", "letter", "omniglot-greek", "cifar10")
"""Tasks on which a fit goes on from the answers."""
ANSWERS = (0, 5, 10, 20, 40)
COUNTS = (0.7, 1.4)
"""The number of clusters as a share of the right one: reviewers are needed where it is wrong."""
ROWS = 1000
"""Most labeled and most unlabeled rows of a task."""
KINDS = ("known", "merge", "split", "doubtful")
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Reviewer:
    """Somebody who knows the true class of every item; known classes have their own numbers."""

    truth: Labels

    def main_class(self, rows: Labels) -> int:
        """The class that most of these items are of."""
        return int(np.bincount(self.truth[rows]).argmax())

    def says_yes(self, question: Question, state: State) -> bool:
        """The answer to a question about whole classes."""
        if question.kind == "split":
            return self.main_class(np.array(question.parts[0])) != self.main_class(np.array(question.parts[1]))
        first = self.main_class(np.flatnonzero(state.labels == question.clusters[0]))
        if question.kind == "known":
            return first == question.clusters[1]
        return first == self.main_class(np.flatnonzero(state.labels == question.clusters[1]))

    def sorted_out(self, rows: Labels, clusters: list[int], state: State) -> list[tuple[str, dict[str, Any]]]:
        """Doubtful items stay in their class, go to the other one, or belong to neither and are rejected."""
        here, there = (self.class_of(cluster, state) for cluster in clusters)
        stay, go = self.truth[rows] == here, (self.truth[rows] == there) & (here != there)
        parts = [("move", stay, clusters[0]), ("move", go, clusters[1]), ("reject", ~stay & ~go, None)]
        return [
            (kind, {"rows": rows[part].tolist(), **({} if to is None else {"to": to})})
            for kind, part, to in parts
            if part.any()
        ]

    def class_of(self, cluster: int, state: State) -> int:
        """What a class is to this person: a known class, or what most items of a cluster are."""
        known = state.meanings[cluster].known if state.is_novel(cluster) else cluster
        return self.main_class(np.flatnonzero(state.labels == cluster)) if known is None else known

    def answer(self, question: Question, state: State) -> list[tuple[str, dict[str, Any]]]:
        """The entries of the log that the answer makes."""
        clusters = list(question.clusters)
        if question.kind == "doubtful":
            return self.sorted_out(np.array(question.parts[0]), clusters, state)
        if not self.says_yes(question, state):
            return [("no", {"question": question.kind, "clusters": clusters})]
        if question.kind == "known":
            return [("known", {"cluster": clusters[0], "class": clusters[1]})]
        if question.kind == "merge":
            return [("merge", {"clusters": clusters})]
        return [("split", {"cluster": clusters[0], "parts": [list(part) for part in question.parts]})]


def most_useful(questions: list[Question], state: State, asked: set[Any]) -> Question | None:
    """The first question of the list."""
    return questions[0] if questions else None


def class_by_class(questions: list[Question], state: State, asked: set[Any]) -> Question | None:
    """The questions about one class after the other, in the order of the gallery, each once."""
    confidence = {c: float(state.run.confidence[state.labels == c].mean()) for c in state.meanings if state.is_novel(c)}
    for cluster in sorted(confidence, key=lambda c: -confidence[c]):
        for kind in KINDS:
            for question in questions:
                about = question.clusters if kind == "merge" else question.clusters[:1]
                if question.kind == kind and cluster in about and (kind, cluster) not in asked:
                    asked.add((kind, cluster))
                    return question
    return None


ORDERS: dict[str, Callable[[list[Question], State, set[Any]], Question | None]] = {
    "most useful first": most_useful,
    "class by class": class_by_class,
}


def accuracy(state: State, labels: Labels, truth: Labels) -> float:
    """Share of the new items with the right known class, or in the novel class matched to theirs; rejected: wrong."""
    run = state.run
    known = run.new & (truth < run.n_known)
    right = int((labels[known] == truth[known]).sum())
    novel = run.new & (truth >= run.n_known) & (labels >= run.n_known)
    if novel.any():
        counts = contingency(truth[novel], labels[novel])
        class_of = match_clusters(counts)
        right += int(sum(counts[cluster, label] for cluster, label in enumerate(class_of) if label >= 0))
    return right / max(1, int(run.new.sum()))


def reviewed(
    run: Run, truth: Labels, order: str, after: Callable[[State], float] | None = None
) -> list[dict[str, float]]:
    """The accuracy after some numbers of answers, and that of what is made of the state `after` them."""
    state, scores, reviewer = State(run), EditedScores(run), Reviewer(truth)
    questions, asked = Questions(run, scores), set[Any]()
    found, later = dict[str, float](), dict[str, float]()
    for number in range(max(ANSWERS) + 1):
        if number in ANSWERS:
            found[str(number)] = accuracy(state, folded_labels(state), truth)
            if after is not None and number:
                later[str(number)] = after(state)
        if (question := ORDERS[order](questions.about(state), state, asked)) is None:
            break
        for kind, data in reviewer.answer(question, state):
            state.apply(Entry(number=state.length + 1, time="", kind=kind, data=data))
    for curve in (found, later) if later else (found,):
        last = curve[max(curve, key=int)]
        curve.update({str(n): last for n in ANSWERS if str(n) not in curve and n})  # nothing was left to ask
    return [found, later]


def continued(state: State, x: NDArray[np.float32], seed: int) -> Labels:
    """The labels of a fit that goes on from a review, as `unveil discover --continue` does."""
    run, labels = state.run, steered_labels(state)
    about = decided(state)
    given = ~run.new | np.array([not state.is_novel(label) or label in about for label in labels.tolist()])
    if given.all():
        return labels
    left = len(np.unique(labels[~given]))
    model = NovelClassDiscovery(n_novel=left, known_in_unlabeled=True, rehearsals=0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, np.where(given, labels, -1))
    names = {str(label): label for label in np.unique(labels[given]).tolist()}
    fresh = sorted(set(map(str, model.labels_)) - set(names))
    names |= {name: int(labels.max()) + 1 + number for number, name in enumerate(fresh)}
    return np.array([names[str(label)] for label in model.labels_.tolist()])


def criteria(run: Run, truth: Labels) -> Iterator[tuple[str, bool, dict[str, float]]]:
    """Kind, the right answer, and the values of several criteria, of every question at the start."""
    state, scores, reviewer = State(run), EditedScores(run), Reviewer(truth)
    x = unit_rows(np.asarray(run.features))
    labeled, questions = ~run.new, Questions(run, scores)
    for question in questions.about(state):
        if question.kind == "doubtful":
            continue
        if question.kind == "split":
            a, b = (x[list(part)] for part in question.parts)
        else:
            other = question.clusters[1]
            a = x[state.labels == question.clusters[0]]
            b = x[(state.labels == other) & labeled] if question.kind == "known" else x[state.labels == other]
        own = x[state.labels == question.clusters[0]]
        cosine = float(mean_direction(a) @ mean_direction(b))
        values = {
            "cosine of means": cosine,
            "cosine, less that of known classes": cosine - questions.usual_cosine(),
            "separation": separation(a, b),
            "spread": 1 - float((own @ mean_direction(own)).mean()),
        }
        yield question.kind, reviewer.says_yes(question, state), values


def runs(name: str, seed: int, folder: Path) -> Iterator[tuple[float, Run, Labels, NDArray[np.float32]]]:
    """Runs of a task with too few and too many clusters; half of the known items are without their label."""
    drawn = with_known_classes(draw(TASKS[name], ROWS), seed)
    known = np.unique(drawn.y[drawn.y >= 0])
    place = {label: number for number, label in enumerate(known.tolist())}
    truth = np.array([place.get(label, label + len(known)) for label in drawn.truth.tolist()])
    for share in COUNTS:
        n_novel = max(2, round(share * len(np.setdiff1d(drawn.truth, known))))
        model = NovelClassDiscovery(n_novel=n_novel, known_in_unlabeled=True, rehearsals=0, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(drawn.x, drawn.y)
        model.save(folder / f"{name}-{seed}-{share}")
        yield share, load(folder / f"{name}-{seed}-{share}"), truth, drawn.x


def measure(name: str, seeds: int) -> dict[str, Any]:
    """One task: the accuracy after some answers, and the criteria of all questions at the start."""
    rows, questions = list[dict[str, Any]](), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            for share, run, truth, x in runs(name, seed, Path(folder)):
                for kind, yes, values in criteria(run, truth):
                    rounded = {key: round(value, 3) for key, value in values.items()}
                    questions.append({"kind": kind, "yes": bool(yes), **rounded})

                def later(state: State, truth: Labels = truth, x: Any = x, seed: int = seed) -> float:
                    return accuracy(state, continued(state, x, seed), truth)

                useful, refitted = reviewed(run, truth, "most useful first", later if name in CONTINUED else None)
                ordered, _ = reviewed(run, truth, "class by class")
                curves = {"most useful first": useful, "class by class": ordered, "continued": refitted}
                rows.append({"seed": seed, "clusters": share, "items": int(run.new.sum()), **curves})
                print(name, seed, share, curves, flush=True)
    return {"rows": rows, "questions": questions}


def compared(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """For each kind of question: the area under the ROC curve of each criterion, and the curve fitted to each."""
    found: dict[str, Any] = {}
    for kind in YES:
        some = [question for question in questions if question["kind"] == kind]
        answers = np.array([question["yes"] for question in some])
        if len(set(answers.tolist())) < 2:
            continue
        found[kind] = {"questions": len(answers), "yes": float(answers.mean())}
        for name in (key for key in some[0] if key not in ("kind", "yes")):
            x = np.array([question[name] for question in some])
            area = float(roc_auc_score(answers, x))
            fitted = LogisticRegression(C=1e4).fit(x[:, None], answers)
            slope, offset = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
            found[kind][name] = {"area": max(area, 1 - area), "slope": slope, "offset": offset}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join((*FITTED_ON, *HELD_OUT)))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--criteria", type=Path)
    asked = parser.parse_args()
    if asked.criteria is not None:
        records = [json.loads(path.read_text()) for path in sorted(asked.criteria.glob("*.json"))]
        print(json.dumps(compared([one for record in records for one in record["questions"]]), indent=1))
        return
    for name in asked.tasks.split(","):
        begun = time.monotonic()
        record = {
            "benchmark": "reviewers",
            "task": name,
            "group": "fitted on" if name in FITTED_ON else "held out",
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "most rows": [ROWS, ROWS],
            "environment": environment(recipe.load("vectors")),
            "curves": {"yes": YES, "gain": GAIN},
            **measure(name, asked.seeds),
        }
        if asked.out is not None:
            files.write_json(asked.out / f"{name}.json", {**record, "seconds": round(time.monotonic() - begun)})


if __name__ == "__main__":
    main()
