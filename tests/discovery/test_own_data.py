"""Own data from the outside: discover, predict, export, classes, trust."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs
from PIL import Image
from sklearn.datasets import load_digits

from unveil import files
from unveil.discovery.own_data import Request, discover, predict
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.runs.export import export, safe_name
from unveil.runs.reader import read_items

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def run(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    known, new = folders
    record = discover(Request(known=known, new=new, classes=3, encoder="pixels", rehearsals=0), out=out)
    assert record["skipped"] == ["broken.png"]
    return out


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
    with (run / "predictions.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows) == record["items"]["new"]
    assert len(np.load(run / "features.npy")) == len(read_items(run))


def test_predict(run: Path, folders: tuple[Path, Path], tmp_path: Path) -> None:
    lines, skipped = predict(run, folders[1], coverage=None)
    assert skipped == ["broken.png"]
    assert np.mean([kind == "novel" for _, _, kind, _ in lines]) > 0.8
    lines, _ = predict(run, folders[0], coverage=1.0)
    right = [Path(name).parts[0] == label for name, label, _, _ in lines]
    assert np.mean(right) > 0.8
    strange = tmp_path / "strange"
    strange.mkdir()
    for i in range(5):
        noise = np.random.default_rng(i).integers(0, 256, (20, 20, 3), dtype=np.uint8)
        Image.fromarray(noise).save(strange / f"{i}.png")
    lines, _ = predict(run, strange, coverage=0.9)
    assert {label for _, label, _, _ in lines} == {"neither"}
    np.save(tmp_path / "v.npy", np.ones((3, 4), dtype=np.float32))
    with pytest.raises(UnveilError, match="give images"):
        predict(run, tmp_path / "v.npy", coverage=None)


def test_a_finished_run_is_not_overwritten(run: Path, folders: tuple[Path, Path], tmp_path: Path) -> None:
    known, new = folders
    with pytest.raises(UnveilError, match="already holds this discovery"):
        discover(Request(known=known, new=new, classes=3, encoder="pixels", rehearsals=0), out=run)
    with pytest.raises(UnveilError, match="other data or settings"):
        discover(Request(known=known, new=new, classes=4, encoder="pixels", rehearsals=0), out=run)
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UnveilError, match="holds no discovery"):
        discover(Request(known=known, new=new, classes=3, encoder="pixels"), out=tmp_path)


def test_an_interrupted_discovery_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = blobs(6, 60)
    np.savez(tmp_path / "known.npz", X=x[y < 3], y=y[y < 3])
    np.save(tmp_path / "new.npy", x[y >= 3])
    request = Request(known=tmp_path / "known.npz", new=tmp_path / "new.npy", classes=3, rehearsals=0)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("unveil.discovery.own_data.write", stop)
        with pytest.raises(KeyboardInterrupt):
            discover(request, out=tmp_path / "run")
    assert not (tmp_path / "run" / "record.json").exists()
    discover(request, out=tmp_path / "run")
    discover(request, out=tmp_path / "other")
    assert (tmp_path / "run" / "items.csv").read_text() == (tmp_path / "other" / "items.csv").read_text()


def test_export_csv_and_npz(run: Path, tmp_path: Path) -> None:
    with export(run, "csv", tmp_path / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len([row for row in read_items(run) if row["part"] == "new"])
    assert Path(rows[0]["path"]).is_file()
    with np.load(export(run, "npz", None, all_items=True), allow_pickle=False) as stored:
        assert len(stored["label"]) == len(stored["features"]) == len(read_items(run))


def test_export_folders_and_fiftyone(run: Path, tmp_path: Path) -> None:
    target = export(run, "folders", tmp_path / "sorted")
    assert sorted(path.name for path in target.iterdir()) == ["novel-0", "novel-1", "novel-2"]
    wanted = len([row for row in read_items(run) if row["part"] == "new"])
    assert len(list(target.rglob("*.*"))) == wanted
    with pytest.raises(UnveilError, match="not empty"):
        export(run, "folders", target)
    target = export(run, "fiftyone", tmp_path / "fiftyone")
    labels = json.loads((target / "labels.json").read_text())
    assert len(labels["labels"]) == len(list((target / "data").iterdir())) == wanted


def test_export_for_labelling_tools(run: Path, tmp_path: Path) -> None:
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


def write_csv(path: Path, x: np.ndarray, labels: list[str] | None) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"c{i}" for i in range(x.shape[1])), *(["label"] if labels else [])])
        for row, values in enumerate(x):
            writer.writerow([*values, *([labels[row]] if labels else [])])


def test_tables_from_the_command_line(unveil: Call, tmp_path: Path) -> None:
    x, y = blobs(7, 40)
    write_csv(tmp_path / "known.csv", x[y < 4], [f"kind {label}" for label in y[y < 4]])
    write_csv(tmp_path / "new.csv", x[y >= 4], None)
    result = unveil("discover", "known.csv", "new.csv", "--rehearsals", "0", "--out", "run")
    assert result.returncode == 0, result.stderr
    assert "3 novel classes of 40 items each" in result.stdout
    with (tmp_path / "run" / "predictions.csv").open() as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert clustering_accuracy(y[y >= 4], labels) == 1.0
    result = unveil("predict", "run", "new.csv", "--coverage", "0.99")
    assert result.stdout.splitlines()[0] == "id,label,kind,probability"
    assert "--format folders" not in result.stdout  # there are no image files
    assert unveil("export", "run", "--format", "npz").returncode == 0
    assert "needs image files" in unveil("export", "run", "--format", "coco").stderr
    result = unveil("classes", "known.csv", "new.csv", "--plot", "criteria.png")
    assert "about 3 novel classes" in result.stdout, result.stderr
    assert (tmp_path / "criteria.png").stat().st_size > 5000
    result = unveil("trust", "known.csv", "--rehearsals", "1")
    assert "of the items should be in the right cluster" in result.stdout, result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("discover", "nothing", "nowhere"), "nothing"),
        (("discover", "known.csv", "nowhere.npy"), "there is no file or folder nowhere.npy"),
        (("discover", "known.csv", "new.csv", "--classes", "few"), "give a whole number of 1 or more, or auto"),
        (("discover", "known.csv", "new.csv", "--classes", "99"), "99 novel classes in 4 unlabelled items"),
        (("discover", "known.csv", "wide.npy"), "give items of one kind and size"),
        (("discover", "known.csv", "empty"), "holds no images"),
        (("predict", "nowhere", "new.csv"), "no saved discovery"),
        (("predict", "known.csv", "new.csv", "--coverage", "3"), "give a share"),
        (("export", "nowhere"), "no finished discovery"),
        (("trust", "known.csv"), "takes 4 or more"),
    ],
)
def test_mistakes_are_told_in_a_line(unveil: Call, tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    x, y = blobs(3, 4)
    write_csv(tmp_path / "known.csv", x[y < 2], [str(label) for label in y[y < 2]])
    write_csv(tmp_path / "new.csv", x[y == 2], None)
    np.save(tmp_path / "wide.npy", np.ones((4, 5), dtype=np.float32))
    (tmp_path / "empty").mkdir()
    result = unveil(*args)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert message in result.stderr


@pytest.mark.parametrize("example", ["embeddings", "tabular", "image_folder"])
def test_examples_run(example: str, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / f"{example}.py"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNVEIL_STORE": str(tmp_path / "store")}
    command = [sys.executable, str(script)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=280)
    assert result.returncode == 0, result.stderr
    assert "novel" in result.stdout
