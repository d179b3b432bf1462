"""Shared fixtures: a tiny recipe on real data, and the command line as people call it."""

import contextlib
import io
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; read when numpy and torch are imported

import hypothesis
import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

if TYPE_CHECKING:
    from browsing import Browser

hypothesis.settings.register_profile("unveil", deadline=None)  # no test may depend on how busy the machine is
hypothesis.settings.load_profile("unveil")

TINY = [
    "data.per_class=24",
    "augment.shift=1",
    "augment.noise=0.0",
    "augment.first_view=random",
    "augment.pretraining=true",
    "encoder.name=compact",
    "encoder.width=8",
    "encoder.space_to_depth=1",
    "encoder.strides=[1, 2, 2, 1]",
    "rotation.epochs=2",
    "rotation.batch=32",
    "rotation.rotations=one",
    "rotation.known_weight=1.0",
    "supervised.epochs=0",
    "method.k1_fraction=0.5",
    "discovery.lr=0.02",
    "discovery.epochs=5",
    "discovery.batch=32",
    "method.queue=50",
    "method.k_easy=10",
    "method.k_hard=10",
]
"""Overrides of the digits recipe that make a whole run a matter of seconds."""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)  # tests run side by side


@pytest.fixture
def unveil(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call the command line with a store of its own, as its entry point is called: in this process, which has imported
    torch already, or with `process=True` or options of `subprocess.run` in one of its own."""
    chosen = {"UNVEIL_STORE": str(tmp_path / "store"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}

    def call(*args: str, process: bool = False, **options: object) -> subprocess.CompletedProcess[str]:
        if not process and not options:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(tmp_path)
                patch.setattr(sys, "argv", ["unveil", *args])
                for name, value in chosen.items():
                    patch.setenv(name, value)
                return called_here(args)
        return subprocess.run(
            [sys.executable, "-m", "unveil", *args],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **chosen},
            timeout=300,
            **options,  # type: ignore[call-overload]
        )

    return call


def called_here(args: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Call the entry point of the command line. An error that it does not catch is a traceback and the exit code 1."""
    from unveil.cli.main import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception:
            traceback.print_exc()
            code = 1
    return subprocess.CompletedProcess(args, code, out.getvalue(), err.getvalue())


def overwrite(path: Path, content: bytes) -> None:
    """Change a file in its place: one that is made anew a thousand times waits for the disk."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


@pytest.fixture
def tiny() -> list[str]:
    """`--set` arguments of the tiny recipe."""
    return [argument for override in TINY for argument in ("--set", override)]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Digits as pictures of many kinds: 0-4 known, 5-7 new, one file broken."""
    root = tmp_path_factory.mktemp("pictures")
    X, y = load_digits(return_X_y=True)
    modes = ["L", "RGB", "RGBA", "P", "1", "I;16"]
    kinds = ["png", "jpg", "webp", "bmp", "tiff"]
    for row in range(600):
        label = int(y[row])
        if label > 7:
            continue
        picture = Image.fromarray((X[row].reshape(8, 8) * 15.9).astype(np.uint8)).resize((16 + row % 9, 20))
        folder = root / "known" / f"class {label}" if label < 5 else root / "new" / f"batch{row % 3}" / "deep"
        folder.mkdir(parents=True, exist_ok=True)
        kind, mode = kinds[row % 5], modes[row % 6] if row % 5 == 0 else "L"
        if mode == "I;16":
            picture = Image.fromarray(np.asarray(picture).astype(np.uint16) * 257)
        else:
            picture = picture.convert(mode)
        picture.save(folder / f"{row:04d}.{kind}")
    (root / "new" / "broken.png").write_bytes(b"no picture")
    (root / "new" / "notes.txt").write_text("not an image")
    return root / "known", root / "new"


@pytest.fixture
def means(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An encoder `timm:means` that gives a picture shrunk to 4x4, and how many pictures it has seen."""
    from unveil.encoders import preparation
    from unveil.encoders import stored as embedding
    from unveil.encoders.pretrained import Pretrained

    seen: list[int] = []

    def features(x: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return torch.nn.functional.adaptive_avg_pool2d(x, 4).flatten(1)

    made = Pretrained("timm:means", torch.nn.Identity(), features, (0.5,) * 3, (0.25,) * 3)
    monkeypatch.setattr(embedding, "pretrained", lambda name, device: made)
    monkeypatch.setattr(preparation.pretrained, "pretrained", lambda name, device: made)
    return seen


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Browser]":
    """One browser for all tests of pages."""
    from browsing import CHROMIUM, DRIVER, Browser
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    if not (CHROMIUM and DRIVER):
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    quiet = ["background-networking", "component-update", "sync", "gpu", "dev-shm-usage"]
    arguments = ["--headless=new", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    for argument in [*arguments, "--window-size=1280,900", f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield Browser(driver)
    driver.quit()
