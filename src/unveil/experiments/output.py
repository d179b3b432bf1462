"""Tables and figures of an experiment: on the terminal, as Markdown, CSV, LaTeX and PNG."""

import statistics
from pathlib import Path

from rich.table import Table

from unveil import files
from unveil.experiments.plan import Plan
from unveil.experiments.summary import NO_PAIRS, SCORES, Line, plain_kmeans, summarize

HEADER = ("", "pairs", "seeds", "ACC %", "paper", "beside", "effect", "in the paper", "does it hold here?", "test %",
          "known %", "all %", "old %", "new %", "s")  # fmt: skip


def cells(plan: Plan) -> list[list[str]]:
    """The lines of the table, as text."""
    rows = [_cells(line) for line in summarize(plan)]
    others = plain_kmeans(plan) if plan.experiment.inputs else {}
    for index, (name, values) in enumerate(others.items()):
        spread = statistics.stdev(values) if len(values) > 1 else None
        first = [name, NO_PAIRS, str(len(values)), pm(statistics.fmean(values), spread)]
        rows.insert(index, [*first, *[""] * (len(HEADER) - len(first))])
    return rows


def _filled(rows: list[list[str]]) -> list[int]:
    """The columns in which at least one row has something to say."""
    said = [any(row[index] not in ("", NO_PAIRS) for row in rows) for index in range(len(HEADER))]
    return [index for index, title in enumerate(HEADER) if title in ("", "seeds", "ACC %") or said[index]]


def _cells(line: Line) -> list[str]:
    effect = "" if line.effect is None else pm(*line.effect, sign=True)
    paper_effect = "" if line.paper_effect is None else f"{line.paper_effect:+.1f}"
    paper = "" if line.paper is None else pm(*line.paper)
    others = ("test_acc", "known_acc", "open_all", "open_old", "open_new")
    other_scores = [f"{line.mean[name]:.1f}" if name in line.mean else "" for name in others]
    acc = pm(line.mean["acc"], line.spread.get("acc"))
    compared = [paper, line.against, effect, paper_effect, line.verdict]
    return [line.row.name, line.pairs, str(line.seeds), acc, *compared, *other_scores, f"{line.seconds:.0f}"]


def pm(mean: float, spread: float | None = None, *, sign: bool = False) -> str:
    """A mean and its spread as text, such as 12.3 ± 0.4."""
    first = f"{mean:+.1f}" if sign else f"{mean:.1f}"
    return first if spread is None else f"{first} ± {spread:.1f}"


def shown(plan: Plan) -> Table:
    """The table for a terminal of 80 columns: without empty columns and without those that only the files have."""
    rows = cells(plan)
    most = max((int(row[HEADER.index("seeds")]) for row in rows), default=0)
    table = Table(title=f"{plan.title}, {most} seed{'s' if most != 1 else ''}")
    few, numbers = ("", "ACC %", "paper", "effect", "does it hold here?"), ("ACC %", "paper", "effect")
    columns = [index for index in _filled(rows) if HEADER[index] in few]
    for index in columns:
        table.add_column(HEADER[index], no_wrap=HEADER[index] in numbers)
    for row in rows:
        table.add_row(*(row[index] for index in columns))
    return table


def write(plan: Plan, folder: Path) -> list[Path]:
    """NAME.md (without empty columns), .csv, .tex and .png in the folder."""
    name = plan.experiment.name
    rows = cells(plan)
    kept = _filled(rows)
    lines = [f"| {' | '.join(row[index] for index in kept)} |" for row in (HEADER, *rows)]
    markdown = "\n".join([lines[0], "|---" * len(kept) + "|", *lines[1:]]) + "\n"
    written = {f"{name}.md": markdown, f"{name}.csv": _csv(plan), f"{name}.tex": _latex(plan)}
    for file, text in written.items():
        files.write(folder / file, text)
    return [*(folder / file for file in written), *_plot(plan, folder / f"{name}.png")]


