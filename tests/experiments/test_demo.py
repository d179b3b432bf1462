"""The comparison of `unveil demo`."""

from pathlib import Path

from rich.console import Console

from unveil.experiments.demo import compare
from unveil.runs.reader import load


def test_digits_beside_kmeans(tmp_path: Path) -> None:
    console = Console(record=True, width=120, file=(tmp_path / "shown.txt").open("w"))
    rows = {row.name: row for row in compare(0, tmp_path / "run", console)}
    assert rows["unveil"].accuracy > rows["k-means"].accuracy + 0.03
    assert 0.85 < rows["k-means"].accuracy < 0.93
    shown = console.export_text()
    assert "five more classes" in shown
    assert f"{100 * rows['unveil'].accuracy:.1f} %" in shown
    assert len(load(tmp_path / "run").ids) == 1797
