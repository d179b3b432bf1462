"""Thumbnails of image files: made once, square, kept by path; never a reason for a run or a page to fail."""

import os
from pathlib import Path

import pytest
from PIL import Image
from review_runs import make_run

from unveil.pages.review.pictures import Pictures
from unveil.runs import thumbnails as module
from unveil.runs.reader import load
from unveil.runs.thumbnails import Thumbnails, kept_in, main


def test_missing_thumbnails_are_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    Image.new("RGB", (900, 500), "red").save(run.paths[30])
    thumbnails = Thumbnails(run.folder)
    assert thumbnails.missing(["", *run.paths, run.paths[0]]) == list(run.paths)
    assert thumbnails.make_missing(run.paths) == 72
    picture = thumbnails.get(run.paths[30])
    assert picture is not None
    assert picture.size == (224, 224)  # square
    monkeypatch.setattr(module, "read_image", lambda *_, **__: 1 / 0)
    again = Thumbnails(run.folder)
    assert again.missing(run.paths) == []
    assert again.get(run.paths[30]) is not None
    sheet = Pictures(load(run.folder)).sheet([30, 31], 112)
    assert sheet[2] == "112x112,16x16"


def test_the_program_makes_what_a_run_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run", pictures="files")
    monkeypatch.setattr(os, "nice", lambda _: 0)
    Path(run.paths[5]).write_bytes(b"no picture")
    main(run.folder)
    assert Thumbnails(run.folder).missing(run.paths) == [run.paths[5]]


def test_pictures_that_were_decoded_for_something_else_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, out = tmp_path / "wide.png", tmp_path / "deep" / "run"
    picture = Image.new("RGB", (600, 300), "blue")
    picture.paste("red", (0, 0, 120, 300))  # outside of the middle
    with kept_in(out) as keep:
        assert keep is not None
        assert not out.exists()  # nothing was given yet
        keep(wide, picture)
    assert [path.name for path in out.iterdir()] == ["thumbnails.sqlite"]
    monkeypatch.setattr(module, "read_image", lambda *_, **__: 1 / 0)
    thumbnail = Thumbnails(out).get(str(wide.resolve()))
    assert thumbnail is not None
    assert thumbnail.size == (224, 224)
    assert all(abs(a - b) < 9 for a, b in zip(thumbnail.getpixel((2, 100)), (0, 0, 255), strict=True))  # type: ignore[arg-type]


def test_what_is_kept_later_replaces_the_same_file_and_leaves_the_others(tmp_path: Path) -> None:
    for color in ("red", "blue"):
        with kept_in(tmp_path) as keep:
            assert keep is not None
            keep(tmp_path / "a.png", Image.new("RGB", (300, 300), color))
            if color == "red":
                keep(tmp_path / "b.png", Image.new("RGB", (300, 300), color))
    a, b = (Thumbnails(tmp_path).get(str(tmp_path.resolve() / name)) for name in ("a.png", "b.png"))
    assert a is not None
    assert b is not None
    assert a.getpixel((9, 9)) == (0, 0, 254)
    assert b.getpixel((9, 9)) == (254, 0, 0)


def test_an_error_leaves_what_was_kept_until_then(tmp_path: Path) -> None:
    def stops() -> None:
        with kept_in(tmp_path) as keep:
            assert keep is not None
            keep(tmp_path / "a.png", Image.new("RGB", (300, 300)))
            raise InterruptedError

    with pytest.raises(InterruptedError):
        stops()
    assert Thumbnails(tmp_path).missing([str(tmp_path.resolve() / "a.png")]) == []


@pytest.mark.parametrize("obstacle", ["damaged", "folder", "name"])
def test_what_cannot_be_stored_is_made_when_it_is_needed(tmp_path: Path, obstacle: str) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (300, 300)).save(path)
    name = "\udcff.png" if obstacle == "name" else "a.png"
    if obstacle == "damaged":
        (tmp_path / "thumbnails.sqlite").write_bytes(b"no database" * 100)
    if obstacle == "folder":
        (tmp_path / "thumbnails.sqlite").mkdir()
    with kept_in(tmp_path) as keep:
        assert keep is not None
        keep(tmp_path / name, Image.new("RGB", (300, 300)))
    thumbnails = Thumbnails(tmp_path)
    assert thumbnails.missing([str(path)]) == [str(path)]
    assert thumbnails.get(str(path)) is not None
    assert thumbnails.get(str(tmp_path / "\udcff.png")) is None


def test_a_page_does_not_bring_a_deleted_run_back(tmp_path: Path) -> None:
    assert Thumbnails(tmp_path / "gone").get(str(tmp_path / "a.png")) is None
    assert not (tmp_path / "gone").exists()
