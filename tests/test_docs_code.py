"""The code in README and docs works: command lines are understood, tutorials run word for word, Python blocks run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from unveil.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = [*sorted((ROOT / "docs" / "tutorials").glob("*.md")), ROOT / "docs" / "howto" / "encoder.md"]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of every block of code."""
    for indent, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        yield language, "\n".join(line.removeprefix(indent) for line in text.splitlines())


def commands(text: str) -> list[list[str]]:
    """The words of every line that calls unveil, without what follows a #."""
    return [shlex.split(line, comments=True)[1:] for line in text.splitlines() if line.startswith("unveil ")]


def understood(words: list[str]) -> None:
    """Parse a command line as the program does, without doing anything."""
    if words[:1] not in (["--version"], ["--help"], ["--install-completion"]):
        app.parse_args(words, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_is_understood(page: Path) -> None:
    for language, text in blocks(page):
        for words in commands(text) if language in ("", "console", "bash") else ():
            understood(words)


def test_a_command_that_does_not_exist_is_not_understood() -> None:
    for words in (["discovr", "a", "b"], ["discover", "a", "b", "--clases", "3"]):
        with pytest.raises(Exception, match=r"(?i)unknown|unused"):
            understood(words)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorials_run_word_for_word(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNVEIL_STORE", str(tmp_path / "store"))
    names: dict[str, Any] = {}
    ran = 0
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page.name, "exec"), names)
        elif language == "bash":
            for words in commands(text):
                app(words, exit_on_error=False, print_error=False, result_action="return_value")
                ran += 1
    assert ran
    assert list(tmp_path.glob("*/predictions.csv"))


def prepared(page: str, folder: Path) -> dict[str, Any]:
    """What the Python blocks of a page suppose to be there."""
    from unveil import NovelClassDiscovery

    X, truth = load_digits(return_X_y=True)
    X, truth = X[:300].astype(np.float32), truth[:300]
    y = np.where(truth < 6, truth, -1)
    names: dict[str, Any] = {"X": X, "y": y, "X_new": X[:10]}
    z, z_hat, queue_u, queue_l = torch.randn(4, 64, 16)
    names |= {"z": z, "z_hat": z_hat, "queue_u": queue_u, "queue_l": queue_l}
    if page in ("run-directory.md", "review.md"):
        names["model"] = NovelClassDiscovery(n_novel=4, rehearsals=0, random_state=0).fit(X, y)
        names["model"].save(folder / "runs" / "demo", X)
    return names


@pytest.mark.parametrize("page", ["README.md", "docs/own-data.md", "docs/run-directory.md", "docs/review.md"])
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = prepared(Path(page).name, tmp_path)
    texts = [text for language, text in blocks(ROOT / page) if language == "python"]
    assert texts
    for text in texts:
        exec(compile(text, page, "exec"), names)
