"""The examples of methods run as they stand, for a few steps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "methods"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs_and_is_about_eighty_lines(path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, str(path), "20"], capture_output=True, text=True, env=environment, timeout=240
    )
    assert result.returncode == 0, result.stderr
    accuracy = float(result.stdout.split()[-2])
    assert 25 < accuracy <= 100  # five classes: better than one cluster
    assert len(path.read_text().splitlines()) <= 110
