"""One run under review: what the page asks about it, and what people do to it."""

from contextlib import suppress
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException

from unveil.errors import UnveilError
from unveil.files import csv_text
from unveil.pages import words
from unveil.pages.colors import class_color
from unveil.pages.report.clusters import unusual_columns
from unveil.pages.review import parameters
from unveil.pages.review.log import Log
from unveil.pages.review.map import LiveMap
from unveil.pages.review.pictures import Pictures
from unveil.pages.review.similar import SimilarItems
from unveil.pages.review.split import split
from unveil.pages.review.summary import Summary
from unveil.review.corrections import REJECTED, State
from unveil.review.export import formats_for
from unveil.review.log import LONGEST_NAME, hidden_characters
from unveil.review.names import Names, free_name
from unveil.review.questions import Questions
from unveil.runs.reader import Run

PAGE = 20_000  # most items in a response about one class
DOUBTFUL = 12
LONGEST_TEXT = 400  # characters of a text beside others; the viewer shows all of it
TELLING = 6  # words or columns that set a class or a part apart
SHOWN_QUESTIONS = 12
LEAST_GAIN = 0.5  # questions whose answer is expected to put fewer items right are not asked
FIELDS = ("question", "cluster", "clusters", "class", "text", "parts", "rows", "to", "reviewed")


