"""Label new items by a finished run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blobs import blobs
from PIL import Image
from rich.console import Console

from unveil import NovelClassDiscovery
from unveil.errors import UnveilError
from unveil.own.predict_run import predict_run
from unveil.own.run import run_own_data

QUICK = {"data.n_novel": 3, "rehearsals": 0, "discovery.steps": 100}


@pytest.fixture(scope="module")
def run(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    options: dict[str, Any] = {"changes": QUICK, "encoder": "pixels"}
    run_own_data(*folders, out=out, stages=out / ".stages", console=Console(quiet=True), **options)
    return out


def say(run: Path, *actions: tuple[str, dict[str, object]]) -> None:
    """Write the log of a review."""
    lines = [
        json.dumps({"number": number, "time": "", "kind": kind, "data": data}) + "\n"
        for number, (kind, data) in enumerate(actions, start=1)
    ]
    (run / "review.jsonl").write_text("".join(lines))


FOX = ("name", {"cluster": 2, "text": "fox"}), ("merge", {"clusters": [2, 3]}), ("known", {"cluster": 4, "class": 1})


def test_names_of_the_review_reach_predict(tmp_path: Path) -> None:
    x, y = blobs(5, 30)
    np.savez(tmp_path / "known.npz", X=x[y < 2], y=y[y < 2])
    np.save(tmp_path / "new.npy", x[y >= 2])
    options: dict[str, Any] = {"changes": {"data.n_novel": 3, "rehearsals": 0}, "console": Console(quiet=True)}
    run_own_data(tmp_path / "known.npz", tmp_path / "new.npy", out=tmp_path / "run", stages=tmp_path / "s", **options)
    say(tmp_path / "run", *FOX)
    lines, _ = predict_run(tmp_path / "run", tmp_path / "new.npy", console=Console(quiet=True))
    assert {(label, kind) for _, label, kind, _ in lines} == {("fox", "novel"), ("1", "known")}
    assert sum(label == "fox" for _, label, _, _ in lines) == 60
    loaded = NovelClassDiscovery.load(tmp_path / "run")
    assert loaded.predict(x[y >= 2]).tolist() == [label for _, label, _, _ in lines]
    assert loaded.classes_.tolist() == ["0", "1", "fox"]


def test_names_of_the_review_reach_the_estimator(tmp_path: Path) -> None:
    x, y = blobs(5, 30)
    fitted = NovelClassDiscovery(n_novel=3, rehearsals=0, random_state=0).fit(x, np.where(y < 2, y, -1))
    fitted.save(tmp_path / "run", x)
    numbers, p = fitted.predict(x), fitted.predict_proba(x)
    say(tmp_path / "run", *FOX)
    loaded = NovelClassDiscovery.load(tmp_path / "run")
    assert loaded.classes_.tolist() == [0, 1, "fox"]
    names = {0: 0, 1: 1, 2: "fox", 3: "fox", 4: 1}  # known labels as given; the last cluster is the known class 1
    assert loaded.predict(x).tolist() == [names[number] for number in numbers.tolist()]
    assert loaded.labels_.tolist() == [names[number] for number in fitted.labels_.tolist()]
    merged = np.stack([p[:, 0], p[:, 1] + p[:, 4], p[:, 2] + p[:, 3]], axis=1)
    np.testing.assert_allclose(loaded.predict_proba(x), merged, atol=1e-6)
    assert loaded.novel_clusters_.tolist() == ["fox"]
    info = loaded.get_class_info()
    assert info["kind"].tolist() == ["known", "known", "novel"]
    assert info["size"].tolist() == [30, 60, 60]
    update = loaded.partial_update(x[y >= 2])
    assert set(update.labels.tolist()) <= {1, "fox", -1}
    assert set(update.kinds.tolist()) <= {"known", "novel", "neither"}


def test_predict(run: Path, folders: tuple[Path, Path], tmp_path: Path) -> None:
    lines, skipped = predict_run(run, folders[1])
    assert skipped == ["broken.png"]
    assert np.mean([kind == "novel" for _, _, kind, _ in lines]) > 0.8
    lines, _ = predict_run(run, folders[0], coverage=1.0)
    right = [Path(name).parts[0] == label for name, label, _, _ in lines]
    assert np.mean(right) > 0.8
    strange = tmp_path / "strange"
    strange.mkdir()
    for i in range(5):
        noise = np.random.default_rng(i).integers(0, 256, (20, 20, 3), dtype=np.uint8)
        Image.fromarray(noise).save(strange / f"{i}.png")
    lines, _ = predict_run(run, strange, coverage=0.9)
    assert {label for _, label, _, _ in lines} == {"neither"}
    np.save(tmp_path / "v.npy", np.ones((3, 4), dtype=np.float32))
    with pytest.raises(UnveilError, match="give images"):
        predict_run(run, tmp_path / "v.npy")


def test_embeddings_are_kept_where_asked(folders: tuple[Path, Path], tmp_path: Path, means: list[int]) -> None:
    options: dict[str, Any] = {"changes": QUICK, "encoder": "timm:means"}
    run_own_data(*folders, out=tmp_path / "run", stages=tmp_path / "a", console=Console(quiet=True), **options)
    before = sum(means)
    predict_run(tmp_path / "run", folders[1], embeddings=tmp_path / "b")
    assert (count := sum(means) - before) > 0
    assert len(list((tmp_path / "b").rglob("embeddings.npy"))) == 1
    predict_run(tmp_path / "run", folders[1], embeddings=tmp_path / "b")
    assert sum(means) - before == count  # taken from there
    predict_run(tmp_path / "run", folders[1])
    assert sum(means) - before == 2 * count  # nowhere kept


def test_the_command_uses_the_store_it_is_given(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from unveil.cli import large

    given: list[Path | None] = []

    def noted(
        run: Path, inputs: Path, *, coverage: float | None, embeddings: Path | None
    ) -> tuple[list[Any], list[str]]:
        given.append(embeddings)
        return [], []

    monkeypatch.setattr("unveil.own.predict_run.predict_run", noted)
    monkeypatch.setenv("UNVEIL_STORE", str(tmp_path / "usual"))
    large.predict(run, tmp_path, store=tmp_path / "mine")
    large.predict(run, tmp_path)
    assert given == [tmp_path / "mine", tmp_path / "usual"]


def test_a_table_for_a_run_on_arrays_keeps_columns_that_are_constant(tmp_path: Path) -> None:
    x, y = blobs(6, 30)
    np.savez(tmp_path / "known.npz", X=x[y < 4], y=y[y < 4])
    np.savez(tmp_path / "new.npz", X=x[y >= 4])
    options: dict[str, Any] = {"changes": {"data.n_novel": 2, "rehearsals": 0}, "console": Console(quiet=True)}
    run_own_data(tmp_path / "known.npz", tmp_path / "new.npz", out=tmp_path / "run", stages=tmp_path / "s", **options)
    rows = x[y >= 4].copy()
    rows[:, 3] = 0.5
    head, lines = ",".join(f"c{place}" for place in range(rows.shape[1])), [",".join(map(str, row)) for row in rows]
    (tmp_path / "more.csv").write_text("\n".join([head, *lines]))
    (tmp_path / "narrow.csv").write_text("\n".join(line.rpartition(",")[0] for line in [head, *lines]))
    quiet = Console(quiet=True)
    assert len(predict_run(tmp_path / "run", tmp_path / "more.csv", console=quiet)[0]) == len(rows)
    with pytest.raises(UnveilError, match=r"vectors of 8 numbers, and .* holds vectors of 7: give the same columns"):
        predict_run(tmp_path / "run", tmp_path / "narrow.csv", console=quiet)
