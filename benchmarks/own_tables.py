"""Tables of every task, in Markdown, from the records of `benchmarks.own_data`."""

from collections.abc import Sequence
from statistics import fmean, median, pstdev
from typing import Any

from benchmarks.own_records import Record, Records, accuracy, is_unbalanced, of_peers
from benchmarks.own_tasks import TASKS

NOTHING = "*Not measured yet.*"
IN_THE_SUMMARY = ("EVoC", "UMAP with labels + k-means")
"""Peers that have no column of their own: their means are in the summary."""
LEAST_ROWS = 24
"""Rows of a novel class, on average, from which splits of known classes are shown apart."""


def given(records: Records) -> str:
    """Accuracy of unveil and of every peer, the number of classes given; and the mean over tasks."""
    complete = {task: kinds for task, kinds in records.items() if {"peers", "given"} <= set(kinds)}
    if not complete:
        return NOTHING
    names = [name for name in of_peers(next(iter(complete.values()))) if name not in IN_THE_SUMMARY]
    rows, means = [], list[tuple[str, list[float]]]()
    for task, kinds in _ordered(complete):
        peers = of_peers(kinds)
        ours = accuracy(kinds["given"])
        spread = f" ± {_spread(kinds['given'], 'acc'):.1f}" if len(kinds["given"]) > 2 else ""
        scores = [f"{ours:.1f}{spread}"]
        scores += [_bold(peers[name], max(peers.values())) for name in names]
        first = kinds["given"][0]
        rows.append([first["task"], _classes(first), scores[0], _forecast(kinds["given"]), *scores[1:]])
        means.append((task, [ours, *(peers[name] for name in names)]))
    for words, wanted in (("mean, balanced", False), ("mean, unbalanced", True)):
        some = [values for task, values in means if is_unbalanced(task) == wanted]
        if some:
            ours, *others = (f"{fmean(column):.1f}" for column in zip(*some, strict=True))
            rows.append([words, "", ours, "", *others])
    return _table(["", "known + novel", "unveil", "forecast", *names], rows)


OTHERS = ("k-means", "UMAP + k-means", "UMAP + HDBSCAN")
"""What most people would use instead."""
DATA = {"photographs and sentences, as vectors of an encoder": "embeddings", "pixels": "pixels",
        "tables, sound, cells": "table"}  # fmt: skip


def versus(records: Records) -> str:
    """Mean accuracy beside what most people would use instead, by kind of data, the number of classes given."""
    complete = {task: kinds for task, kinds in records.items() if {"peers", "given"} <= set(kinds)}
    if not complete:
        return NOTHING
    groups = {
        name: [t for t in complete if TASKS[t].kind == kind and not is_unbalanced(t)] for name, kind in DATA.items()
    }
    groups["classes of very unequal size"] = [task for task in complete if is_unbalanced(task)]
    groups["all"] = list(complete)
    rows = []
    for name, tasks in groups.items():
        if not tasks:
            continue
        scores = [(accuracy(complete[t]["given"]), *(of_peers(complete[t])[peer] for peer in OTHERS)) for t in tasks]
        means = [fmean(column) for column in zip(*scores, strict=True)]
        ahead = sum(ours > max(others) for ours, *others in scores)
        rows.append([name, *(_bold(mean, max(means)) for mean in means), f"{ahead} of {len(tasks)}"])
    return _table(["ACC %", "unveil", *OTHERS, "unveil ahead of all three"], rows)


def auto(records: Records) -> str:
    """The number of classes estimated: number found, accuracy, and those that find their number too."""
    rows = []
    for _, kinds in _ordered(records):
        if not {"peers", "auto"} <= set(kinds):
            continue
        first, peers = kinds["auto"][0], of_peers(kinds)
        hdbscan = [record["scores"]["UMAP + HDBSCAN"]["clusters"] for record in kinds["peers"]]
        numbers = [str(first["classes"]["novel"]), _range([one["clusters"] for one in kinds["auto"]]), _range(hdbscan)]
        ours = [f"{accuracy(kinds['auto']):.1f}", _forecast(kinds["auto"])]
        rows.append([first["task"], *numbers, *ours, f"{peers['UMAP + HDBSCAN']:.1f}", f"{peers['EVoC']:.1f}"])
    columns = ["classes", "novel", "estimated", "by HDBSCAN", "ACC %: unveil", "forecast", "UMAP + HDBSCAN", "EVoC"]
    return _table(columns, rows)


