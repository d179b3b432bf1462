"""Own data from the command line: discover, predict, classes, trust."""

import csv
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from blobs import blobs

from unveil.metrics import clustering_accuracy

Call = Callable[..., subprocess.CompletedProcess[str]]


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
    result = unveil("discover", "known.csv", "new.csv", "--rehearsals", "0", "--out", "run", process=True)
    assert result.returncode == 0, result.stderr
    assert "3 novel classes of 40 items each" in result.stdout
    assert re.search(r"Probably \d+ % correct; could be \d+ to \d+ %", result.stdout)
    assert "unveil export run --format csv" in result.stdout  # there are no image files to sort into folders
    with (tmp_path / "run" / "predictions.csv").open() as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert clustering_accuracy(y[y >= 4], labels) == 1.0
    result = unveil("predict", "run", "new.csv", "--coverage", "0.99")
    assert result.stdout.splitlines()[0] == "id,label,kind,probability"
    assert unveil("export", "run", "--format", "npz").returncode == 0
    assert "needs image files" in unveil("export", "run", "--format", "coco").stderr
    result = unveil("classes", "known.csv", "new.csv", "--plot", "criteria.png")
    assert "about 3 novel classes" in result.stdout, result.stderr
    assert (tmp_path / "criteria.png").stat().st_size > 5000
    result = unveil("trust", "known.csv", "--rehearsals", "1")
    assert "correct; could be" in result.stdout, result.stderr
    assert "correct; could be" in result.stdout
    assert "classes hidden" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("discover", "nothing", "nowhere"), "nothing"),
        (("discover", "known.csv", "nowhere.npy"), "there is no file or folder nowhere.npy"),
        (("discover", "known.csv", "new.csv", "--classes", "few"), "give a whole number of 1 or more, or auto"),
        (("discover", "known.csv", "new.csv", "--classes", "99"), "99 novel classes in 4 unlabeled items"),
        (("discover", "known.csv", "wide.npy"), "give items of one kind and size"),
        (("discover", "known.csv", "empty"), "holds no images"),
        (("predict", "nowhere", "new.csv"), "no finished discovery"),
        (("predict", "known.csv", "new.csv", "--coverage", "3"), "give a share"),
        (("export", "nowhere"), "no finished discovery"),
        (("trust", "known.csv"), "needs 4 or more"),
        (("discover", "both.csv", "new.csv"), "rename the one that does not hold the labels"),
        (("discover", "known.csv", "new.csv", "--set", "discovery.lx=1"), "unknown key 'discovery.lx'"),
        (("discover", "known.csv", "new.csv", "--set", "seed=-1"), "seed is -1"),
        (("discover", "known.csv", "new.csv", "--recipe", "imags"), "did you mean 'images'?"),
        (("discover", "known.csv", "new.csv", "--recipe", "images"), "vectors cannot be rotated"),
    ],
)
def test_mistakes_are_told_in_a_line(unveil: Call, tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    x, y = blobs(3, 4)
    write_csv(tmp_path / "known.csv", x[y < 2], [str(label) for label in y[y < 2]])
    write_csv(tmp_path / "new.csv", x[y == 2], None)
    np.save(tmp_path / "wide.npy", np.ones((4, 5), dtype=np.float32))
    (tmp_path / "both.csv").write_text("x,class,label\n1,2,a\n2,2,b\n")
    (tmp_path / "empty").mkdir()
    result = unveil(*args)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert message in result.stderr
