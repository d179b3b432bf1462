"""Whole runs on tiny real data: what the run directory holds, what is reused, and what is refused."""

import csv
import errno
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY
from PIL import Image
from rich.console import Console
from safetensors import safe_open
from sklearn.datasets import load_digits

from unveil import files, recipe
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.own.directories import check_request
from unveil.own.run import run_recipe
from unveil.runs.reader import check_files, load
from unveil.storage import LOCK
from unveil.training import checkpoint

FILES = {
    *("config.toml", "metrics.jsonl", "model.safetensors", "predictions.csv", "features.npy", "record.json"),
    *("items.csv", "rows.npz", "pictures.npy", "truth.csv", "predictor.safetensors"),
}
VECTORS = ["data.known=2", "encoder.name=mlp", "rotation.epochs=0", "augment.noise=0.5"]
FOLDER = ["data.known=2", "augment.size=16", "encoder.space_to_depth=2", "discovery.epochs=2", "rotation.epochs=1"]


def go(folder: Path, *overrides: str, name: str = "run", resume: bool = False) -> dict[str, Any]:
    settings = recipe.load("digits", recipe.parse_set(overrides), defaults=recipe.parse_set(TINY))
    return run_recipe(settings, out=folder / name, stages=folder / "store", resume=resume, console=Console(quiet=True))


def refused(folder: Path, *overrides: str, **kwargs: Any) -> str:
    """The message of a run that is refused, of which nothing may be left behind or changed."""
    before = content(folder)
    with pytest.raises(UnveilError) as caught:
        go(folder, *overrides, **kwargs)
    assert content(folder) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def predictions(folder: Path) -> list[dict[str, str]]:
    with (folder / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{**row, "cluster": row["label"].removeprefix("novel-")} for row in rows]


def new_features(folder: Path) -> np.ndarray:
    """Those of the items in predictions.csv."""
    run = load(folder)
    return np.array(run.features[run.new])


