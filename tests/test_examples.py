"""Every example runs as it is."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("example", sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")))
def test_examples_run(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_steps = ["30"] if example.startswith("methods/") else []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNVEIL_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES / example), *few_steps])
    with torch.random.fork_rng():  # examples seed torch
        runpy.run_path(str(EXAMPLES / example), run_name="__main__")
    assert "novel" in capsys.readouterr().out
