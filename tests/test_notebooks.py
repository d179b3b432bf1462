"""The notebooks of the documentation run, and the site shows what they gave."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.util import run_sync

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "docs" / "notebooks").glob("*.ipynb"))


def printed(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


@pytest.fixture(scope="module")
def kernel() -> Iterator[AsyncKernelManager]:
    """One kernel for all notebooks, each in an empty namespace: most of the time is for what they import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        manager = AsyncKernelManager(kernel_name="python3")
        run_sync(manager.start_kernel)()
        yield manager
        run_sync(manager.shutdown_kernel)(now=True)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, kernel: AsyncKernelManager) -> None:
    stored = nbformat.read(path, as_version=4)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code), "a cell has no output: run `make notebooks`"
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    fresh = nbformat.read(path, as_version=4)
    fresh.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\nimport os\nos.chdir({str(tmp_path)!r})"))
    NotebookClient(fresh, km=kernel, timeout=300).execute()
    accuracy = re.compile(r"accuracy (\d+\.\d) %")
    before, now = (list(map(float, accuracy.findall(printed(notebook)))) for notebook in (stored, fresh))
    assert now == pytest.approx(before, abs=15), "the site shows other numbers: run `make notebooks`"
