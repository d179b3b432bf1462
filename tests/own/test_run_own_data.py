"""A discovery in own images and arrays: what its run directory holds, and its exports."""

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blobs import blobs
from rich.console import Console
from sklearn.datasets import load_digits

from unveil import files, recipe
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.own.directories import is_unused
from unveil.own.predict_run import predict_run
from unveil.own.run import run_own_data
from unveil.review.export import export, safe_name
from unveil.runs.reader import load, read_items
from unveil.runs.thumbnails import Thumbnails

PIXELS = ["data.n_novel=3", "rehearsals=0", "discovery.steps=200"]


def discover(known: Path, new: Path, out: Path, *overrides: str, encoder: str | None = None) -> dict[str, Any]:
    quiet = Console(quiet=True)
    encoder = encoder or ("pixels" if known.is_dir() else "auto")
    return run_own_data(
        known, new, out=out, stages=out / ".stages", changes=recipe.parse_set(overrides), encoder=encoder, console=quiet
    )


@pytest.fixture(scope="module")
def run(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    known, new = folders
    record = discover(known, new, out, *PIXELS)
    assert record["skipped"] == ["broken.png"]
    return out


def test_settings_that_cannot_be_leave_nothing_behind(folders: tuple[Path, Path], tmp_path: Path) -> None:
    for overrides, message in (
        (["data.n_novel=9000"], "9000 novel classes in"),
        (["machine.device=quantum"], "the device is 'quantum'"),
    ):
        with pytest.raises(UnveilError, match=message):
            discover(*folders, tmp_path / "run", *overrides)
        assert is_unused(tmp_path / "run")  # but for hidden notes about files that were read


def save_arrays(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Blobs as known.npz and new.npy; another seed gives files of the same sizes."""
    X, y = blobs(5, 20, seed)
    np.savez(folder / "known.npz", X=X[:60], y=y[:60])
    np.save(folder / "new.npy", X[60:])
    return folder / "known.npz", folder / "new.npy"


def test_an_interrupted_discovery_does_not_go_on_with_other_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = save_arrays(tmp_path)
    quick = ["data.n_novel=2", "rehearsals=0"]
    with monkeypatch.context() as patch:
        patch.setattr("unveil.own.run.write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            discover(*arrays, tmp_path / "run", *quick)
    status = arrays[1].stat()
    save_arrays(tmp_path, seed=1)
    os.utime(arrays[1], ns=(status.st_atime_ns, status.st_mtime_ns))
    assert arrays[1].stat().st_size == status.st_size
    with pytest.raises(UnveilError, match="other data or settings"):
        discover(*arrays, tmp_path / "run", *quick)
    save_arrays(tmp_path)
    assert discover(*arrays, tmp_path / "run", *quick)["n_novel"] == 2
    save_arrays(tmp_path, seed=1)
    with pytest.raises(UnveilError, match="other data or settings"):
        discover(*arrays, tmp_path / "run", *quick)


def test_a_refused_command_does_not_occupy_its_directory(tmp_path: Path) -> None:
    arrays = save_arrays(tmp_path)
    quick = ["data.n_novel=2", "rehearsals=0"]
    for mistake in ("discovery.method=nlc", "discovery.lr=nan", "data.n_novel=41", "machine.device=none"):
        with pytest.raises(UnveilError):
            discover(*arrays, tmp_path / "run", *quick, mistake)
        assert not (tmp_path / "run" / "request.json").exists()
    assert discover(*arrays, tmp_path / "run", *quick)["n_novel"] == 2


def test_thumbnails_are_made_while_embedding(
    folders: tuple[Path, Path], tmp_path: Path, means: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    options: dict[str, Any] = {
        "stages": tmp_path / "stages",
        "changes": recipe.parse_set(PIXELS),
        "encoder": "timm:means",
    }
    with monkeypatch.context() as patch:
        patch.setattr("unveil.encoders.stored.checksums.save_array", lambda *_: 1 / 0)  # stopped before the store
        with pytest.raises(ZeroDivisionError):
            run_own_data(*folders, out=out, console=Console(quiet=True), **options)
    assert is_unused(out)  # the same command goes on
    monkeypatch.setattr(
        "unveil.runs.thumbnails.read_image", lambda *_, **__: 1 / 0
    )  # no file is decoded for them alone
    run_own_data(*folders, out=out, console=Console(quiet=True), **options)
    run = load(out)
    thumbnails = Thumbnails(out)
    assert thumbnails.missing(run.paths) == []
    assert all(thumbnails.get(path) is not None for path in run.paths)
    run_own_data(*folders, out=tmp_path / "again", console=Console(quiet=True), **options)
    assert not (
        tmp_path / "again" / "thumbnails.sqlite"
    ).exists()  # embeddings came from the store: nothing was decoded


def truth_of(rows: list[dict[str, str]]) -> list[int]:
    y = load_digits().target
    return [int(y[int(Path(row["id"]).stem)]) for row in rows]


def test_pictures_of_every_kind(run: Path) -> None:
    rows = [row for row in read_items(run) if row["part"] == "new"]
    assert {row["kind"] for row in rows} == {"novel"}
    assert clustering_accuracy(truth_of(rows), [row["label"] for row in rows]) > 0.8
    known = [row for row in read_items(run) if row["part"] == "known"]
    assert all(row["given"] == row["label"] and row["id"].startswith(row["label"]) for row in known)
    record = files.read_json(run / "record.json")
    assert record["n_novel"] == 3
    assert len(record["summary"]) >= 3
    assert {"result", "choice", "accuracy"} <= record["summary"].keys()
    with (run / "predictions.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows) == record["items"]["new"]
    assert len(np.load(run / "features.npy")) == len(read_items(run))


def test_a_finished_run_is_not_overwritten(run: Path, folders: tuple[Path, Path], tmp_path: Path) -> None:
    known, new = folders
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir() if path.is_file()}
    assert discover(known, new, run, *PIXELS) == files.read_json(run / "record.json")
    assert {path.name: path.stat().st_mtime_ns for path in run.iterdir() if path.is_file()} == before
    with pytest.raises(UnveilError, match="other data or settings"):
        discover(known, new, run, *PIXELS, "data.n_novel=4")
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UnveilError, match="holds no discovery"):
        discover(known, new, tmp_path, *PIXELS)


def test_an_interrupted_discovery_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = blobs(6, 60)
    np.savez(tmp_path / "known.npz", X=x[y < 3], y=y[y < 3])
    np.save(tmp_path / "new.npy", x[y >= 3])
    data = tmp_path / "known.npz", tmp_path / "new.npy"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("unveil.own.run.write", stop)
        with pytest.raises(KeyboardInterrupt):
            discover(*data, tmp_path / "run", *PIXELS)
    assert not (tmp_path / "run" / "record.json").exists()
    discover(*data, tmp_path / "run", *PIXELS)
    discover(*data, tmp_path / "other", *PIXELS)
    assert (tmp_path / "run" / "items.csv").read_text() == (tmp_path / "other" / "items.csv").read_text()


def test_known_classes_in_new_items(tmp_path: Path) -> None:
    x, y = blobs(5, 40)
    labeled = (y < 3) & (np.arange(len(y)) % 2 == 0)
    np.savez(tmp_path / "known.npz", X=x[labeled], y=y[labeled])
    np.save(tmp_path / "new.npy", x[~labeled])
    out, options = tmp_path / "run", ["data.known_in_unlabeled=true", "data.n_novel=2", "rehearsals=0"]
    record = discover(tmp_path / "known.npz", tmp_path / "new.npy", out, *options, encoder="auto")
    assert record["method"] == "neighbor-consensus"
    items, truth = load(out), y[~labeled]
    found = np.array([items.classes[label] for label in items.labels[items.new]])
    np.testing.assert_array_equal(found[truth < 3], truth[truth < 3].astype(str))
    assert clustering_accuracy(truth, found) == 1.0
    lines, _ = predict_run(out, tmp_path / "new.npy", console=Console(quiet=True))
    assert [line[1] for line in lines] == found.tolist()
    assert [line[2] for line in lines] == np.where(truth < 3, "known", "novel").tolist()


def test_export_csv_and_npz(run: Path, tmp_path: Path) -> None:
    with export(run, "csv", tmp_path / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len([row for row in read_items(run) if row["part"] == "new"])
    assert Path(rows[0]["path"]).is_file()
    with np.load(export(run, "npz", None, all_items=True), allow_pickle=False) as stored:
        assert len(stored["label"]) == len(stored["features"]) == len(read_items(run))


def test_export_folders_and_fiftyone(run: Path, tmp_path: Path) -> None:
    target = export(run, "folders", tmp_path / "sorted")
    assert sorted(path.name for path in target.iterdir() if path.is_dir()) == ["novel-0", "novel-1", "novel-2"]
    wanted = len([row for row in read_items(run) if row["part"] == "new"])
    assert len(list(target.glob("*/*.*"))) == wanted
    (target / ".unveil-export.json").unlink()
    with pytest.raises(UnveilError, match="not empty"):
        export(run, "folders", target)
    target = export(run, "fiftyone", tmp_path / "fiftyone")
    labels = json.loads((target / "labels.json").read_text())
    assert len(labels["labels"]) == len(list((target / "data").iterdir())) == wanted


def test_export_for_labeling_tools(run: Path, tmp_path: Path) -> None:
    coco = json.loads(export(run, "coco", tmp_path / "coco.json").read_text())
    assert len(coco["images"]) == len(coco["annotations"])
    assert {one["name"] for one in coco["categories"]} == {"novel-0", "novel-1", "novel-2"}
    assert all(one["bbox"][2] >= 16 for one in coco["annotations"])
    tasks = json.loads(export(run, "label-studio", tmp_path / "tasks.json").read_text())
    choice = tasks[0]["predictions"][0]["result"][0]["value"]["choices"][0]
    assert choice.startswith("novel-")
    with pytest.raises(UnveilError, match="there is csv"):
        export(run, "excel", None)


def test_export_parquet(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnveilError, match="pip install pyarrow"):
        export(run, "parquet", tmp_path / "labels.parquet")
    monkeypatch.undo()
    pq = pytest.importorskip("pyarrow.parquet")
    found = pq.read_table(export(run, "parquet", tmp_path / "labels.parquet"))
    assert set(found.column_names) == {"id", "label", "kind", "path", "confidence"}


@pytest.mark.parametrize(
    ("name", "safe"), [("../../etc", "_.._etc"), ("a/b", "a_b"), ("", "_"), ("..", "_"), ('<"script">', "__script__")]
)
def test_names_never_leave_their_folder(name: str, safe: str) -> None:
    assert safe_name(name) == safe
