"""What own data has to reach, beside what the records of `benchmarks.own_data` say: tables in Markdown."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

Record = dict[str, Any]
Records = dict[str, dict[str, list[Record]]]
"""By task and kind."""
MANY_ROWS = 2000
"""The spread over seeds is asked of tasks with more unlabeled rows than this."""
WIDE = 0.15
"""A forecast that may be off by more than this has to say that the accuracy is hardly known."""


def read(folder: Path) -> Records:
    """All records of a folder."""
    records: Records = {}
    for path in sorted(folder.glob("*/*-seed*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        records.setdefault(record["task"], {}).setdefault(record["kind"], []).append(record)
    return records


def accuracy(records: Sequence[Record]) -> float:
    """Mean over seeds, in %."""
    return 100 * fmean(record["acc"] for record in records)


def of_peers(kinds: dict[str, list[Record]]) -> dict[str, float]:
    """The mean accuracy of each peer over seeds, in %."""
    of_seeds = [record["scores"] for record in kinds["peers"]]
    return {name: 100 * fmean(scores[name]["acc"] for scores in of_seeds) for name in of_seeds[0]}


def table(records: Records, cost: Record | None = None) -> str:
    """What is to be reached, what is, and whether it holds."""
    balanced = {task: kinds for task, kinds in records.items() if not is_unbalanced(task)}
    unbalanced = {task: kinds for task, kinds in records.items() if is_unbalanced(task)}
    lines = ["| what | wanted | reached | holds |", "|---|---|---|---|"]
    rows = [
        *_given(_with(balanced, "peers", "given")),
        *_auto(_with(balanced, "peers", "auto")),
        *_spread(_with(records, "given")),
        *_forecast(records),
        *_unbalanced(_with(unbalanced, "peers", "given")),
        *_general(_with(balanced, "general")),
        *_cost(cost),
    ]
    lines += [
        f"| {what} | {wanted} | {reached} | {'yes' if holds else '**no**'} |" for what, wanted, reached, holds in rows
    ]
    return "\n".join(lines)


Row = tuple[str, str, str, bool]


def is_unbalanced(task: str) -> bool:
    return task.endswith(("-10to1", "-tail"))


def _with(records: Records, *kinds: str) -> Records:
    return {task: every for task, every in records.items() if all(kind in every for kind in kinds)}


def _ahead(
    records: Records, of: Callable[[dict[str, list[Record]]], float], than: Callable[..., float]
) -> dict[str, float]:
    return {task: of(kinds) - than(kinds) for task, kinds in records.items()}


def _worst(differences: dict[str, float]) -> str:
    task = min(differences, key=lambda name: differences[name])
    return f"{differences[task]:+.1f} ({task})"


def _given(records: Records) -> Iterable[Row]:
    if not records:
        return
    best = _ahead(records, lambda kinds: accuracy(kinds["given"]), lambda kinds: max(of_peers(kinds).values()))
    umap = _ahead(records, lambda kinds: accuracy(kinds["given"]), lambda kinds: of_peers(kinds)["UMAP + k-means"])
    ahead = sum(value > 0 for value in best.values())
    yield "number given: worst task against its best peer", "-1 or more", _worst(best), min(best.values()) >= -1
    yield "tasks ahead of their best peer", "two thirds", f"{ahead} of {len(best)}", ahead >= 2 / 3 * len(best)
    mean = fmean(umap.values())
    yield "mean over tasks, against UMAP + k-means", "+4 or more", f"{mean:+.1f}", mean >= 4


def _auto(records: Records) -> Iterable[Row]:
    if not records:
        return
    gap = _ahead(records, lambda kinds: accuracy(kinds["auto"]), lambda kinds: of_peers(kinds)["UMAP + HDBSCAN"])
    ahead, mean = sum(value > 0 for value in gap.values()), fmean(gap.values())
    yield (
        "number estimated: tasks ahead of UMAP + HDBSCAN",
        "all but one",
        f"{ahead} of {len(gap)}",
        ahead >= len(gap) - 1,
    )
    yield "mean over tasks, against UMAP + HDBSCAN", "+8 or more", f"{mean:+.1f}", mean >= 8
    errors = {
        task: fmean(abs(one["clusters"] - one["classes"]["novel"]) / one["classes"]["novel"] for one in kinds["auto"])
        for task, kinds in records.items()
    }
    for limit, share, words in ((0.2, 0.9, "nine of ten tasks"), (0.1, 2 / 3, "two thirds of the tasks")):
        near = sum(error <= limit + 1e-9 for error in errors.values())
        yield (
            f"number of classes within {100 * limit:.0f} %",
            words,
            f"{near} of {len(errors)}",
            near >= share * len(errors),
        )


def _spread(records: Records) -> Iterable[Row]:
    spreads = {
        task: 100 * pstdev(record["acc"] for record in kinds["given"])
        for task, kinds in records.items()
        if kinds["given"][0]["rows"]["unlabeled"] > MANY_ROWS and len(kinds["given"]) > 1
    }
    if spreads:
        task = max(spreads, key=lambda name: spreads[name])
        yield (
            f"spread over seeds, more than {MANY_ROWS:,} unlabeled rows",
            "1.5 at most",
            f"{spreads[task]:.1f} at most ({task})",
            spreads[task] <= 1.5,
        )


def _forecast(records: Records) -> Iterable[Row]:
    for kind, words in (("given", "number given"), ("auto", "number estimated")):
        told = [
            one for kinds in records.values() for one in kinds.get(kind, []) if one["forecast"]["accuracy"] is not None
        ]
        if not told:
            continue
        inside = sum(one["forecast"]["low"] <= one["acc"] <= one["forecast"]["high"] for one in told)
        off = 100 * fmean(abs(one["forecast"]["accuracy"] - one["acc"]) for one in told)
        wide = [
            one
            for one in told
            if max(
                one["forecast"]["high"] - one["forecast"]["accuracy"],
                one["forecast"]["accuracy"] - one["forecast"]["low"],
            )
            > WIDE
            and "hardly known" not in one["forecast_sentence"]
        ]
        yield (
            f"forecast, {words}: truth in the 90 % interval",
            "85 %",
            f"{inside} of {len(told)}",
            inside >= 0.85 * len(told),
        )
        yield f"forecast, {words}: mean absolute error", "6 at most", f"{off:.1f}", off <= 6
        yield f"forecast, {words}: wider than ±15 without a word", "none", str(len(wide)), not wide


def _unbalanced(records: Records) -> Iterable[Row]:
    if not records:
        return
    ours = fmean(accuracy(kinds["given"]) for kinds in records.values())
    names = of_peers(next(iter(records.values())))
    means = {name: fmean(of_peers(kinds)[name] for kinds in records.values()) for name in names}
    best = max(means, key=lambda name: means[name])
    kmeans = _ahead(records, lambda kinds: accuracy(kinds["given"]), lambda kinds: of_peers(kinds)["k-means"])
    yield "unbalanced: mean against the best peer", "ahead", f"{ours - means[best]:+.1f} ({best})", ours > means[best]
    yield "unbalanced: worst task against k-means", "-1 or more", _worst(kmeans), min(kmeans.values()) >= -1


def _general(records: Records) -> Iterable[Row]:
    if not records:
        return

    def best_peer(kinds: dict[str, list[Record]]) -> float:
        scores = [record["scores"] for record in kinds["general"]]
        return max(100 * fmean(one[name]["all"] for one in scores) for name in scores[0])

    gap = _ahead(records, lambda kinds: 100 * fmean(one["given"]["all"] for one in kinds["general"]), best_peer)
    yield "known classes inside: worst task against the better peer", "+3 or more", _worst(gap), min(gap.values()) >= 3
    errors = [
        fmean(
            abs(one["auto"]["clusters"] - one["classes"]["novel"]) / one["classes"]["novel"] for one in kinds["general"]
        )
        for kinds in records.values()
    ]
    near = sum(error <= 0.25 for error in errors)
    yield (
        "known classes inside: number of new classes within 25 %",
        "three quarters",
        f"{near} of {len(errors)}",
        near >= 0.75 * len(errors),
    )


def _cost(cost: Record | None) -> Iterable[Row]:
    for row in [] if cost is None else cost["rows"]:
        if row["rows"] == 50_000:
            yield "50,000 × 512", "under 120 s", f"{row['seconds']:.0f} s", row["seconds"] < 120
        if row["rows"] == 1_000_000:
            reached = f"{row['seconds']:.0f} s, {row['peak_mb']:,} MB"
            yield "1,000,000 × 512", "under 360 s and 2 GB", reached, row["seconds"] < 360 and row["peak_mb"] < 2000
