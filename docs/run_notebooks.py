"""Run the notebooks of the documentation and keep what they give: `make notebooks`.

What differs from run to run (times, versions) is not kept, so that a notebook changes only where its outputs do.
"""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent / "notebooks"


def run(path: Path) -> None:
    """Run a notebook in an empty folder and write its outputs into it."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        print(path.name)
        run(path)
