"""The paper's stages on people's own images: `discover KNOWN NEW --recipe` and `NovelClassDiscovery(recipe=…)`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from unveil import NovelClassDiscovery, files, recipe
from unveil.cli import own
from unveil.data.items import Items
from unveil.encoders.stored import square_images
from unveil.metrics import clustering_accuracy
from unveil.own.continue_run import continue_run
from unveil.own.predict_run import predict_run
from unveil.pages.report.page import write
from unveil.review.export import export
from unveil.runs.reader import load

TINY = """
extends = "images"
[encoder]
width = 8
[rotation]
epochs = 2
batch = 32
lr = 0.05
warmup = 0
[discovery]
epochs = 2
batch = 32
lr = 0.001
evaluate_every = 2
[method]
queue = 50
k_easy = 10
k_hard = 10
[machine]
cache_views = 1
workers = 0
"""
KNOWN, ALL, EACH = 5, 8, 16


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(TINY)
    return path


def digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """16 images of each of 0-7, in the order of the classes."""
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == label)[:EACH] for label in range(ALL)])
    return (X[rows].reshape(-1, 8, 8, 1) * 15.9).astype(np.uint8), y[rows]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits as PNG files: 0-4 in known/, 5-7 in new/."""
    root = tmp_path_factory.mktemp("pictures")
    for row, (image, label) in enumerate(zip(*digits(), strict=True)):
        folder = root / "known" / f"digit {label}" if label < KNOWN else root / "new"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[..., 0]).save(folder / f"{row:03d}.png")
    return root


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


def discover(pictures: Path, tiny: Path, out: Path, store: Path, n_novel: int | str, rehearsals: int) -> dict[str, Any]:
    own.discover(
        pictures / "known",
        pictures / "new",
        options=own.Discover(n_novel=n_novel, recipe=str(tiny), rehearsals=rehearsals, out=out, store=store),
    )
    record: dict[str, Any] = files.read_json(out / "record.json")
    return record


def name_cluster(run: Path, cluster: int, name: str) -> None:
    entry = {"number": 1, "time": "2026-01-01T00:00:00+00:00", "kind": "name"}
    entry["data"] = {"cluster": cluster, "text": name}  # type: ignore[assignment]
    (run / "review.jsonl").write_text(json.dumps(entry) + "\n")


def test_folders_with_the_number_given(
    pictures: Path, tiny: Path, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    record = discover(pictures, tiny, out, store, 3, rehearsals=0)
    printed = capsys.readouterr().out
    assert f"unveil export {out} --format folders" in printed
    assert "no rehearsals were asked for" in printed
    assert record["recipe"] == "tiny"
    assert {"rotation", "discovery"} <= record["seconds"].keys()
    assert record["known"] == [f"digit {label}" for label in range(KNOWN)]
    assert record["n_novel"] == 3
    run = load(out)
    assert len(run.ids) == ALL * EACH
    assert run.new.sum() == 3 * EACH
    assert Path(run.paths[0]).is_file()
    assert len(run.history) == 2

    # Everything that is done with a run.
    assert "digit 0" in write(out, with_map=False).read_text()
    folders = export(out, "folders", tmp_path / "sorted")
    assert len(list(folders.rglob("*.png"))) == 3 * EACH
    lines, skipped = predict_run(out, pictures / "new")
    assert skipped == []
    assert len(lines) == 3 * EACH
    named = min(range(KNOWN, ALL), key=lambda label: (run.labels == label).sum() or 1000)
    name_cluster(out, named, "mine")
    again = continue_run(out, out=tmp_path / "second", stages=store)
    assert again["known"][-1] == "mine"
    assert 1 <= again["n_novel"] <= 2
    assert (load(tmp_path / "second").labels == KNOWN)[run.labels == named].all()


def test_the_number_estimated_and_a_rehearsal(pictures: Path, tiny: Path, store: Path, tmp_path: Path) -> None:
    record = discover(pictures, tiny, tmp_path / "run", store, "auto", rehearsals=1)
    assert record["n_novel"] == record["estimate"]["number"] >= 1
    assert len(record["forecast"]["rehearsals"]) == 1
    assert 0 < record["forecast"]["low"] <= record["forecast"]["accuracy"] <= 1
    assert "from 1 rehearsal on hidden known classes" in record["summary"]["accuracy"]
    assert not (tmp_path / "run" / "work").exists()
    stages = [json.loads(path.read_text())["stage"] for path in store.glob("*/stage.json")]
    discover(pictures, tiny, tmp_path / "other", store, 2, rehearsals=0)
    again = [json.loads(path.read_text())["stage"] for path in store.glob("*/stage.json")]
    assert sorted(again) == sorted(stages)  # pre-training is found in the store


def test_the_estimator_trains_on_an_array_of_images(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = load_digits(return_X_y=True)
    y = y[:500]
    images = square_images(Items.of((X[:500].reshape(-1, 8, 8, 1) * 15.9).astype(np.uint8)), 32)[0]
    longer = tmp_path / "longer.toml"
    longer.write_text(f'extends = "{tiny}"\n[augment]\nshift = 1\nflip = false\n[rotation]\nepochs = 8\nbatch = 64\n')
    discovery = NovelClassDiscovery(n_novel=5, recipe=longer, rehearsals=0, random_state=0)
    discovery.fit(images, np.where(y < 5, y, -1))
    assert clustering_accuracy(y[y >= 5], discovery.labels_[y >= 5]) > 0.4  # far above chance after a few epochs
    assert (discovery.predict(images)[y < 5] == y[y < 5]).mean() > 0.7
    discovery.save(tmp_path / "saved")

    def refuse(*_: object) -> None:
        raise AssertionError("a recipe is read")

    monkeypatch.setattr(recipe, "_layers", refuse)  # the saved model carries its architecture
    again = NovelClassDiscovery.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.predict(images), discovery.predict(images))


def test_the_estimator_trains_on_gray_images_and_on_paths(tiny: Path, pictures: Path) -> None:
    images, y = digits()
    given = np.where(y < KNOWN, y, -1)
    options: dict[str, Any] = {"n_novel": 3, "recipe": str(tiny), "random_state": 0}
    gray = NovelClassDiscovery(**options, rehearsals=0).fit(images[..., 0], given)
    assert (gray.labels_[y < KNOWN] == y[y < KNOWN]).all()
    assert len(gray.predict(images[:5])) == 5
    paths = sorted(pictures.rglob("*.png"), key=lambda path: path.name)
    by_path = NovelClassDiscovery(**options, rehearsals=1).fit(paths, given)
    assert by_path.estimate_accuracy()["accuracy"] is not None
    assert len(by_path.predict(paths[:5])) == 5
    assert set(by_path.labels_[y >= KNOWN].tolist()) <= {5, 6, 7}
