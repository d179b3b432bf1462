"""Input in shards: every row once, whatever is killed, by every engine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from unveil import NovelClassDiscovery
from unveil.data.shards import find_shards
from unveil.errors import UnveilError
from unveil.own import engines, sharded
from unveil.own.predict_run import predict_run
from unveil.own.sharded import Embedder, Labeling, run_job

ROWS, SHARDS = 1797, 6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on digits as vectors."""
    folder = tmp_path_factory.mktemp("sharded") / "run"
    X, y = load_digits(return_X_y=True)
    labels = np.where(y < 5, y, -1)
    settings = {"n_novel": 5, "method": "kmeans", "rehearsals": 0, "random_state": 0}
    NovelClassDiscovery(**settings).fit(X.astype(np.float32), labels).save(folder)
    return folder


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits in parquet shards with ids; the vectors of two rows are missing."""
    folder = tmp_path_factory.mktemp("vectors")
    X = load_digits().data.astype(np.float32)
    for number, rows in enumerate(np.array_split(np.arange(ROWS), SHARDS)):
        values = [None if row in (3, 1000) else X[row] for row in rows]
        table = pa.table({"id": [f"row {row}" for row in rows], "vector": pa.array(values, pa.list_(pa.float32()))})
        pq.write_table(table, folder / f"part{number}.parquet", row_group_size=100)
    return folder


def labels_in(out: Path) -> dict[str, tuple[str | None, str]]:
    """Label and kind by id; an id that is there twice is an error."""
    table = pq.read_table(out)
    found = {row["id"]: (row["label"], row["kind"]) for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


def test_labels_are_those_of_the_whole_and_every_row_is_there_once(run: Path, vectors: Path, tmp_path: Path) -> None:
    done = run_job(Labeling(run), vectors, tmp_path / "out")
    assert sum(one.rows for one in done) == ROWS
    assert sum(one.unreadable for one in done) == 2
    found = labels_in(tmp_path / "out")
    assert set(found) == {f"row {row}" for row in range(ROWS)}
    assert found["row 3"] == (None, "unreadable")
    np.save(tmp_path / "whole.npy", load_digits().data.astype(np.float32))
    whole, skipped = predict_run(run, tmp_path / "whole.npy")
    assert not skipped
    for row, (_, label, kind, _) in enumerate(whole):
        if row not in (3, 1000):
            assert found[f"row {row}"] == (label, kind)


def test_a_stopped_job_goes_on_with_what_is_missing(run: Path, vectors: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_job(Labeling(run), vectors, out)
    kept, lost = out / "part1.parquet", out / "part4.parquet"
    before, content = kept.stat().st_mtime_ns, lost.read_bytes()
    lost.unlink()
    done = run_job(Labeling(run), vectors, out)
    assert [one.name for one in done if one.seconds] == ["part4"]
    assert kept.stat().st_mtime_ns == before
    assert lost.read_bytes() == content


def test_results_of_something_else_are_refused(run: Path, vectors: Path, tmp_path: Path) -> None:
    run_job(Labeling(run), vectors, tmp_path / "out")
    with pytest.raises(UnveilError, match="another run or encoder"):
        run_job(Labeling(run, coverage=0.5), vectors, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(UnveilError, match="not empty"):
        run_job(Labeling(run), vectors, tmp_path / "mine")


def test_a_killed_worker_loses_and_doubles_nothing(run: Path, vectors: Path, tmp_path: Path) -> None:
    """The first worker that gets to a shard of the middle is killed while it writes."""
    program = tmp_path / "deadly.py"
    program.write_text(
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from unveil.own import engines\n"
        "from unveil.own.sharded import Labeling, run_job\n"
        "do_shard = engines.do_shard\n"
        "def deadly(worker, shard, out):\n"
        "    mark = Path(sys.argv[3] + '.killed')\n"
        "    if shard.name == 'part3' and not mark.exists():\n"
        "        mark.touch()\n"
        "        (out / f'.part3.parquet.{os.getpid()}.part').write_bytes(b'half')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return do_shard(worker, shard, out)\n"
        "engines.do_shard = deadly\n"  # workers are started anew and read this file too
        "if __name__ == '__main__':\n"
        "    run_job(Labeling(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3]), workers=2)\n"
    )
    out = tmp_path / "out"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(program), str(run), str(vectors), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert Path(f"{out}.killed").exists()
    assert len(labels_in(out)) == ROWS
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]


def test_a_stopped_command_does_not_wait_for_its_workers(run: Path, vectors: Path, tmp_path: Path) -> None:
    """A shard may take minutes; what is begun is lost, what is finished stays."""
    program = tmp_path / "endless.py"
    program.write_text(
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from unveil.own import engines\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started with it ignored\n"
        "from unveil.own.sharded import Labeling, run_job\n"
        "def endless(worker, shard, out):\n"
        "    Path(sys.argv[3] + f'.{os.getpid()}').touch()\n"
        "    time.sleep(3600)\n"
        "engines.do_shard = endless\n"
        "if __name__ == '__main__':\n"
        "    run_job(Labeling(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3]), workers=2)\n"
    )
    out = tmp_path / "out"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(program), str(run), str(vectors), str(out)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (workers := list(tmp_path.glob("out.*"))):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=240) != 0
        finally:
            process.kill()
    assert workers
    assert not [one for one in workers if Path("/proc", one.suffix[1:]).exists()]


def test_ray_gives_the_same_files_and_survives_a_killed_actor(run: Path, vectors: Path, tmp_path: Path) -> None:
    """Ray's own cluster on this machine, two actors, one of which is killed as soon as a first shard is done."""
    run_job(Labeling(run), vectors, tmp_path / "local")
    out, killed = tmp_path / "ray", 0
    out.mkdir()
    for one in engines.on_ray(Labeling(run), find_shards(vectors), out, 2, None):
        assert one.rows
        killed = killed or kill_an_actor()
    assert killed
    for path in sorted((tmp_path / "local").glob("*.parquet")):
        assert pq.read_table(path).equals(pq.read_table(out / path.name))
    assert len(labels_in(out)) == ROWS


