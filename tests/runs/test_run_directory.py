"""What is written to a run directory is read from it again, and both sides refuse what does not fit."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import overwrite
from review_runs import make_run, seal_again, write_run

from unveil import files
from unveil.errors import UnveilError
from unveil.runs.reader import check_files, load, read_items
from unveil.runs.writer import MOST_INPUTS, PICTURE_SIDE, Contents, write

CONTENTS = Contents(
    ids=["a", "b,\nc", "d", "e"],
    new=np.array([False, True, True, True]),
    given=["cat", "", "", ""],
    labels=np.array([0, 0, 1, 2]),
    classes=["cat", "novel-0", "fox"],
    n_known=1,
    confidence=np.array([1, 0.5, 0.1234567, 0.25]),
    typicality=np.array([1.0, 0.5, 1, 1]),
    kmeans=np.array([0, 4, 1, 2]),
    features=np.arange(8.0).reshape(4, 2),
    record={"method": "kmeans"},
    config="[discovery]\n",
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    history = [{"epoch": 0, "bce": 0.5}, {"epoch": 1, "bce": 0.25}]
    written = replace(
        CONTENTS,
        paths=["", "", "/d.png", ""],
        inputs=np.ones((4, 3)),
        columns=["x", "y", "z"],
        history=history,
        record={"method": "kmeans", "name": "mine", "extra": {"a": (1, 2)}, "summary": {"result": "two"}},
    )
    record = write(tmp_path / "run", written)
    run = load(tmp_path / "run")
    assert run.record == record == files.read_json(tmp_path / "run" / "record.json")
    assert run.ids == tuple(written.ids)
    assert run.given == ("cat", "", "", "")
    assert run.classes == ("cat", "novel-0", "fox")
    assert (run.n_known, run.n_novel, run.name) == (1, 2, "mine")
    for name in ("new", "labels", "kmeans"):
        np.testing.assert_array_equal(getattr(run, name), getattr(written, name))
    for name in ("confidence", "typicality", "features"):
        assert getattr(run, name).dtype == np.float32
        np.testing.assert_allclose(getattr(run, name), getattr(written, name), rtol=1e-6)
    assert run.paths == ("", "", "/d.png", "")
    assert run.history == history
    assert run.inputs is not None
    assert [run.column(2), run.column(3)] == ["z", "column 4"]
    assert run.pictures is None
    assert (tmp_path / "run" / "config.toml").read_text() == "[discovery]\n"


def test_the_record_has_every_key(tmp_path: Path) -> None:
    record = write(tmp_path, CONTENTS)
    assert record["schema"] == 1
    assert (record["known"], record["novel"], record["n_novel"]) == (["cat"], ["novel-0", "fox"], 2)
    assert record["items"] == {"known": 1, "new": 3}
    assert record["source"] == {"kind": "arrays"}
    assert record["finished"].endswith("+00:00")
    described = Path(__file__).parents[2] / "docs" / "run-directory.md"
    for key in record:
        assert f"`{key}`" in described.read_text(), f"{key} is not described"
    assert load(tmp_path).name == tmp_path.name


def test_tables(tmp_path: Path) -> None:
    write(tmp_path, replace(CONTENTS, truth={"d": "wolf"}))
    assert read_items(tmp_path)[1] == {
        **{"id": "b,\nc", "part": "new", "given": "", "label": "cat", "kind": "known"},
        **{"confidence": "0.500000", "path": ""},
    }
    with (tmp_path / "predictions.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["id", "label", "kind", "confidence"]
    assert rows[2:] == [["d", "novel-0", "novel", "0.123457"], ["e", "fox", "novel", "0.250000"]]
    assert (tmp_path / "truth.csv").read_text() == "id,label\nd,wolf\n"


def test_large_pictures_are_reduced_and_huge_inputs_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a", replace(CONTENTS, pictures=np.zeros((4, 200, 100, 3), dtype=np.uint8)))
    pictures = load(tmp_path / "a").pictures
    assert pictures is not None
    assert max(pictures.shape[1:3]) <= PICTURE_SIDE
    assert MOST_INPUTS >= 10**7
    monkeypatch.setattr("unveil.runs.writer.MOST_INPUTS", 11)
    write(tmp_path / "b", replace(CONTENTS, inputs=np.ones((4, 3))))
    assert load(tmp_path / "b").inputs is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 0, 1])}, "labels has 3 rows and there are 4 items"),
        ({"labels": np.array([0, 0, 1, 3])}, "labels are 0 to 3 for 3 classes"),
        ({"labels": np.array([0, 0, 1, -1])}, "labels are -1 to 1 for 3 classes"),
        ({"paths": ["x"]}, "paths has 1 rows"),
        ({"n_known": 4}, "n_known is 4 of 3 classes"),
    ],
)
def test_contents_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CONTENTS, **change)


def test_a_run_that_was_not_finished_does_not_look_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, CONTENTS)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unveil.runs.writer._write_tables", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, CONTENTS)
    with pytest.raises(UnveilError, match="is not finished"):
        load(tmp_path)
    with pytest.raises(UnveilError, match="no finished discovery"):
        load(tmp_path / "nowhere")


def test_other_versions_and_damaged_files_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "rows.npz").write_bytes(b"damaged")
    with pytest.raises(UnveilError, match=r"rows\.npz is damaged"):
        load(run)
    for content in (b"damaged", b"", b"PK\x03\x04damaged"):  # with checksums that agree
        (run / "rows.npz").write_bytes(content)
        seal_again(run)
        with pytest.raises(UnveilError, match=r"rows\.npz cannot be read"):
            load(run)
    seal_again(run, schema=99)
    with pytest.raises(UnveilError, match="another version of unveil"):
        read_items(run)
    (run / "record.json").write_text("{")
    with pytest.raises(UnveilError, match=r"record\.json cannot be read"):
        load(run)


def problem(folder: Path) -> str | None:
    """What is wrong with a run; None where everything can be read."""
    try:
        check_files(folder)
        run = load(folder)
        _ = run.features, run.inputs, run.history
    except UnveilError as error:
        return str(error)
    return None


FILES = ("config.toml", "items.csv", "predictions.csv", "rows.npz", "features.npy", "pictures.npy", "metrics.jsonl")


@pytest.mark.parametrize("name", ["record.json", *FILES, "inputs.npy"])
def test_a_single_flipped_bit_is_found_and_the_file_is_named(tmp_path: Path, name: str) -> None:
    """Every bit of the record, and bits all over the other files."""
    history = [{"epoch": 0, "bce": 0.5}]
    extra = {"inputs": np.ones((4, 3))} if name == "inputs.npy" else {"pictures": np.zeros((4, 2, 2, 1), np.uint8)}
    write(tmp_path, replace(CONTENTS, history=history, **extra))
    path = tmp_path / name
    content = path.read_bytes()
    check_files(tmp_path)
    silent = []
    for bit in range(0, 8 * len(content), 1 if name == "record.json" else max(1, len(content) // 20)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        overwrite(path, damaged)
        if (message := problem(tmp_path)) is None:
            silent.append(bit)
        else:
            assert name in message
    # a bit of white space, or of the name of the checksum itself, says nothing about the run
    text = content.decode("latin1")
    at = text.rfind('"checksum"') if name == "record.json" else -1
    assert [bit for bit in silent if not (text[bit // 8].isspace() or 0 <= bit // 8 - at < len('"checksum"'))] == []


@pytest.mark.parametrize("name", ["features.npy", "inputs.npy", "metrics.jsonl", "items.csv", "rows.npz"])
def test_a_truncated_file_of_an_old_run_without_checksums_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path, replace(CONTENTS, inputs=np.ones((4, 3)), history=[{"epoch": 0}, {"epoch": 1}]))
    content = (tmp_path / name).read_bytes()
    record = {key: value for key, value in load(tmp_path).record.items() if not key.startswith("checksum")}
    files.write_json(tmp_path / "record.json", record)
    for length in range(0, len(content), max(1, len(content) // 40)):
        overwrite(tmp_path / name, content[:length])
        message = problem(tmp_path)
        if message is None:  # whole lines may be missing at the end of a text, and nothing tells
            assert name in ("metrics.jsonl", "items.csv"), length
        else:
            assert name in message


def test_metrics_that_training_has_written_stay(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"epoch": 0}) + "\n")
    write(tmp_path, CONTENTS)
    assert load(tmp_path).history == [{"epoch": 0}]


def test_pictures(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", pictures="files")
    picture = run.picture(3, 8)
    assert picture is not None
    assert max(picture.size) == 8
    Path(run.paths[3]).unlink()
    assert run.picture(3, 8) is None
    run = make_run(tmp_path / "b", pictures="none")
    assert not run.has_pictures
    assert run.picture(3, 8) is None


def test_nothing_that_reads_a_run_imports_torch_or_scikit_learn() -> None:
    modules = "unveil.runs.reader, unveil.review.export, unveil.runs.map, unveil.runs.writer, unveil.pages.report.page"
    code = f"import sys, {modules}, unveil.pages.review.server; print([m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


HEAVY = ("torch", "sklearn", "scipy", "openTSNE", "pandas", "matplotlib")