def stages(folder: Path) -> Counter[str]:
    """How many trainings of each stage are in the store."""
    return Counter(json.loads(path.read_text())["stage"] for path in (folder / "store").glob("*/stage.json"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A finished run, which tests may read but not change."""
    folder = tmp_path_factory.mktemp("done")
    return folder, go(folder, "supervised.epochs=1")


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """Five well separated classes of vectors, with a test split."""
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 20)
    X = (8 * generator.normal(size=(5, 6))[y] + generator.normal(size=(100, 6))).astype(np.float32)
    path = tmp_path / "vectors.npz"
    np.savez(path, X=X[::2], y=y[::2], X_test=X[1::2], y_test=y[1::2])
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Digits as PNG files, a folder for each class."""
    images, labels = load_digits(return_X_y=True)
    for digit in range(4):
        (tmp_path / "pictures" / str(digit)).mkdir(parents=True)
        for index, pixels in enumerate(images[labels == digit][:6]):
            picture = Image.fromarray((pixels.reshape(8, 8) * 15).astype(np.uint8)).resize((20, 24))
            picture.save(tmp_path / "pictures" / str(digit) / f"{index}.png")
    return tmp_path / "pictures"


def test_a_run_directory_holds_what_it_promises(done: tuple[Path, dict[str, Any]]) -> None:
    folder, record = done[0] / "run", done[1]
    assert {path.name for path in folder.iterdir()} - {LOCK} == FILES
    settings = recipe.load("digits", recipe.parse_set([*TINY, "supervised.epochs=1"]))
    assert recipe.read(folder / "config.toml") == settings
    assert recipe.load(str(folder / "config.toml")) == settings  # a run can be run again from its own directory
    assert record["known"] == ["0", "1", "2", "3", "4"]
    assert record["novel"] == [f"novel-{i}" for i in range(5)]
    assert {"unveil", "commit", "python", "torch", "processor", "cores", "device"} <= record["environment"].keys()
    assert files.read_json(folder / "record.json") == record


def test_the_record_says_what_was_run_and_what_came_out(done: tuple[Path, dict[str, Any]]) -> None:
    folder, record = done
    assert (record["recipe"], record["method"], record["seed"]) == ("digits", "ncl-hng", 0)
    assert record["config"] == recipe.to_table(recipe.read(folder / "run" / "config.toml"))
    assert {"rotation", "supervised", "discovery"} <= record["seconds"].keys()
    assert {"acc", "nmi", "ari"} <= record["kmeans"].keys()
    scores = {"acc", "nmi", "ari", "test_acc", "test_nmi", "test_ari", "known_acc"}
    why = {"neighbor_purity", "pair_precision", "pair_density", "mean_cosine", "clusters_used", "cluster_sizes"}
    assert scores | why <= record["metrics"].keys()
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3, 4]
    assert "acc" not in rows[0]  # evaluate_every = 5
    assert {**record["metrics"], "seconds": rows[-1]["seconds"]} == rows[-1]
    assert "ncl" not in rows[0]
    assert rows[1]["ncl"] > 0


def test_predictions_features_and_weights_agree(done: tuple[Path, dict[str, Any]]) -> None:
    folder, record = done[0] / "run", done[1]
    rows, features = predictions(folder), new_features(folder)
    assert list(rows[0]) == ["id", "label", "kind", "confidence", "cluster"]
    assert len(rows) == len(features) == 5 * 24
    assert len({row["id"] for row in rows}) == len(rows)
    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        head, bias = weights.get_tensor("novel_head.weight"), weights.get_tensor("novel_head.bias")
    p = (torch.from_numpy(features) @ head.T + bias).softmax(dim=1)
    clusters = [int(row["cluster"]) for row in rows]
    assert clusters == p.argmax(dim=1).tolist()
    assert [float(row["confidence"]) for row in rows] == pytest.approx(p.amax(dim=1).tolist(), abs=1e-5)
    assert np.bincount(clusters, minlength=5).tolist() == record["metrics"]["cluster_sizes"]


def test_the_score_is_that_of_the_predictions_by_id(tmp_path: Path, pictures: Path) -> None:
    record = go(tmp_path, f"data.name={pictures}", *FOLDER, "machine.workers=0")
    rows = predictions(tmp_path / "run")
    truth = [row["id"].split("/")[0] for row in rows]  # the ids of a folder begin with the class
    assert sorted(set(truth)) == ["2", "3"]
    accuracy = clustering_accuracy(np.array(truth, dtype=int), np.array([int(row["cluster"]) for row in rows]))
    assert accuracy == pytest.approx(record["metrics"]["acc"])


def test_another_method_reuses_the_kmeans_of_its_seed(tmp_path: Path) -> None:
    go(tmp_path, "discovery.novel_head=kmeans", "discovery.epochs=1", name="a")
    stored = content(tmp_path / "store")
    assert sum(path.endswith("labels.npy") for path in stored) == 2  # on pixels and on features
    go(tmp_path, "discovery.novel_head=kmeans", "discovery.epochs=1", "discovery.method=baseline", name="b")
    assert content(tmp_path / "store") == stored


def test_the_novel_head_may_start_from_clusters_of_the_neighbor_graph(tmp_path: Path) -> None:
    start, plain = (
        ["discovery.novel_head=neighbors", "discovery.lr=1e-9", "discovery.epochs=1"],
        [*VECTORS[1:], "encoder.width=128", "data.per_class=100"],
    )
    consensus = go(tmp_path, *plain, "discovery.method=neighbor-consensus", name="consensus")
    started = go(tmp_path, *plain, *start, name="started")
    kmeans = go(tmp_path, *plain, "discovery.novel_head=kmeans", *start[1:], name="kmeans")
    accuracies = [record["metrics"]["acc"] for record in (consensus, started, kmeans)]
    assert accuracies[0] > accuracies[2] + 0.02  # without training each keeps the accuracy of its start
    assert abs(accuracies[1] - accuracies[0]) < abs(accuracies[1] - accuracies[2])
    stored = content(tmp_path / "store")
    go(tmp_path, *plain, *start, "discovery.method=baseline", name="again")
    assert content(tmp_path / "store") == stored


def test_another_seed_reuses_the_stored_training(tmp_path: Path) -> None:
    first = go(tmp_path, "supervised.epochs=1", name="a")
    stored = content(tmp_path / "store")
    second = go(tmp_path, "supervised.epochs=1", "seed=1", name="b")
    assert stages(tmp_path) == {"rotation": 1, "supervised": 1}
    now = content(tmp_path / "store")
    assert {path: now[path] for path in stored} == stored
    assert {Path(path).name for path in now.keys() - stored.keys()} <= {
        *("labels.npy", "labels.npy.sum", LOCK)  # its own k-means
    }
    assert all(first["seconds"][stage] == second["seconds"][stage] for stage in ("rotation", "supervised"))
    assert (tmp_path / "a" / "predictions.csv").read_bytes() != (tmp_path / "b" / "predictions.csv").read_bytes()


def test_what_a_stage_depends_on_makes_a_new_one_and_what_comes_later_does_not(tmp_path: Path) -> None:
    quick = ["supervised.epochs=1", "rotation.epochs=1", "discovery.epochs=0"]
    go(tmp_path, *quick, name="a")
    go(tmp_path, *quick, "method.alpha=0.3", "machine.cache_views=1", "rotation.evaluate_every=1", name="b")
    assert stages(tmp_path) == {"rotation": 1, "supervised": 1}
    go(tmp_path, *quick, "supervised.lr=0.01", name="c")
    assert stages(tmp_path) == {"rotation": 1, "supervised": 2}
    go(tmp_path, *quick, "rotation.lr=0.01", name="d")
    assert stages(tmp_path) == {"rotation": 2, "supervised": 3}


def test_the_same_seed_twice_gives_the_same_bytes(tmp_path: Path, done: tuple[Path, dict[str, Any]]) -> None:
    go(tmp_path, "supervised.epochs=1")  # trained anew, in a store of its own
    for name in ("predictions.csv", "features.npy", "model.safetensors", "items.csv", "config.toml"):
        assert (tmp_path / "run" / name).read_bytes() == (done[0] / "run" / name).read_bytes()


def test_an_existing_run_is_never_written_over(done: tuple[Path, dict[str, Any]]) -> None:
    folder, record = done
    assert "add --resume" in refused(folder, "supervised.epochs=1")
    other = refused(folder, "supervised.epochs=1", "method.alpha=0.3", resume=True)
    assert "other settings (method.alpha is 0.2 there and 0.3 here)" in other
    assert "seed is 0 there and 1 here" in refused(folder, "supervised.epochs=1", "seed=1", resume=True)
    before = content(folder)
    assert go(folder, "supervised.epochs=1", "machine.workers=0", resume=True) == record  # machines may differ
    assert content(folder) == before


def test_what_a_process_has_left_that_was_killed_at_its_first_write_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".config.toml.{2**22 + 1}.part").write_text("name = ")  # no process has that number
    (tmp_path / "run" / ".lock").touch()
    go(tmp_path, "rotation.epochs=0", "discovery.epochs=0")
    assert not list((tmp_path / "run").glob(".*.part"))