def kill_an_actor() -> int:
    """Kill an actor of the cluster that this process has started; returns its number."""
    parents = {}
    titles = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                status = (folder / "stat").read_text()
                titles[int(folder.name)] = (folder / "cmdline").read_bytes()
            except OSError:
                continue  # it has just ended
            parents[int(folder.name)] = int(status.rpartition(")")[2].split()[1])

    def is_ours(process: int) -> bool:
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    actor = next(
        one for one, title in titles.items() if title.startswith(b"ray::") and b"Worker" in title and is_ours(one)
    )
    os.kill(actor, signal.SIGKILL)
    return actor


def test_images_become_vectors_and_unreadable_ones_stay_as_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pictures" / "deep"
    folder.mkdir(parents=True)
    for number in range(5):
        Image.new("RGB", (20, 20), (number * 40, 0, 0)).save(folder / f"{number}.png")
    (folder / "broken.jpg").write_bytes(b"no picture")
    monkeypatch.setattr(sharded, "find_shards", lambda path: find_shards(path, files_per_shard=4))
    done = run_job(Embedder("pixels"), tmp_path / "pictures", tmp_path / "out")
    assert [(one.name, one.rows, one.unreadable) for one in done] == [("images-000000", 4, 0), ("images-000001", 2, 1)]
    table = pq.read_table(tmp_path / "out")
    assert table["id"].to_pylist()[0] == "deep/0.png"
    missing = dict(zip(table["id"].to_pylist(), table["vector"].is_null().to_pylist(), strict=True))
    assert [name for name, gone in missing.items() if gone] == ["deep/broken.jpg"]
    again = run_job(Embedder("pixels"), tmp_path / "pictures", tmp_path / "out")
    assert [one.seconds for one in again] == [0.0, 0.0]


def test_arrays_are_shards_too(tmp_path: Path, run: Path) -> None:
    X = load_digits().data.astype(np.float32)
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "a.npy", X[:10])
    np.savez(tmp_path / "in" / "b.npz", X=X[10:15])
    run_job(Labeling(run), tmp_path / "in", tmp_path / "out")
    assert sorted(labels_in(tmp_path / "out")) == [
        *(f"a/{row:08d}" for row in range(10)),
        *(f"b/{row:08d}" for row in range(5)),
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: (folder / "x.parquet").write_bytes(b"nothing"), "not a parquet file"),
        (lambda folder: pq.write_table(pa.table({"vector": [[1.0], [1.0, 2.0]]}), folder / "x.parquet"), "one length"),
        (lambda folder: (folder / "x.npy").write_bytes(b"nothing"), "cannot be read"),
        (lambda folder: (folder / "x.pdf").write_bytes(b"nothing"), "no images"),
    ],
)
def test_what_cannot_be_read_is_named(make: object, message: str, tmp_path: Path, run: Path) -> None:
    (tmp_path / "in").mkdir()
    make(tmp_path / "in")  # type: ignore[operator]
    with pytest.raises(UnveilError, match=message):
        run_job(Labeling(run), tmp_path / "in", tmp_path / "out")
