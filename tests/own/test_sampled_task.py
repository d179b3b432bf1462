"""`unveil discover` on shards: the fit is on a sample that is told, and every row is labeled once."""

import csv
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_digits

from unveil.data.shards import find_shards, is_sharded
from unveil.errors import UnveilError
from unveil.own.sampled_task import read_task_or_sample
from unveil.pages.review.log import Log
from unveil.runs.reader import load, read_record

Call = Callable[..., subprocess.CompletedProcess[str]]
SIZES = (300, 100, 501)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits 0-4 with labels, as a file and in parquet shards; 5-9 in shards, two rows without a vector."""
    folder = tmp_path_factory.mktemp("large")
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    known, new = np.flatnonzero(y < 5), np.flatnonzero(y >= 5)[: sum(SIZES) - 5]
    np.savez(folder / "known.npz", X=X[known], y=y[known])
    (folder / "known").mkdir()
    (folder / "new").mkdir()
    for number, rows in enumerate(np.array_split(known, 3)):
        labels = pa.array([None if row == known[7] else f"digit {y[row]}" for row in rows])
        write(folder / "known" / f"{number}.parquet", {"id": names(rows), "vector": lists(X[rows]), "label": labels})
    ends = np.cumsum(SIZES)
    for number, rows in enumerate(np.split(new, ends[:-1])):
        vectors = [None if row in (new[3], new[-1]) else X[row] for row in rows]
        if number == 1:
            np.save(folder / "new" / f"{number}.npy", X[rows])
        else:
            write(folder / "new" / f"{number}.parquet", {"id": names(rows), "vector": lists(vectors)})
    return folder


def names(rows: np.ndarray) -> list[str]:
    return [f"row {row}" for row in rows]


def lists(vectors: object) -> pa.Array:
    return pa.array(list(vectors), pa.list_(pa.float32()))  # type: ignore[call-overload]


def write(path: Path, columns: dict[str, object]) -> None:
    pq.write_table(pa.table(columns), path, row_group_size=90)


def test_new_rows_are_taken_of_every_shard_in_proportion(folder: Path) -> None:
    task = read_task_or_sample(folder / "known.npz", folder / "new", sample=90)
    assert len(task.labeled) == 90
    assert len(task.unlabeled) == 90
    assert task.ids is not None
    of_array = [name for name in task.ids if name.startswith("1/")]
    assert len(of_array) == 10  # 100 of 896 rows
    assert task.ids == read_task_or_sample(folder / "known.npz", folder / "new", sample=90).ids
    (note,) = task.notes
    assert "90 of the 896 rows" in note
    assert "3 shards" in note
    assert "22 % of the rows may be missed" in note  # 20 of 90


def test_a_row_keeps_its_id_and_its_vector(folder: Path) -> None:
    X, y = load_digits(return_X_y=True)
    task = read_task_or_sample(folder / "known", folder / "new", sample=200)
    assert task.ids is not None
    rows = [(place, int(name.split()[1])) for place, name in enumerate(task.ids) if name.startswith("row ")]
    assert len(rows) > 300
    for place, row in rows:
        np.testing.assert_array_equal(task.items.array[place], X[row])
        if task.labels[place] >= 0:
            assert task.known[task.labels[place]] == f"digit {y[row]}"


def test_rows_without_a_vector_or_a_label_are_left_out(folder: Path) -> None:
    task = read_task_or_sample(folder / "known", folder / "new")
    assert len(task.unlabeled) == sum(SIZES) - 5 - 2
    assert len(task.labeled) == 901 - 1
    assert task.known == tuple(f"digit {digit}" for digit in range(5))


def test_small_known_classes_are_not_lost(folder: Path, tmp_path: Path) -> None:
    X = np.arange(20_000, dtype=np.float32)[:, None] * np.ones((1, 4), dtype=np.float32)
    labels = ["rare" if row % 1000 == 0 else "usual" for row in range(len(X))]
    (tmp_path / "known").mkdir()
    (tmp_path / "new").mkdir()
    write(tmp_path / "known" / "a.parquet", {"vector": lists(X), "label": labels})
    np.save(tmp_path / "new" / "a.npy", X)
    task = read_task_or_sample(tmp_path / "known", tmp_path / "new", sample=100)
    counts = np.bincount(task.labels[task.labeled])
    assert dict(zip(task.known, counts.tolist(), strict=True)) == {"rare": 20, "usual": 80}


def test_discover_labels_every_row_once_as_the_run_does(folder: Path, tmp_path: Path, unveil: Call) -> None:
    out = tmp_path / "run"
    options = ("--sample", "400", "--out", str(out), "--n-novel", "5", "--method", "kmeans")
    done = unveil("discover", str(folder / "known.npz"), str(folder / "new"), *options)
    assert done.returncode == 0, done.stderr
    assert f"written: {out / 'labels'}, 896 items in 3 shards" in done.stdout
    (note,) = [warning for warning in read_record(out)["warnings"] if "of the 896 rows" in warning]
    assert re.search(r"the fit is on (398|399|400) of", note)  # those of 400 that have a vector
    table = pq.read_table(out / "labels").to_pylist()
    labels = {row["id"]: row for row in table}
    assert len(labels) == len(table) == 896
    assert sorted({row["kind"] for row in labels.values()}) == ["novel", "unreadable"]
    with (out / "predictions.csv").open() as file:
        of_run = [row for row in csv.DictReader(file) if row["id"] in labels]
    assert len(of_run) >= 398
    for row in of_run:
        assert labels[row["id"]]["label"] == row["label"]
        assert labels[row["id"]]["confidence"] == pytest.approx(float(row["confidence"]), abs=1e-3)
    lost = out / "labels" / "2.parquet"
    before = lost.read_bytes()
    lost.unlink()
    again = unveil("discover", str(folder / "known.npz"), str(folder / "new"), *options)
    assert again.returncode == 0, again.stderr
    assert "2 of 3 shards are done" in again.stderr
    assert lost.read_bytes() == before
    Log(load(out)).act("name", {"cluster": 5, "text": "a digit"}, 0)
    onwards = unveil("discover", "--continue", str(out), "--out", str(tmp_path / "next"))
    assert onwards.returncode == 0, onwards.stderr
    labels = {row["id"]: row["label"] for row in pq.read_table(tmp_path / "next" / "labels").to_pylist()}
    assert len(labels) == 896
    assert "a digit" in labels.values()


def test_only_folders_of_arrays_or_tables_are_shards(folder: Path, tmp_path: Path) -> None:
    assert is_sharded(folder / "new")
    assert not is_sharded(folder / "known.npz")
    assert not is_sharded(tmp_path)
    (tmp_path / "a.npy").touch()
    assert is_sharded(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert not is_sharded(tmp_path)


@pytest.mark.parametrize(
    ("known", "new", "message"),
    [
        ("known", "known.npz", "and .* is not"),
        ("new", "new", "no column label or class"),
        ("known.npz", "csv", "does not hold vectors"),
        ("known.npz", "narrow", "give items of one kind and size"),
        ("known.npz", "mixed", "vectors of 3 and of 4 numbers"),
        ("known.npz", "repeated", "occurs twice"),
        ("unlabeled", "new", "no row has a label"),
    ],
)
def test_what_cannot_be_sampled_is_told(known: str, new: str, message: str, folder: Path) -> None:
    for name in ("csv", "narrow", "mixed", "repeated", "unlabeled"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "csv" / "a.csv").write_text("a,b\n1,2\n")
    np.save(folder / "narrow" / "a.npy", np.ones((9, 3), dtype=np.float32))
    np.save(folder / "mixed" / "a.npy", np.ones((9, 3), dtype=np.float32))
    np.save(folder / "mixed" / "b.npy", np.ones((9, 4), dtype=np.float32))
    write(folder / "repeated" / "a.parquet", {"id": ["x", "x"], "vector": lists(np.ones((2, 64)))})
    write(folder / "unlabeled" / "a.parquet", {"vector": lists(np.ones((2, 64))), "label": ["", " "]})
    with pytest.raises(UnveilError, match=message):
        read_task_or_sample(folder / known, folder / new)


def test_options_for_shards_without_any_are_told(folder: Path, unveil: Call) -> None:
    done = unveil("discover", str(folder / "known.npz"), str(folder / "known.npz"), "--workers", "2")
    assert done.returncode == 2
    assert "are for NEW in shards" in done.stderr


def test_a_shard_counts_its_rows(folder: Path) -> None:
    assert [shard.count() for shard in find_shards(folder / "new")] == [300, 100, 496]
