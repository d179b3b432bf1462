"""Numbers of an experiment beside the paper's: means, spreads, effects, and whether a claim holds here."""

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from unveil.experiments.experiment import Row
from unveil.experiments.plan import Plan
from unveil.methods.baseline import BaselineSettings
from unveil.methods.ranking import RankingSettings
from unveil.methods.similarity import PairwiseSettings
from unveil.settings import Settings

SMALL = 0.5  # an effect in the paper of fewer points counts as none
NO_PAIRS = "–"
SCORES = ("acc", "nmi", "test_acc", "known_acc", "open_all", "open_old", "open_new")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row with its results. Scores are in percent; the spread (standard deviation) needs two seeds."""

    row: Row
    seeds: int
    mean: dict[str, float]
    spread: dict[str, float]
    seconds: float
    pairs: str  # its rule for positive pairs
    against: str = ""  # the row it is compared with
    differences: tuple[float, ...] = ()  # to that row in percent, by seed
    paper: tuple[float, float | None] | None = None
    paper_effect: float | None = None

    @property
    def effect(self) -> tuple[float, float | None] | None:
        """Mean and spread of the differences."""
        if not self.differences:
            return None
        spread = statistics.stdev(self.differences) if len(self.differences) > 1 else None
        return statistics.fmean(self.differences), spread

    @property
    def chance(self) -> float | None:
        """How often seeds alone would give so large an effect: a paired t-test, two-sided."""
        if len(self.differences) < 2:
            return None
        if np.ptp(self.differences) == 0:
            return 0.0 if self.differences[0] else 1.0
        return float(stats.ttest_1samp(self.differences, 0.0).pvalue)

    @property
    def verdict(self) -> str:
        """Whether the sign of the paper's effect is found here, and whether seeds alone could have given it."""
        if self.effect is None or self.paper_effect is None:
            return ""
        if abs(self.paper_effect) < SMALL:
            return "no effect in the paper"
        sign = "same sign" if self.effect[0] * self.paper_effect > 0 else "other sign"
        if self.chance is None:
            return f"{sign}, one seed"
        return f"{sign}, p {'< 0.001' if self.chance < 0.001 else f'{self.chance:.3f}'}"


def summarize(plan: Plan) -> list[Line]:
    """A line for each row of which there are records."""
    by_name = {row.name: row for row in plan.experiment.rows}
    lines = []
    for row in plan.experiment.rows:
        records = plan.records(row)
        if not records:
            continue
        base = by_name.get((plan.experiment.against if row.against is None else row.against) or "")
        base = None if base is row else base
        paper, base_paper = _paper(row, plan.column), None if base is None else _paper(base, plan.column)
        scores, differences = _scores(records), () if base is None else _differences(records, plan.records(base))
        lines.append(
            Line(
                row=row,
                seeds=len(records),
                mean={name: statistics.fmean(values) for name, values in scores.items()},
                spread={name: statistics.stdev(values) for name, values in scores.items() if len(values) > 1},
                seconds=statistics.fmean(record["seconds"]["discovery"] for record in records),
                pairs=pair_rule(plan.runs[row.name][0].settings),
                against=base.name if base is not None and differences else "",
                differences=differences,
                paper=paper,
                paper_effect=paper[0] - base_paper[0] if paper and base_paper and differences else None,
            )
        )
    return lines


def pair_rule(settings: Settings) -> str:
    """Which pairs of unlabeled items a run takes to be of one class, in a word or two; NO_PAIRS: it asks for none."""
    method = settings.method
    if getattr(method, "bce_weight", 1.0) == 0:
        return NO_PAIRS
    match method:
        case BaselineSettings():
            return {"cosine": f"cosine {method.threshold:g}", "rank": "nearest"}.get(method.pairs, method.pairs)
        case RankingSettings():
            return "ranking"
        case PairwiseSettings():
            return "learned"
    return NO_PAIRS


def plain_kmeans(plan: Plan) -> dict[str, list[float]]:
    """ACC in percent of k-means on the inputs and on features of unit length, by seed, from the records of the row that
    others are compared with, or of the first row that was run."""
    rows = plan.experiment.rows
    compared = [row for row in rows if row.name == plan.experiment.against]
    records = next((found for row in compared or rows if (found := plan.records(row))), [])
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


def _differences(records: list[dict[str, Any]], base: list[dict[str, Any]]) -> tuple[float, ...]:
    """Of ACC in percent, for seeds that both have."""
    ours, theirs = ({record["seed"]: record["metrics"]["acc"] for record in group} for group in (records, base))
    return tuple(100 * (acc - theirs[seed]) for seed, acc in ours.items() if seed in theirs)
