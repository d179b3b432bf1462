"""An encoder trained from scratch on the images at hand."""

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_digits

from unveil import NovelClassDiscovery
from unveil.discovery import scratch
from unveil.metrics import clustering_accuracy


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text('extends = "cifar10-desk"\n[encoder]\nwidth = 8\n[rotation]\nepochs = 2\nwarmup = 0\n')
    monkeypatch.setattr(scratch, "RECIPE", str(path))


def test_trained_stored_used_and_saved(tiny: None, tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    images = np.repeat((X.reshape(-1, 8, 8, 1) * 15.9).astype(np.uint8), 3, axis=3)
    given = np.where(y < 5, y, -1)
    options = {"n_novel": 5, "encoder": "compact", "steps": 60, "rehearsals": 0, "random_state": 0}
    found = NovelClassDiscovery(**options, store=tmp_path / "store").fit(images, given)  # type: ignore[arg-type]
    assert clustering_accuracy(y[y >= 5], found.labels_[y >= 5]) > 0.4  # far above chance after two epochs
    assert (found.predict(images)[y < 5] == y[y < 5]).mean() > 0.7
    found.save(tmp_path / "saved")
    again = NovelClassDiscovery.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.predict(images), found.predict(images))
    stages = len(list((tmp_path / "store").iterdir()))
    source = scratch.train_scratch(
        scratch.images_of(images), given, store=tmp_path / "store", device="auto", seed=0, console=Console(quiet=True)
    )
    assert len(list((tmp_path / "store").iterdir())) == stages  # reused
    assert source(images, Console(quiet=True)).shape[0] == 500
