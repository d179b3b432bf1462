"""The licences of everything that is installed with unveil."""

import pytest

from unveil.cli.licenses import dependencies, licenses


def test_every_dependency_is_listed_with_a_licence(capsys: pytest.CaptureFixture[str]) -> None:
    licenses()
    lines = capsys.readouterr().out.splitlines()
    names = {line.split()[0].lower() for line in lines}
    assert {"unveil", "torch", "numpy", "scipy", "scikit-learn", "pillow", "safetensors", "rich", "cyclopts"} <= names
    assert "jinja2" in names  # needed by torch
    assert lines == sorted(lines, key=lambda line: line.split()[0].lower())
    stated = [text for _, _, text in dependencies("unveil") if text != "not stated"]
    assert len(stated) > 0.9 * len(lines)