def forecasts(records: Records) -> str:
    """How often the accuracy was in the 90 % interval of its forecast, and how far off the forecast was."""
    rows = []
    for kind, words in (("given", "number of classes given"), ("auto", "number of classes estimated")):
        fits = [one for kinds in records.values() for one in _with_forecast(kinds.get(kind, []))]
        if fits:
            inside = sum(one["forecast"]["low"] <= one["acc"] <= one["forecast"]["high"] for one in fits)
            error = 100 * fmean(abs(one["forecast"]["accuracy"] - one["acc"]) for one in fits)
            width = 100 * median(one["forecast"]["high"] - one["forecast"]["low"] for one in fits)
            rows.append([words, f"{inside} of {len(fits)}", f"{error:.1f} points", f"{width:.0f} points"])
    return _table(["", "accuracy inside the 90 % interval", "mean absolute error", "median width"], rows)


def summary(records: Records) -> str:
    """What all tasks together say."""
    complete = [kinds for kinds in records.values() if {"peers", "given"} <= set(kinds)]
    if not complete:
        return NOTHING
    ours = [accuracy(kinds["given"]) for kinds in complete]
    peers = [of_peers(kinds) for kinds in complete]
    usual = [max(one["k-means"], one["UMAP + k-means"]) for one in peers]
    best = [max(one.values()) for one in peers]
    spread = [_spread(kinds["given"], "acc") for kinds in complete if len(kinds["given"]) > 1]
    fits = [one for kinds in complete for one in kinds["given"]]
    ranked = [one["auroc"] for one in fits if one["auroc"] is not None]
    counted = [one for kinds in records.values() for one in kinds.get("auto", [])]
    off = [one["clusters"] / one["classes"]["novel"] for one in counted]
    rows = [
        ["mean accuracy", f"{fmean(ours):.1f} %"],
        *([f"mean accuracy of {name}", f"{fmean(one[name] for one in peers):.1f} %"] for name in peers[0]),
        ["mean accuracy of the best of them on each task", f"{fmean(best):.1f} %"],
        ["ahead of all of them", f"{sum(a > b for a, b in zip(ours, best, strict=True))} of {len(ours)} tasks"],
        ["more than 4 points behind k-means or UMAP + k-means",
         f"{sum(a < b - 4 for a, b in zip(ours, usual, strict=True))} of {len(ours)} tasks"],
        ["farthest behind them", f"{min(a - b for a, b in zip(ours, usual, strict=True)):.1f} points"],
        ["confidence: right before wrong items (AUROC)", f"{fmean(ranked):.2f}"],
        ["confidence: calibration error (ECE)", f"{100 * fmean(one['calibration_error'] for one in fits):.1f} points"],
    ]  # fmt: skip
    if spread:
        rows.append(["standard deviation over seeds: mean, largest", f"{fmean(spread):.1f}, {max(spread):.1f} points"])
    if counted:
        rows += [
            [
                "estimated number of classes within 20 %",
                f"{sum(abs(one - 1) <= 0.2 for one in off)} of {len(off)} fits",
            ],
            ["within a factor of 1.5", f"{sum(1 / 1.5 <= one <= 1.5 for one in off)} of {len(off)} fits"],
        ]
    return _table(["", ""], rows)


def _with_forecast(records: Sequence[Record]) -> list[Record]:
    return [one for one in records if one["forecast"]["accuracy"] is not None]


def _forecast(records: Sequence[Record]) -> str:
    """The forecast accuracy and its 90 % interval in %, means over seeds: 89 (80–96)."""
    fits = _with_forecast(records)
    if not fits:
        return ""
    low, middle, high = (100 * fmean(one["forecast"][key] for one in fits) for key in ("low", "accuracy", "high"))
    return f"{middle:.0f} ({low:.0f}–{high:.0f})"


