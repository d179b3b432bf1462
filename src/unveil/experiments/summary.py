"""Numbers of an experiment beside the paper's: means, spreads, effects, and whether a claim holds here."""

import statistics
from dataclasses import dataclass
from typing import Any

from unveil.experiments.experiment import Row
from unveil.experiments.plan import Plan

SCORES = ("acc", "nmi", "test_acc", "known_acc", "open_all", "open_old", "open_new")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row with its results. Scores are in percent; the spread (standard deviation) needs two seeds."""

    row: Row
    seeds: int
    mean: dict[str, float]
    spread: dict[str, float]
    seconds: float
    effect: tuple[float, float | None] | None = None
    """Mean and spread of the difference to the row it is compared with, seed by seed."""
    paper: tuple[float, float | None] | None = None
    paper_effect: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the sign of the paper's effect is found here, and whether it exceeds its spread."""
        if self.effect is None or self.paper_effect is None:
            return ""
        ours, spread = self.effect
        if abs(self.paper_effect) < 0.05:
            return "no effect in the paper"
        sign = "same sign" if ours * self.paper_effect > 0 else "other sign"
        if spread is None:
            return f"{sign}, one seed"
        return f"{sign}, {'beyond' if abs(ours) > spread else 'within'} its spread"


def summarise(plan: Plan) -> list[Line]:
    """A line for each row of which there are records."""
    column = plan.column
    base = next((row for row in plan.experiment.rows if row.name == plan.experiment.against), None)
    base_records = [] if base is None else plan.records(base)
    lines = []
    for row in plan.experiment.rows:
        records = plan.records(row)
        if not records:
            continue
        paper = _paper(row, column)
        base_paper = None if base is None else _paper(base, column)
        lines.append(
            Line(
                row=row,
                seeds=len(records),
                mean={name: statistics.fmean(values) for name, values in _scores(records).items()},
                spread={name: statistics.stdev(values) for name, values in _scores(records).items() if len(values) > 1},
                seconds=statistics.fmean(record["seconds"]["discovery"] for record in records),
                effect=None if base is None or row is base else _effect(records, base_records),
                paper=paper,
                paper_effect=None if row is base or paper is None or base_paper is None else paper[0] - base_paper[0],
            )
        )
    return lines


def plain_kmeans(plan: Plan) -> dict[str, list[float]]:
    """ACC in percent of k-means on the inputs and on features of unit length, by seed, from the records of the row that
    others are compared with."""
    row = next((row for row in plan.experiment.rows if row.name == plan.experiment.against), plan.experiment.rows[0])
    records = plan.records(row)
    keys = {"k-means on the inputs": "kmeans_inputs", "k-means on features of unit length": "kmeans"}
    scores = {name: [100 * record[key]["acc"] for record in records if key in record] for name, key in keys.items()}
    return {name: values for name, values in scores.items() if values}


def _scores(records: list[dict[str, Any]]) -> dict[str, list[float]]:
    metrics = [record["metrics"] for record in records]
    scores = {name: [100 * values[name] for values in metrics if name in values] for name in SCORES}
    return {name: values for name, values in scores.items() if values}


def _paper(row: Row, column: str | None) -> tuple[float, float | None] | None:
    values = row.paper.get(column or "")
    return None if values is None else (values[0], values[1] if len(values) > 1 else None)


def _effect(records: list[dict[str, Any]], base: list[dict[str, Any]]) -> tuple[float, float | None] | None:
    ours, theirs = ({record["seed"]: record["metrics"]["acc"] for record in group} for group in (records, base))
    differences = [100 * (acc - theirs[seed]) for seed, acc in ours.items() if seed in theirs]
    if not differences:
        return None
    return statistics.fmean(differences), statistics.stdev(differences) if len(differences) > 1 else None