def _csv(plan: Plan) -> str:
    scores, rows = [f"{score}_{what}" for score in SCORES for what in ("mean", "std")], []
    for line in summarize(plan):
        values = [d.get(s, "") for s in SCORES for d in (line.mean, line.spread)]  # in full: rounded once, where shown
        numbers = (None if line.effect is None else line.effect[0], line.paper_effect, line.chance)
        compared = ["" if number is None else number for number in numbers]
        paper = "" if line.paper is None else line.paper[0]
        rows.append([line.row.name, line.pairs, line.seeds, *values, paper, line.against, *compared])
    return files.csv_text(["row", "pairs", "seeds", *scores, "paper", "beside", "effect", "paper_effect", "p"], rows)


def _latex(plan: Plan) -> str:
    rows = cells(plan)
    chosen = [index for index in _filled(rows) if HEADER[index] in ("pairs", "ACC %")] + [HEADER.index("paper")]
    titles = {"pairs": "pairs", "ACC %": "here", "paper": "paper"}
    named = " & ".join(["Method", *(titles[HEADER[index]] for index in chosen)])
    head = [f"\\begin{{tabular}}{{l{'|c' * len(chosen)}}}", "\\hline", f"{named} \\\\", "\\hline"]
    body = []
    for row in rows:
        values = [value.replace("±", "$\\pm$").replace("%", "\\%").replace("&", "\\&") for value in row]
        name = values[0].replace("τ", "$\\tau$").replace("α", "$\\alpha$").replace("|M|", "$|M|$")
        body.append(" & ".join([name, *(values[index].replace(NO_PAIRS, "--") for index in chosen)]) + " \\\\")
    return "\n".join([*head, *body, "\\hline", "\\end{tabular}", ""])


def _plot(plan: Plan, path: Path) -> list[Path]:
    """A curve for a parameter, a line over epochs for each row, else bars, with the paper's values in gray."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    lines = summarize(plan)
    if not lines:
        return []
    curve, epochs = plan.experiment.shape == "curve", plan.experiment.shape == "epochs"
    figure = Figure(figsize=(6, 4) if curve or epochs else (8, 0.6 + 0.45 * len(lines)), layout="constrained")
    axes = figure.subplots()
    means, spreads = [line.mean["acc"] for line in lines], [line.spread.get("acc", 0.0) for line in lines]
    if curve:
        axes.errorbar([line.row.value or 0 for line in lines], means, spreads, fmt="o-", capsize=3)
        axes.set(xlabel=lines[0].row.name.rpartition(" = ")[0], ylabel="ACC %")
        values = [line.row.value or 0 for line in lines]
        if max(values) > 20 * max(min(values), 1e-9) and min(values) > 0:
            axes.set_xscale("log")
    elif epochs:
        for line in lines:
            accs: dict[int, list[float]] = {}
            for epoch, acc in (point for record in plan.records(line.row) for point in record["acc_by_epoch"]):
                accs.setdefault(int(epoch), []).append(100 * acc)
            axes.plot(
                sorted(accs), [statistics.fmean(accs[epoch]) for epoch in sorted(accs)], ".-", label=line.row.name
            )
        for style, (name, values) in zip((":", "--"), plain_kmeans(plan).items(), strict=False):
            axes.axhline(statistics.fmean(values), linestyle=style, color="#808080", label=name)
        axes.set(xlabel="epochs of discovery", ylabel="ACC %")
        axes.locator_params(axis="x", integer=True)
        axes.legend()
    else:
        positions = list(range(len(lines)))[::-1]
        axes.barh([p + 0.18 for p in positions], means, 0.36, xerr=spreads, label="here", color="#3b6ea5", capsize=2)
        known = [(p, line.paper) for p, line in zip(positions, lines, strict=True) if line.paper is not None]
        if known:
            values, errors = [value for _, (value, _) in known], [spread or 0.0 for _, (_, spread) in known]
            below = [p - 0.18 for p, _ in known]
            axes.barh(below, values, 0.36, xerr=errors, label="paper", color="#c8c8c8", capsize=2)
            axes.legend(loc="lower left")
        axes.set_yticks(positions, [line.row.name for line in lines])
        axes.set(xlabel="ACC %", xlim=(0, 100))
    axes.set_title(f"{plan.title}\n{lines[0].seeds} seed(s)", fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    files.write_with(path, lambda file: figure.savefig(file, dpi=110, format="png"))
    return [path]