def general(records: Records) -> str:
    """Known classes among the unlabeled rows: accuracy over all, old and new ones; of others over all."""
    rows, names = [], list[str]()
    for _, kinds in _ordered(records):
        if "general" not in kinds:
            continue
        of_task = kinds["general"]
        names = list(of_task[0]["scores"])
        ours = [fmean(one["given"][part] for one in of_task) for part in ("all", "old", "new")]
        others = [fmean(one["scores"][name]["all"] for one in of_task) for name in names]
        scores = [f"{100 * score:.1f}" for score in (*ours, *others)]
        numbers = [str(of_task[0]["classes"]["novel"]), _range([one["auto"]["clusters"] for one in of_task])]
        rows.append([of_task[0]["task"], *numbers, *scores])
    columns = ["classes", "novel", "estimated", "unveil: all", "old", "new", *(f"{name}: all" for name in names)]
    return _table(columns, rows)


def _range(numbers: Sequence[int]) -> str:
    """The lowest and the highest of some numbers; one number where they agree."""
    return "–".join(str(number) for number in sorted({min(numbers), max(numbers)}))


def _ordered(records: Records) -> list[tuple[str, dict[str, list[Record]]]]:
    """The tasks where unveil is farthest behind the best of the others first."""

    def ahead(item: tuple[str, dict[str, list[Record]]]) -> float:
        kinds = item[1]
        if not {"peers", "given"} <= set(kinds):
            return 0.0
        return accuracy(kinds["given"]) - max(of_peers(kinds).values())

    return sorted(records.items(), key=ahead)


def _classes(record: Record) -> str:
    return f"{record['classes']['known']}+{record['classes']['novel']}"


def _spread(records: Sequence[Record], key: str) -> float:
    return 100 * pstdev(record[key] for record in records)


def _bold(value: float, best: float) -> str:
    return f"**{value:.1f}**" if value == best else f"{value:.1f}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return NOTHING
    return "\n".join(
        [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    )


def counts(record: dict[str, Any]) -> str:
    """How often the number was near, with and without the connections of clusters: Markdown."""
    small = [one for one in record["records"] if one["rows"] < LEAST_ROWS * one["novel"]]
    groups = {
        f"{LEAST_ROWS} rows of a class or more, 4 classes or more": [
            one for one in record["records"] if one not in small and one["novel"] >= 4
        ],
        "2 or 3 classes": [one for one in record["records"] if one["novel"] < 4],
        "fewer rows of a class": [one for one in small if one["novel"] >= 4],
    }
    lines = ["| | splits | within 20 % | the same without connections | inside the interval |", "|---|---|---|---|---|"]
    for name, records in groups.items():
        cells = [f"{100 * _near(records, way):.0f} %" for way in ("usual", "without connections")]
        inside = fmean([one["interval"][0] <= one["novel"] <= one["interval"][1] for one in records])
        lines.append(f"| {name} | {len(records)} | {cells[0]} | {cells[1]} | {100 * inside:.0f} % |")
    return "\n".join(lines)


def dimensions(record: dict[str, Any]) -> str:
    """Mean accuracy in % by data and by dimensions of the embeddings: Markdown."""
    ways = list(record["records"][0]["accuracy"])
    lines = [f"| known classes of | hidden classes | {' | '.join(ways)} |", "|---" * (len(ways) + 2) + "|"]
    for tail, what in ((False, "of equal size"), (True, "a long tail")):
        some = [one for one in record["records"] if one["tail"] == tail]
        for name in [*dict.fromkeys(one["data"] for one in some), "**all**"]:
            chosen = [one for one in some if name in (one["data"], "**all**")]
            means = [100 * fmean([fmean(one["accuracy"][way]) for one in chosen]) for way in ways]
            lines.append(f"| {name} | {what} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
    return "\n".join(lines)


def _near(records: list[dict[str, Any]], way: str) -> float:
    """The share of the numbers that are within 20 %."""
    return fmean([abs(one["counted"][way] - one["novel"]) <= 0.2 * one["novel"] for one in records])