def test_what_is_no_run_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("years of work")
    assert "not empty and not a run directory" in refused(tmp_path)
    (tmp_path / "run" / "config.toml").write_text("[data")
    assert "not valid TOML" in refused(tmp_path)
    (tmp_path / "file").write_text("mine")
    assert "is a file, expected a directory" in refused(tmp_path, name="file")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["data.known=11"], "data.known asks for 11 classes, there are 10"),
        (["data.known=10"], "10 known and 0 novel classes of 10 in digits"),
        (['data.known=["0"]', 'data.novel=["0", "1"]'], "both known and novel"),
        (['data.known=["zero"]'], "'zero', which is no class"),
        (["data.mean=[0.1, 0.2]"], "data.mean has 2 values for images of 1 channel(s)"),
        (["data.name=digitz"], "did you mean digits?"),
        (["data.name=no/such.npz"], "no file or folder no/such.npz"),
        (["discovery.method=ncl-hgn"], "discovery.method is 'ncl-hgn'; did you mean 'ncl-hng'?"),
        (["encoder.space_to_depth=3"], "images of 8x8 do not divide into squares of 3"),
        (["encoder.weights=gone.safetensors"], "no file at gone.safetensors"),
        (["machine.device=quantum"], "the device is 'quantum'"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(tmp_path: Path, overrides: list[str], said: str) -> None:
    assert said in refused(tmp_path, *overrides)
    assert not content(tmp_path)


def test_vectors_need_the_right_recipe(tmp_path: Path, vectors: Path) -> None:
    assert "vectors cannot be rotated" in refused(tmp_path, f"data.name={vectors}", "data.known=2", "encoder.name=mlp")
    assert "takes images, not vectors: set encoder.name=mlp" in refused(
        tmp_path, f"data.name={vectors}", "data.known=2", "rotation.epochs=0"
    )


@pytest.mark.parametrize("damage", ["nan", "inf", "shape", "length", "truncated", "empty class"])
def test_bad_arrays_are_refused_by_name(tmp_path: Path, vectors: Path, damage: str) -> None:
    with np.load(vectors) as file:
        X, y = file["X"], file["y"]
    match damage:
        case "nan" | "inf":
            X[3, 1] = float(damage)
        case "shape":
            X = X.reshape(-1, 2, 3)
        case "length":
            y = y[:-1]
    np.savez(vectors, X=X, y=y)
    if damage == "truncated":
        vectors.write_bytes(vectors.read_bytes()[:-200])
    said = {
        "nan": "row 3 (counted from 0) is not finite, or too large to compute with: column 1 is nan",
        "inf": "row 3 (counted from 0) is not finite, or too large to compute with: column 1 is inf",
        "shape": "(50, 2, 3); expected vectors (n, features)",
        "length": "50 items but 49 labels",
        "truncated": "cannot be read",
        "empty class": "names '9', which is no class",
    }[damage]
    extra = ['data.novel=["9"]'] if damage == "empty class" else []
    message = refused(tmp_path, f"data.name={vectors}", *VECTORS, *extra)
    assert said in message
    assert damage == "empty class" or str(vectors) in message


@pytest.mark.parametrize(
    "overrides",
    [
        ["discovery.method=baseline", "method.pairs=cosine", "discovery.novel_head=random"],
        ["discovery.method=ncl", "method.pairs=calibrated", "discovery.novel_head=kmeans"],
        ["discovery.method=ncl-hng", "method.pairs=ranking", "discovery.novel_head=random"],
        ["discovery.method=ncl-hng", "method.pairs=rank", "machine.cache_views=2"],
        ["discovery.method=ncl-hng", "method.view_among_neighbors=true", "method.consistency_rows=all"],
        ["discovery.labeled_per_batch=10", "method.queue_labeled=33"],
        ["data.novel=1"],
        ["data.novel=1", "data.known=1", "data.per_class=1"],
        ["discovery.batch=5000", "rotation.batch=5000"],
        ["discovery.batch=1", "discovery.epochs=2", "data.per_class=3"],
        ["rotation.epochs=0", "supervised.epochs=1", "supervised.train=all"],
        ["rotation.epochs=0", "machine.cache_views=1"],
        ["rotation.rotations=all", "rotation.known_weight=0.0", "augment.flip=true"],
    ],
)
def test_every_kind_of_run_comes_to_an_end_with_sound_results(tmp_path: Path, overrides: list[str]) -> None:
    record = go(tmp_path, "rotation.epochs=1", "discovery.epochs=4", *overrides)
    rows, features = predictions(tmp_path / "run"), new_features(tmp_path / "run")
    novel = len(record["novel"])
    assert len(rows) == len(features) == sum(record["metrics"]["cluster_sizes"])
    assert all(0 <= int(row["cluster"]) < novel for row in rows)
    assert all(1 / novel - 1e-5 <= float(row["confidence"]) <= 1 for row in rows)
    assert np.isfinite(features).all()
    assert 1 / novel <= record["metrics"]["acc"] <= 1
    assert ("ncl" in record["metrics"]) == (record["method"] != "baseline")
    assert ("cache" in record["seconds"]) == ("machine.cache_views=" in " ".join(overrides))


def test_no_discovery_epochs_leave_the_head_that_k_means_made(tmp_path: Path) -> None:
    record = go(tmp_path, "discovery.epochs=0")
    assert record["metrics"] == {}
    clusters = np.array([int(row["cluster"]) for row in predictions(tmp_path / "run")])
    assert len(np.unique(clusters)) == 5
    assert record["seconds"]["discovery"] == 0


@pytest.mark.parametrize(("share", "kind"), [(1.0, "float"), (0.75, "uint8"), (0.6, "uint8"), (0.01, None)])
def test_a_budget_chooses_the_cache(tmp_path: Path, share: float, kind: str | None) -> None:
    go(tmp_path / "full", "rotation.epochs=0", "machine.cache_views=3", "discovery.epochs=0")
    full = sum(path.stat().st_size for path in (tmp_path / "full" / "store").glob("*/views.bin"))
    gigabytes = share * full / 1e9
    quick = ["rotation.epochs=0", "machine.cache_views=3", f"machine.cache_gb={gigabytes}", "discovery.epochs=1"]
    record = go(tmp_path, *quick, name="a")
    layouts = [json.loads(path.read_text()) for path in (tmp_path / "store").glob("*/layout.json")]
    if kind is None:
        assert not layouts
        assert "the result differs" in record["warnings"][0]
        assert "cache" not in record["seconds"]
        return
    assert len(layouts) == 2  # training and test items
    training = max(layouts, key=lambda layout: layout["views"])
    assert kind in training["dtype"]
    assert 2 <= training["views"] <= 3
    stored = sum(path.stat().st_size for path in (tmp_path / "store").glob("*/views.bin"))
    assert stored <= share * full
    assert (training["views"] == 2) == (share == 0.6)


def test_a_cache_of_one_trunk_is_not_taken_for_another(tmp_path: Path) -> None:
    quick = ["rotation.epochs=0", "machine.cache_views=1", "discovery.epochs=0"]
    go(tmp_path, *quick, name="a")
    caches = sorted((tmp_path / "store").glob("*/layout.json"))
    assert len(caches) == 2  # training and test items
    go(tmp_path, *quick, "seed=1", name="b")
    assert sorted((tmp_path / "store").glob("*/layout.json")) == caches
    go(tmp_path, *quick, "supervised.seed=1", name="c")  # another random trunk
    assert len(list((tmp_path / "store").glob("*/layout.json"))) == 4
    go(tmp_path, *quick, "data.mean=[0.5]", name="d")
    assert len(list((tmp_path / "store").glob("*/layout.json"))) == 6


def test_other_scaling_gets_its_own_cache(tmp_path: Path, vectors: Path) -> None:
    quick = [f"data.name={vectors}", *VECTORS, "encoder.name=tail", "machine.cache_views=1", "discovery.epochs=0"]
    go(tmp_path, *quick, name="a")
    caches = set((tmp_path / "store").glob("*/layout.json"))
    record = go(tmp_path, *quick, "data.scaling=common", name="b")
    assert len(set((tmp_path / "store").glob("*/layout.json")) - caches) == len(caches)
    assert record["cache"]["views"] == 1


def test_other_test_items_get_their_own_cache(tmp_path: Path, vectors: Path) -> None:
    quick = [f"data.name={vectors}", *VECTORS, "machine.cache_views=1", "discovery.epochs=0"]
    go(tmp_path, *quick, name="a")
    caches = set((tmp_path / "store").glob("*/layout.json"))
    with np.load(vectors) as file:
        np.savez(vectors, X=file["X"], y=file["y"], X_test=file["X_test"] + 1, y_test=file["y_test"])
    go(tmp_path, *quick, name="b")
    assert len(set((tmp_path / "store").glob("*/layout.json")) - caches) == 1


@pytest.mark.parametrize("cache", [0, 2])
def test_vectors_are_discovered(tmp_path: Path, vectors: Path, cache: int) -> None:
    overrides = [
        *("supervised.epochs=2", "supervised.batch=19"),  # of 20 rows: the last batch has one
        *("supervised.lr=0.01", "encoder.width=64", f"machine.cache_views={cache}"),
    ]
    record = go(tmp_path, f"data.name={vectors}", *VECTORS, *overrides)
    assert record["metrics"]["acc"] > 0.9
    assert len(predictions(tmp_path / "run")) == 30
    assert {"test_acc", "known_acc"} <= record["metrics"].keys()


def test_a_test_split_without_items_of_the_task_is_no_obstacle(tmp_path: Path, vectors: Path) -> None:
    with np.load(vectors) as file:
        last = file["y_test"] == 4
        np.savez(vectors, X=file["X"], y=file["y"], X_test=file["X_test"][last], y_test=file["y_test"][last])
    record = go(tmp_path, f"data.name={vectors}", *VECTORS, "data.novel=2", "machine.cache_views=1")
    assert "test_acc" not in record["metrics"]
    assert record["metrics"]["acc"] > 0.5


def test_image_files_give_the_same_with_and_without_workers(tmp_path: Path, pictures: Path) -> None:
    for workers in (0, 2):
        go(tmp_path, f"data.name={pictures}", *FOLDER, f"machine.workers={workers}", name=f"workers{workers}")
        (tmp_path / "store").rename(tmp_path / f"store{workers}")
    assert len(predictions(tmp_path / "workers0")) == 12
    assert (tmp_path / "workers0" / "features.npy").read_bytes() == (
        tmp_path / "workers2" / "features.npy"
    ).read_bytes()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_truncated_image_is_named(tmp_path: Path, pictures: Path, workers: int) -> None:
    bad = pictures / "3" / "5.png"
    bad.write_bytes(bad.read_bytes()[:60])
    with pytest.raises(UnveilError, match="cannot read the image") as caught:
        go(tmp_path, f"data.name={pictures}", *FOLDER, f"machine.workers={workers}")
    assert str(bad) in str(caught.value)


def test_image_files_need_a_size_and_an_empty_class_is_named(tmp_path: Path, pictures: Path) -> None:
    assert "augment.size" in refused(tmp_path, f"data.name={pictures}", "data.known=2")
    (pictures / "empty").mkdir()
    assert "empty holds no images" in refused(tmp_path, f"data.name={pictures}", *FOLDER)


@pytest.mark.parametrize(("what", "times"), [("stage.json", 1), ("metrics.jsonl", 2), ("predictions.csv", 1)])
def test_a_full_disk_stops_a_run_that_then_resumes_to_the_same_end(
    tmp_path: Path, done: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, what: str, times: int
) -> None:
    original, written = Path.write_bytes, Counter[str]()

    def full(path: Path, data: bytes) -> int:
        written[what] += what in path.name
        if what in path.name and written[what] == times:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UnveilError, match=f"the disk is full: .*{what}"):
        go(tmp_path, "supervised.epochs=1")
    monkeypatch.undo()
    assert not list(tmp_path.rglob("*.part"))
    go(tmp_path, "supervised.epochs=1", resume=True)
    assert (tmp_path / "run" / "predictions.csv").read_bytes() == (done[0] / "run" / "predictions.csv").read_bytes()


