"""The command line from the outside: what people type, what they are told, and with which exit code."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Call = Callable[..., subprocess.CompletedProcess[str]]


def told(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error for people."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("unveil: ")
    return line


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_help_and_version_answer_without_torch() -> None:
    script = (
        "import sys, unveil.cli.main as cli\n"
        "for words in (['--help'], ['run', '--help'], ['data', '--help'], ['--version']):\n"
        "    try:\n"
        "        cli.app(words)\n"
        "    except SystemExit as end:\n"
        "        assert not end.code\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'numpy', 'PIL'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    for word in ("run", "data", "list", "get", "check", "--seed", "--set", "--out", "--resume", "--root", "--store"):
        assert word in result.stdout
    from unveil import __version__

    assert result.stdout.splitlines()[-1] == __version__


def test_data_list_says_what_is_here(unveil: Call, tmp_path: Path) -> None:
    result = unveil("data", "list", "--root", str(tmp_path / "nothing"))
    assert result.returncode == 0, result.stderr
    here = {line.split()[1]: line.split()[3] for line in result.stdout.splitlines() if line.startswith("│")}
    assert here["digits"] == "yes"
    assert {"mnist", "fashion-mnist", "cifar10", "cifar100", "imagenet", "omniglot"} <= here.keys()
    assert {here[name] for name in ("mnist", "cifar10", "imagenet")} == {"no"}


def test_data_check_says_what_is_in_it(unveil: Call) -> None:
    result = unveil("data", "check", "digits")
    assert result.returncode == 0, result.stderr
    assert "digits: 10 classes, images of 8 x 8 x 1" in result.stdout


def test_data_that_is_not_there_is_told(unveil: Call, tmp_path: Path) -> None:
    assert "there is no data set 'cifar11'; did you mean cifar10?" in told(unveil("data", "check", "cifar11"))
    missing = told(unveil("run", "cifar10", "--root", str(tmp_path / "nothing")))
    assert "cifar10 was not found" in missing
    assert "unveil data get cifar10" in missing
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "cifar-10"], "no recipe called 'cifar-10'; did you mean 'cifar10'?"),
        (["run", "digits", "--set", "discovery.epcohs=3"], "unknown key 'discovery.epcohs'; did you mean 'epochs'?"),
        (["run", "digits", "--sed", "3"], "Unknown option"),
        (["run", "digits", "--seed", "three"], "--seed"),
        (["run"], "RECIPE"),
        (["rum", "digits"], "rum"),
        (["data", "chekc", "digits"], "chekc"),
    ],
)
def test_mistyped_words_are_told_at_once(words: list[str], said: str, tmp_path: Path) -> None:
    """Without torch, so that it takes a moment and not seconds."""
    script = (
        "import sys, unveil.cli.main as cli\ntry:\n    cli.main()\nfinally:\n    assert 'torch' not in sys.modules\n"
    )
    result = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, cwd=tmp_path)
    assert said in told(result)
    assert not list(tmp_path.iterdir())


def test_overlapping_classes_are_told(unveil: Call, tmp_path: Path) -> None:
    line = told(unveil("run", "digits", "--set", 'data.known=["0", "1"]', "--set", 'data.novel=["1", "2"]'))
    assert "both known and novel (1)" in line
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.array([[1.0, 2.0], [np.nan, 1.0]], dtype=np.float32), "row 1 (counted from 0) is not finite"),
        (np.zeros((2, 3, 4, 5), dtype=np.float32), "shape (2, 3, 4, 5); expected vectors (n, features)"),
    ],
)
def test_bad_arrays_are_told(unveil: Call, tmp_path: Path, X: np.ndarray, said: str) -> None:
    np.savez(tmp_path / "mine.npz", X=X, y=np.arange(2))
    assert said in told(unveil("run", "digits", "--set", "data.name=mine.npz", "--set", "data.known=1"))
    assert not (tmp_path / "runs").exists()


def test_a_run_from_beginning_to_end_and_what_is_then_refused(unveil: Call, tmp_path: Path, tiny: list[str]) -> None:
    out = "runs/a [b]"
    command = ["run", "digits", *tiny, "--out", out]
    result = unveil(*command, "--seed", "3", process=True)
    assert result.returncode == 0, result.stderr
    assert "k-means on features of unit length" in result.stdout
    assert "ncl-hng" in result.stdout
    assert f"run directory: {out}" in result.stdout
    before = snapshot(tmp_path)
    assert "holds a run with other settings (seed is 3 there and 4 here)" in told(unveil(*command, "--seed", "4"))
    again = unveil(*command, "--seed", "3", "--resume")
    assert again.returncode == 0
    assert f"{out} is already complete" in again.stderr
    assert again.stdout == result.stdout
    assert snapshot(tmp_path) == before


def test_a_disk_that_takes_no_more_ends_in_one_line_and_can_be_resumed(
    unveil: Call, tmp_path: Path, tiny: list[str]
) -> None:
    def small_files_alone() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = unveil("run", "digits", *tiny, "--out", "run", preexec_fn=small_files_alone)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("unveil: ")
    assert "checkpoint.safetensors could not be written (File too large)" in result.stderr
    assert not list(tmp_path.rglob("*.part"))
    assert unveil("run", "digits", *tiny, "--out", "run", "--resume").returncode == 0


def test_no_place_to_write_is_told(unveil: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "file/run" in told(unveil("run", "digits", "--out", os.fspath(tmp_path / "file" / "run")))
    assert (tmp_path / "file").read_text() == "mine"
