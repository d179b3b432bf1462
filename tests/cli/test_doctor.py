"""`unveil doctor`: what is installed, what works, and where things are."""

import json
from pathlib import Path

import pytest

from unveil import __version__
from unveil.cli import doctor
from unveil.encoders import registry
from unveil.encoders.registry import EncoderEntry


def test_it_says_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNVEIL_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("UNVEIL_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set").write_bytes(bytes(1500))
    doctor.doctor()
    told = capsys.readouterr().out
    assert told.startswith(f"unveil {__version__}, Python 3.")
    assert "  efficientnet-lite0: ready" in told
    assert "  review: installed" in told
    assert f"data sets: {tmp_path / 'data'}, 1.5 kB" in told
    doctor.doctor(json=True)
    report = json.loads(capsys.readouterr().out)
    assert report["problems"] == []
    assert report["torch"]["device"]
    assert {"images", "text", "cells", "review", "paper", "ray"} <= report["extras"].keys()
    assert not {"all", "dev", "docs"} & report["extras"].keys()


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    other = EncoderEntry(
        name="other", reads="texts", help="", install="other-package", modules=("there_is_no_such_module",)
    )
    monkeypatch.setattr(registry, "ENCODERS", (*registry.ENCODERS, other))
    assert doctor.examine()["encoders"]["other"] == "pip install other-package"


def test_a_package_for_another_torch_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "built_elsewhere.py").write_text("raise RuntimeError('operator does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    other = EncoderEntry(
        name="other", reads="images", help="", install="other", modules=("built_elsewhere",), built_for_torch=True
    )
    monkeypatch.setattr(registry, "ENCODERS", (other,))
    answer = doctor.examine()["encoders"]["other"]
    assert answer.startswith("built_elsewhere does not work with this torch (operator does not exist)")


def test_a_store_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNVEIL_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    with pytest.raises(SystemExit) as end:
        doctor.doctor()
    assert end.value.code == 1
    assert f"problem: {tmp_path / 'store'} cannot be written to: set UNVEIL_STORE" in capsys.readouterr().out