@pytest.mark.parametrize(("module", "name"), [(files, "write_json"), (checkpoint, "save_model")])
def test_a_crash_between_the_files_of_a_stage_leaves_none_that_looks_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    original = getattr(module, name)

    def crash(path: Path, value: Any) -> None:
        if "store" in path.parts:
            raise RuntimeError("power failure")
        original(path, value)

    monkeypatch.setattr(module, name, crash)
    with pytest.raises(RuntimeError, match="power failure"):
        go(tmp_path)
    monkeypatch.undo()
    assert go(tmp_path, resume=True)["metrics"]
    assert stages(tmp_path) == {"rotation": 1}


STORED = ["rotation.epochs=1", "supervised.epochs=1", "machine.cache_views=1", "discovery.epochs=1"]
PATTERNS = ["*/model.safetensors", "*/labels.npy", "*/views.bin", "*/layout.json", "*/stage.json"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    go(folder, *STORED, name="a")
    return folder


@pytest.mark.parametrize("how", ["bit", "truncated", "empty"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_damaged_files_of_the_store_are_told_and_made_again(
    tmp_path: Path, stored: Path, pattern: str, how: str
) -> None:
    shutil.copytree(stored / "store", tmp_path / "store")
    found = sorted((tmp_path / "store").glob(pattern))
    assert found
    for path in found:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes({"bit": content, "truncated": content[:-3], "empty": b""}[how])
    record = go(tmp_path, *STORED, name="b")
    warned = " ".join(record["warnings"])
    assert all(str(path) in warned for path in found)
    assert same_results(tmp_path / "b", stored / "a")
    aside = list((tmp_path / "store").glob(f"{pattern}.damaged"))
    assert len(aside) == (len(found) if pattern not in ("*/views.bin", "*/layout.json") else 0)  # a cache may be huge
    again = go(tmp_path, *STORED, "machine.checkpoint_seconds=9", name="c")
    assert str(tmp_path / "store") not in " ".join(again["warnings"])


def same_results(first: Path, second: Path) -> bool:
    return (first / "predictions.csv").read_bytes() == (second / "predictions.csv").read_bytes()


@pytest.mark.parametrize("name", ["record.json", "features.npy", "items.csv"])
def test_a_finished_run_with_a_damaged_file_is_made_again(tmp_path: Path, stored: Path, name: str) -> None:
    shutil.copytree(stored / "store", tmp_path / "store")
    shutil.copytree(stored / "a", tmp_path / "a")
    path = tmp_path / "a" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    go(tmp_path, *STORED, name="a", resume=True)
    check_files(tmp_path / "a")
    assert same_results(tmp_path / "a", stored / "a")
    assert (tmp_path / "a" / "record.json.damaged").exists()


@pytest.mark.parametrize("how", ["bit", "truncated"])
def test_a_damaged_checkpoint_is_told_and_the_stage_starts_over(
    tmp_path: Path, done: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("unveil.own.run.write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            go(tmp_path, "supervised.epochs=1")
    path = tmp_path / "run" / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    content[-100] ^= 64
    path.write_bytes(content if how == "bit" else content[:-50])
    record = go(tmp_path, "supervised.epochs=1", resume=True)
    assert str(path) in " ".join(record["warnings"])
    assert same_results(tmp_path / "run", done[0] / "run")


def test_a_run_does_not_go_on_with_other_data(tmp_path: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [f"data.name={vectors}", *VECTORS]
    with monkeypatch.context() as patch:
        patch.setattr("unveil.own.run.write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            go(tmp_path, *quick)
    with np.load(vectors) as stored:
        arrays = dict(stored)
    np.savez(vectors, **{**arrays, "X": arrays["X"][::-1]})
    with pytest.raises(UnveilError, match="belongs to other data"):
        go(tmp_path, *quick, resume=True)


def test_a_discovery_that_was_stopped_with_another_trunk_cache_starts_over(
    tmp_path: Path, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk that has room for the cache later: half a training with each would be the result of neither."""
    shutil.copytree(stored / "store", tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr("unveil.own.run.write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            go(tmp_path, *STORED, "machine.cache_gb=1e-6", name="b")
    record = go(tmp_path, *STORED, name="b", resume=True)
    assert "checkpoint.safetensors was made with another trunk cache" in " ".join(record["warnings"])
    assert same_results(tmp_path / "b", stored / "a")


@pytest.mark.parametrize("name", ["config.toml", "request.json"])
def test_a_directory_whose_run_is_not_known_any_more_says_what_to_do(tmp_path: Path, name: str) -> None:
    settings = recipe.load("digits", recipe.parse_set(TINY))
    files.write(tmp_path / "config.toml", recipe.dump(settings))
    files.write_json(tmp_path / "request.json", {})
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:1])
    with pytest.raises(UnveilError, match=rf"{name}.*not known what run .* choose another --out, or delete"):
        check_request(tmp_path, settings, {})
