"""The paper's six parameter figures in one table and one picture, from tables of `unveil paper` in results/paper.

python -m benchmarks.parameters results/paper/desk-cifar100-embedded docs/pictures/parameters-cifar100.png
"""

import argparse
import csv
import tomllib
from dataclasses import dataclass
from pathlib import Path

from unveil import files

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Curve:
    """ACC at each value of a parameter, in %."""

    title: str
    paper: str
    """Where the paper finds it best."""
    values: list[float]
    means: list[float]
    spreads: list[float]


def curves(folder: Path) -> list[Curve]:
    """The parameters of docs/claims.toml that were measured."""
    found = []
    for one in tomllib.loads((ROOT / "docs" / "claims.toml").read_text(encoding="utf-8"))["parameter"]:
        path = folder / f"{one['name']}.csv"
        if not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        values = [float(row["row"].rpartition(" = ")[2]) for row in rows]
        means, spreads = ([float(row[f"acc_{what}"] or 0) for row in rows] for what in ("mean", "std"))
        found.append(Curve(one["title"], one["paper"], values, means, spreads))
    return found


def table(folder: Path) -> str:
    """Markdown: a line for each parameter."""
    lines = ["| parameter | in the paper best at | ACC % here, best in bold |", "|---" * 3 + "|"]
    for curve in curves(folder):
        best = max(curve.means)
        cells = [
            f"{value:g}: {f'**{mean:.1f}**' if mean == best else f'{mean:.1f}'}"
            for value, mean in zip(curve.values, curve.means, strict=True)
        ]
        lines.append(f"| {curve.title} | {curve.paper} | {', '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else "*Not measured yet.*"


def draw(folder: Path, path: Path) -> None:
    """A panel for each parameter, all with the same scale."""
    from matplotlib.figure import Figure

    found = curves(folder)
    figure = Figure(figsize=(10, 3 * -(-len(found) // 3)), layout="constrained")
    panels = figure.subplots(-(-len(found) // 3), 3, squeeze=False, sharey=True).flat
    for axes, curve in zip(panels, found, strict=False):
        positions = range(len(curve.values))
        axes.errorbar(positions, curve.means, curve.spreads, fmt="o-", capsize=3)
        axes.set_xticks(positions, [f"{value:g}" for value in curve.values])
        axes.set_title(curve.title, fontsize=10)
        axes.grid(visible=True, alpha=0.3)
    for axes in list(panels)[len(found) :]:
        axes.axis("off")
    figure.supylabel("ACC %")
    files.write_with(path, lambda file: figure.savefig(file, dpi=110, format="png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the tables of one data set, such as results/paper/desk-cifar100")
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    draw(args.folder, args.picture)


if __name__ == "__main__":
    main()
