"""What the order of questions is worth: `python -m benchmarks.reviewers [--tasks letter,digits] [--out FILE]`.

A simulated reviewer, who knows the truth, answers the questions of the review page: the most useful first, or class by
class in the order of the page. The accuracy after 10, 20, 40 and 80 answers is compared. The first part measures how
well a criterion tells yes from no (area under the ROC curve), which is how the criteria of `unveil.runs.questions` and
their curves were chosen. The clusters are those of k-means with too few and too many classes.
"""

import argparse
import tempfile
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
from unveil import NovelClassDiscovery, __version__, files
from unveil.metrics import contingency
from unveil.numerics import match_clusters, mean_direction, unit_rows
from unveil.runs.corrections import State
from unveil.runs.decisions import folded_labels
from unveil.runs.edited_scores import EditedScores
from unveil.runs.questions import SLOPES, Question, Questions, separation
from unveil.runs.reader import Run, load
from unveil.runs.review_log import Entry

ANSWERS = (0, 10, 20, 40, 80)
COUNTS = (0.7, 1.4)
"""The number of clusters as a share of the right one: reviewers are needed where it is wrong."""
ROWS = 1500
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

    def answer(self, question: Question, state: State) -> list[tuple[str, dict[str, Any]]]:
        """The entries of the log that the answer makes."""
        clusters = list(question.clusters)
        if question.kind == "doubtful":
            rows = np.array(question.parts[0])
            main = self.main_class(np.flatnonzero(state.labels == clusters[0]))
            right, wrong = rows[self.truth[rows] == main], rows[self.truth[rows] != main]
            entries = [("move", {"rows": right.tolist(), "to": clusters[0]})] if len(right) else []
            return [*entries, ("reject", {"rows": wrong.tolist()})] if len(wrong) else entries
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


def accuracy(state: State, truth: Labels) -> float:
    """Share of the new items with the right known class, or in the novel class matched to theirs; rejected: wrong."""
    run, labels = state.run, folded_labels(state)
    known = run.new & (truth < run.n_known)
    right = int((labels[known] == truth[known]).sum())
    novel = run.new & (truth >= run.n_known) & (labels >= run.n_known)
    if novel.any():
        counts = contingency(truth[novel], labels[novel])
        class_of = match_clusters(counts)
        right += int(sum(counts[cluster, label] for cluster, label in enumerate(class_of) if label >= 0))
    return right / max(1, int(run.new.sum()))


def reviewed(run: Run, truth: Labels, order: str) -> dict[str, float]:
    """The accuracy after some numbers of answers."""
    state, scores, reviewer = State(run), EditedScores(run), Reviewer(truth)
    questions, asked = Questions(run, scores), set[Any]()
    found = {}
    for number in range(max(ANSWERS) + 1):
        if number in ANSWERS:
            found[str(number)] = accuracy(state, truth)
        if (question := ORDERS[order](questions.about(state), state, asked)) is None:
            found.update({str(later): accuracy(state, truth) for later in ANSWERS if later > number})
            break
        for kind, data in reviewer.answer(question, state):
            state.apply(Entry(number=state.length + 1, time="", kind=kind, data=data))
    return found


def criteria(run: Run, truth: Labels) -> Iterator[tuple[str, bool, dict[str, float]]]:
    """Kind, the right answer, and the values of several criteria, of every question at the start."""
    state, scores, reviewer = State(run), EditedScores(run), Reviewer(truth)
    x = unit_rows(np.asarray(run.features))
    labelled = ~run.new
    for question in Questions(run, scores).about(state):
        if question.kind == "doubtful":
            continue
        if question.kind == "split":
            a, b = (x[list(part)] for part in question.parts)
        else:
            other = question.clusters[1]
            a = x[state.labels == question.clusters[0]]
            b = x[(state.labels == other) & labelled] if question.kind == "known" else x[state.labels == other]
        own = x[state.labels == question.clusters[0]]
        values = {
            "cosine of means": float(mean_direction(a) @ mean_direction(b)),
            "separation": separation(a, b),
            "spread": 1 - float((own @ mean_direction(own)).mean()),
        }
        yield question.kind, reviewer.says_yes(question, state), values


def runs(name: str, seed: int, folder: Path) -> Iterator[tuple[float, Run, Labels]]:
    """Runs of a task with too few and too many clusters; half of the known items are without their label."""
    drawn = with_known_classes(draw(TASKS[name], ROWS), seed)
    known = np.unique(drawn.y[drawn.y >= 0])
    place = {label: number for number, label in enumerate(known.tolist())}
    truth = np.array([place.get(label, label + len(known)) for label in drawn.truth.tolist()])
    for share in COUNTS:
        n_novel = max(2, round(share * len(np.setdiff1d(drawn.truth, known))))
        model = NovelClassDiscovery(
            n_novel=n_novel, method="kmeans", known_in_unlabelled=True, rehearsals=0, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(drawn.x, drawn.y)
        model.save(folder / f"{name}-{seed}-{share}")
        yield share, load(folder / f"{name}-{seed}-{share}"), truth


def measure(names: list[str], seeds: int) -> dict[str, Any]:
    rows, values = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for seed in range(seeds):
                for share, run, truth in runs(name, seed, Path(folder)):
                    values += [(name, *found) for found in criteria(run, truth)]
                    curves = {order: reviewed(run, truth, order) for order in ORDERS}
                    rows.append({"task": name, "seed": seed, "clusters": share, "items": int(run.new.sum()), **curves})
                    print(name, seed, share, curves, flush=True)
    means = {order: {str(n): float(np.mean([row[order][str(n)] for row in rows])) for n in ANSWERS} for order in ORDERS}
    return {"rows": rows, "mean accuracy after n answers": means, "criteria": _compared(values), "slopes used": SLOPES}


def _compared(values: list[tuple[str, str, bool, dict[str, float]]]) -> dict[str, Any]:
    """For each kind of question: the area under the ROC curve of each criterion, and the curve fitted to each."""
    compared: dict[str, Any] = {}
    for kind in SLOPES:
        of_kind = [(yes, found) for _, asked, yes, found in values if asked == kind]
        answers = np.array([yes for yes, _ in of_kind])
        if len(set(answers.tolist())) < 2:
            continue
        compared[kind] = {"questions": len(answers), "yes": float(answers.mean())}
        for name in of_kind[0][1]:
            x = np.array([found[name] for _, found in of_kind])
            area = float(roc_auc_score(answers, x))
            fitted = LogisticRegression(C=1e4).fit(x[:, None], answers)
            slope, offset = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
            compared[kind][name] = {"area": max(area, 1 - area), "slope": slope, "offset": offset}
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="digits,mnist,letter,fashion-mnist,omniglot-greek")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    record = {
        "benchmark": "reviewers",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "unveil": __version__,
        **measure(asked.tasks.split(","), asked.seeds),
    }
    for order, curve in record["mean accuracy after n answers"].items():
        print(order, {n: round(value, 3) for n, value in curve.items()})
    if asked.out is not None:
        files.write_json(asked.out, record)


if __name__ == "__main__":
    main()
