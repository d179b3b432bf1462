"""The notebooks of the documentation run, and the site shows what they gave."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "docs" / "notebooks").glob("*.ipynb"))


def printed(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    stored = nbformat.read(path, as_version=4)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code), "a cell has no output: run `make notebooks`"
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    fresh = nbformat.read(path, as_version=4)
    NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    accuracy = re.compile(r"accuracy (\d+\.\d) %")
    before, now = (list(map(float, accuracy.findall(printed(notebook)))) for notebook in (stored, fresh))
    assert now == pytest.approx(before, abs=15), "the site shows other numbers: run `make notebooks`"
