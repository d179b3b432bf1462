"""Every example runs as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("example", sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")))
def test_examples_run(example: str, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNVEIL_STORE": str(tmp_path / "store")}
    few_steps = ["30"] if example.startswith("methods/") else []
    command = [sys.executable, str(EXAMPLES / example), *few_steps]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900)
    assert result.returncode == 0, result.stderr
    assert "novel" in result.stdout