class Review:
    """One run under review: the state that all requests share."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.log = Log(run)
        self.summary = Summary(run)
        self.pictures = Pictures(run)
        self.similar_items = SimilarItems(run)
        self.map = LiveMap(run)
        self.names = Names(run)
        self.questions = Questions(run, self.summary.scores)

    def prepare(self) -> None:
        """Compute what the first edit needs while somebody looks at the first page."""
        with suppress(UnveilError, OSError), self.log.reading():
            self.summary.scores.prepare()

    def state(self) -> dict[str, Any]:
        with self.log.reading() as state:
            return self.summary.state(state)

    def about(self) -> dict[str, Any]:
        run = self.run
        summary = run.record.get("summary") or {}
        return {
            "run": run.name,
            "headline": words.headline(run.record),
            "edited_headline": words.headline(run.record, edited=True),
            "warnings": [str(warning) for warning in run.record.get("warnings") or ()],
            "pictures": run.has_pictures,
            "sides": self.pictures.sides,
            "summary": {key: summary[key] for key in words.SUMMARY if summary.get(key)},
            "titles": words.SUMMARY,
            "known_color": class_color(0, 1),
            "formats": formats_for(run),
        }

    def rows_of(self, cluster: int, sort: str, offset: int, limit: int) -> dict[str, Any]:
        with self.log.reading() as state:
            if cluster != REJECTED:
                self._existing(state, cluster)
            rows = self.summary.ordered(state, cluster, sort)
        part = rows[offset : offset + min(limit, PAGE)]
        return {"total": len(rows), "offset": offset, **self._described(part)}

    def _described(self, rows: Any) -> dict[str, Any]:
        confidence, new = np.round(self.summary.confidence[rows] * 100).astype(int), self.run.new[rows].astype(int)
        return {"rows": rows.tolist(), "confidence": confidence.tolist(), "new": new.tolist()}

    def items(self, rows: list[int]) -> list[dict[str, Any]]:
        with self.log.reading() as state:
            labels, by_hand = state.labels[rows].tolist(), state.by_hand[rows].tolist()
            self.summary.follow(state)
        run, confidence = self.run, self.summary.confidence
        return [
            {
                "row": row,
                "id": run.ids[row],
                "class": label,
                "first": run.classes[int(run.labels[row])],
                "new": bool(run.new[row]),
                "confidence": round(float(confidence[row]), 4),
                "by_hand": placed,
                "columns": columns,
                "text": run.texts[row][:LONGEST_TEXT] if run.texts else "",
            }
            for row, label, placed, columns in zip(rows, labels, by_hand, self.pictures.columns(rows), strict=True)
        ]

    def similar(self, row: int, count: int) -> dict[str, Any]:
        rows, cosines = self.similar_items.similar(row, count)
        return {**self._described(rows), "cosines": np.round(cosines, 4).tolist()}

    def nearest(self, body: dict[str, Any]) -> dict[str, Any]:
        """All classes, the most similar to a class or to items first."""
        with self.log.reading() as state:
            if "rows" in body:
                query = self.summary.mean_of(state.rows(body["rows"]))
            else:
                query = self.summary.mean(state, self._existing(state, parameters.whole(body, "cluster")))
            classes = self.summary.nearest(state, query)
        return {"classes": [{"id": cluster, "cosine": round(cosine, 6)} for cluster, cosine in classes]}

    def profile(self, cluster: int) -> dict[str, Any]:
        """What to look at in a class: doubtful items, the nearest known class and cluster, unusual columns."""
        with self.log.reading() as state:
            self._existing(state, cluster)
            rows = self.summary.ordered(state, cluster, "confidence")
            rows = rows[self.run.new[rows]]
            near = self.summary.nearest(state, self.summary.mean(state, cluster)) if len(rows) else []
            others = [(other, cosine) for other, cosine in near if other != cluster]
            known = next((one for one in others if not state.is_novel(one[0])), None)
            novel = next((one for one in others if state.is_novel(one[0])), None)
            words = self.names.telling(state.labels, cluster, TELLING) if self.run.texts else []
            names = self._suggested(state, cluster, [one for one, _ in others if not state.is_novel(one)])
        columns = () if self.run.has_pictures else unusual_columns(self.run, rows)
        unusual = [(c.column, _readable(c.mean), round(c.difference, 1)) for c in columns]
        return {
            "names": names,
            "words": words,
            "doubtful": rows[::-1][:DOUBTFUL].tolist(),
            "known": None if known is None else {"id": known[0], "cosine": round(known[1], 3)},
            "cluster": None if novel is None else {"id": novel[0], "cosine": round(novel[1], 3)},
            "columns": [{"column": name, "mean": mean, "deviations": units} for name, mean, units in unusual],
        }

    def _suggested(self, state: State, cluster: int, known: list[int]) -> list[str]:
        """Names to suggest for a cluster that nobody has named."""
        meaning = state.meanings[cluster]
        if not state.is_novel(cluster) or meaning.named or meaning.known is not None:
            return []
        taken = [state.name(other) for other in state.meanings if other != cluster]
        suggested = self.names.suggest(state.labels, cluster, [state.name(other) for other in known])
        names = [free_name("".join(name.split("\n"))[:LONGEST_NAME], taken) for name in suggested]
        return [name for name in names if not hidden_characters(name)]

    def queue(self) -> dict[str, Any]:
        """The most useful questions, how many there are, and what all of them are worth."""
        with self.log.reading() as state:
            questions = self.questions.about(state) if self.run.has_features else []
            length = state.length
        useful = [question for question in questions if question.gain >= LEAST_GAIN]
        return {
            "length": length,
            "left": len(useful),
            "gain": round(sum(question.gain for question in useful), 1),
            "questions": [question.to_json() for question in useful[:SHOWN_QUESTIONS]],
        }

    def whole_row(self, row: int) -> dict[str, Any]:
        return {"columns": self.pictures.whole_row(row), "text": self.run.texts[row] if self.run.texts else ""}

    def listed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Items as a table: to be kept or used elsewhere."""
        with self.log.reading() as state:
            rows = state.rows(body.get("rows")).tolist()
            names = {c: state.name(c) for c in state.meanings}
            lines = [(self.run.ids[row], names.get(int(state.labels[row]), ""), self.run.paths[row]) for row in rows]
        return {"csv": csv_text(("id", "label", "path"), lines)}

    def _existing(self, state: State, cluster: int) -> int:
        if cluster not in state.meanings:
            raise HTTPException(404, "there is no such class any more")
        return cluster

    def duplicates(self, alike: float) -> dict[str, Any]:
        with self.log.reading() as state:
            accepted = state.labels != REJECTED
        remaining = [[row for row in group if accepted[row]] for group in self.similar_items.duplicates(alike)]
        groups = [group for group in remaining if len(group) > 1]
        rows = np.array([row for group in groups for row in group], dtype=np.int64)
        return {"groups": groups, **self._described(rows)}

    def act(self, kind: str, data: dict[str, Any], base: int) -> dict[str, Any]:
        self.log.act(kind, {key: data[key] for key in FIELDS if key in data}, base)
        return self.state()

    def log_again(self, do: str) -> dict[str, Any]:
        """After the log was deleted: write it again, or begin without it."""
        if do not in ("restore", "forget"):
            raise UnveilError("restore or forget")
        (self.log.restore if do == "restore" else self.log.forget)()
        return self.state()

    def split(self, cluster: int, parts: int) -> dict[str, Any]:
        with self.log.reading() as state:
            if cluster not in state.meanings or not state.is_novel(cluster):
                raise UnveilError("only a cluster can be split")
            rows, length = np.flatnonzero(state.labels == cluster), state.length
        found = split(self.run, rows, parts)
        part_of = np.full(len(self.run.ids), REJECTED)
        for number, part in enumerate(found):
            part_of[part] = number
        telling = [self.names.telling(part_of, number, TELLING) for number in range(len(found))]
        return {"length": length, "parts": [part.tolist() for part in found], "telling": telling}


def _readable(mean: float) -> float:
    """Three digits, and all those before the point."""
    return float(f"{mean:.3g}") if abs(mean) < 100 else round(mean)
