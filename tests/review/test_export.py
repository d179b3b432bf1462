"""Export: which formats a run can have, and what a CSV costs."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
from PIL import Image
from review_runs import make_run, write_run

from unveil.errors import UnveilError
from unveil.pages.review.log import Log
from unveil.review.export import FORMATS, IMAGE_FORMATS, export, folder_names, formats_for
from unveil.runs.reader import load, read_items


@pytest.mark.parametrize("pictures", ["array", "none"])
def test_only_image_files_can_be_exported_as_folders(tmp_path: Path, pictures: str) -> None:
    run = make_run(tmp_path / "run", pictures=pictures)
    offered = formats_for(run)
    assert set(FORMATS) - set(offered) == {*IMAGE_FORMATS, "h5ad"}
    for kind in offered:
        assert export(run.folder, kind, tmp_path / kind).exists()
    for kind in IMAGE_FORMATS:
        with pytest.raises(UnveilError, match="needs image files"):
            export(run.folder, kind, tmp_path / kind)


def test_image_files_can_be_exported_as_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    assert formats_for(run) == tuple(kind for kind in FORMATS if kind != "h5ad")
    for kind in formats_for(run):
        assert export(run.folder, kind, tmp_path / kind).exists()
    with pytest.raises(UnveilError, match=r"was not made from a \.h5ad file"):
        export(run.folder, "h5ad", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    assert "parquet" not in formats_for(run)


def test_a_csv_needs_no_torch(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", each=300, clusters=4)
    (run / "review.jsonl").write_text('{"number":1,"time":"","kind":"name","data":{"cluster":2,"text":"fox"}}\n')
    code = (
        "import sys; sys.argv = ['unveil', 'export', sys.argv[1]]\n"
        "from unveil.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print([name for name in ('torch', 'sklearn', 'scipy', 'PIL') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(run)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.stdout.splitlines()[-1] == "[]", result.stderr
    assert (run / "export-csv.csv").read_text().count(",fox,novel,") == 300


LABELS = (
    "a/b",
    "a:b",
    "tabby/cat",
    "tabby_cat",
    "c0.",
    "c0",
    "Fox",
    "fox",
    "é",
    "e\u0301",
    "..",
    "../../x",
    "/etc/x",
    "",
)
HOSTILE = (*LABELS, "NUL", "con.txt", "x" * 300, "é" * 200, "y" * 118 + ". .hidden", "\n", "\udcff")


def test_every_class_has_a_folder_of_its_own() -> None:
    names = folder_names(HOSTILE)
    assert set(names) == set(HOSTILE)
    assert len({name.casefold() for name in names.values()}) == len(HOSTILE)
    for name in names.values():
        assert name == Path(name).name
        assert not name.startswith(".")
        assert len(name.encode()) < 200
        assert name.partition(".")[0].upper() not in ("NUL", "CON")
    assert names["tabby_cat"] == "tabby_cat"
    assert names["c0"] == "c0"
    assert folder_names(reversed(HOSTILE)) == names


def test_classes_with_similar_names_are_not_merged(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pictures="files", clusters=3)
    log = Log(load(run))
    for number, (cluster, name) in enumerate([(2, "a/b"), (3, "a:b"), (4, "../../a_b")]):
        log.act("name", {"cluster": cluster, "text": name}, number)
    folders = export(run, "folders", tmp_path / "deep" / "er" / "out")
    assert [len(list(folder.iterdir())) for folder in folders.iterdir() if folder.is_dir()] == [12, 12, 12]
    assert sorted(path.name for path in (tmp_path / "deep" / "er").iterdir()) == ["out"]
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["er"]


def test_a_spreadsheet_finds_no_formula(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    log = Log(load(run))
    names = ("=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(A1)")
    for number, name in enumerate(names):
        log.act("name", {"cluster": 2 + number, "text": name}, number)
    with export(run, "csv", tmp_path / "a.csv").open(newline="") as file:
        found = list(dict.fromkeys(row["label"] for row in csv.DictReader(file)))
    assert found == ["'=cmd|' /C calc'!A0", "'+1+1", "-2", "'@SUM(A1)"]  # a number is no formula


@pytest.mark.parametrize("kind", ["csv", "folders"])
def test_a_link_in_the_place_of_an_export_is_left_alone(tmp_path: Path, kind: str) -> None:
    run = write_run(tmp_path / "run", pictures="files")
    (tmp_path / "precious").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "precious")
    with pytest.raises(UnveilError, match="out is"):
        export(run, kind, tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert not list((tmp_path / "precious").iterdir())


@pytest.mark.parametrize("kind", ["folders", "fiftyone"])
def test_folders_are_written_again_after_more_review(tmp_path: Path, kind: str) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    target = export(run.folder, kind, tmp_path / "out", copy=True)
    images = [path for path in target.rglob("*") if path.suffix == ".png"]
    assert images
    assert not any(path.is_symlink() for path in images)
    Log(run).act("name", {"cluster": run.n_known, "text": "fox"}, 0)
    (target / "mine.txt").write_text("notes")
    export(run.folder, kind, tmp_path / "out")
    again = [path for path in target.rglob("*") if path.suffix == ".png"]
    assert len(again) == len(images)
    assert all(path.is_symlink() for path in again)
    assert (target / "mine.txt").read_text() == "notes"  # only what an export wrote is replaced
    if kind == "folders":
        assert {path.parent.name for path in again} == {"fox", "novel-1", "novel-2", "novel-3"}
        assert not (target / "novel-0").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "x").write_text("")
    with pytest.raises(UnveilError, match="no export wrote it: choose another --out"):
        export(run.folder, kind, other)
    with pytest.raises(UnveilError, match="--copy is for folders and fiftyone"):
        export(run.folder, "csv", None, copy=True)


def test_cvat_has_a_tag_for_each_image(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    root = ElementTree.parse(export(run.folder, "cvat", None)).getroot()
    assert root.findtext("version") == "1.1"
    labels = {label.findtext("name") for label in root.findall("meta/task/labels/label")}
    images = root.findall("image")
    assert len(images) == int(run.new.sum())
    assert {image.find("tag").get("label") for image in images} == labels  # type: ignore[union-attr]
    assert images[0].get("width") == "16"


def test_label_studio_shows_texts_and_knows_the_classes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="none")
    (run.folder / "texts.json").write_text(json.dumps([f"text {row}" for row in range(len(run.ids))]))
    target = export(run.folder, "label-studio", None)
    tasks = json.loads(target.read_text())
    first = int(run.new.argmax())
    assert tasks[0]["data"] == {"id": run.ids[first], "text": f"text {first}"}
    assert tasks[0]["predictions"][0]["result"][0]["to_name"] == "text"
    view = ElementTree.parse(target.with_suffix(".config.xml")).getroot()
    assert [choice.get("value") for choice in view.findall("Choices/Choice")] == [f"novel-{i}" for i in range(4)]
    assert view.find("Text").get("value") == "$text"  # type: ignore[union-attr]


def test_label_studio_finds_files_with_unusual_names(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    for task in json.loads(export(run.folder, "label-studio", None).read_text()):
        address = urlsplit(task["data"]["image"])
        assert address.path == "/data/local-files/"
        (path,) = parse_qs(address.query)["d"]  # < and > are in the folder's name
        assert Path("/", path).is_file()


def test_cvat_names_images_of_one_name_by_their_folders(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    items = [dict(row, path=str(tmp_path / f"{n % 2}" / "same.png")) for n, row in enumerate(read_items(run.folder))]
    for path in {Path(item["path"]) for item in items}:
        path.parent.mkdir()
        Image.new("L", (8, 8)).save(path)
    FORMATS["cvat"](items[:2], run.folder, tmp_path / "cvat.xml")
    images = ElementTree.parse(tmp_path / "cvat.xml").getroot().findall("image")
    assert [image.get("name") for image in images] == ["0/same.png", "1/same.png"]


def test_fiftyone_reads_it_as_documented(tmp_path: Path) -> None:
    """Its reader finds the image of a label by the file's name without the ending, takes a label that is a text as it
    is, and makes fields of the attributes, for which names of its own fields cannot be used."""
    run = make_run(tmp_path / "run", pictures="files")
    target = export(run.folder, "fiftyone", None)
    content = json.loads((target / "labels.json").read_text())
    assert set(content) == {"classes", "labels"}
    names = [path.stem for path in (target / "data").iterdir()]
    assert sorted(names) == sorted(content["labels"])
    assert len(names) == int(run.new.sum())
    for label in content["labels"].values():
        assert set(label) == {"label", "confidence", "attributes"}
        assert label["label"] in content["classes"]
        assert 0 <= label["confidence"] <= 1
        assert not {"id", "tags", "label", "confidence", "logits"} & set(label["attributes"])
    assert {label["attributes"]["item"] for label in content["labels"].values()} == {
        name for name, new in zip(run.ids, run.new, strict=True) if new
    }
