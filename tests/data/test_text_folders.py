"""Folders of text files."""

from pathlib import Path

import pytest

from unveil.data.known_new import read_task
from unveil.errors import UnveilError


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8-sig"))


def test_a_folder_for_each_class_and_any_folder_of_new_ones(tmp_path: Path) -> None:
    for name in ("known/a/1.txt", "known/b/2.txt", "new/deep/3.txt", "new/.hidden/4.txt"):
        write(tmp_path / name, f"text of {name}\n")
    task = read_task(tmp_path / "known", tmp_path / "new")
    assert task.items.texts == ("text of known/a/1.txt", "text of known/b/2.txt", "text of new/deep/3.txt")
    assert (task.known, task.ids) == (("a", "b"), ("a/1.txt", "b/2.txt", "deep/3.txt"))
    (tmp_path / "known" / "c").mkdir()
    with pytest.raises(UnveilError, match="holds no texts"):
        read_task(tmp_path / "known", tmp_path / "new")


def test_a_folder_without_classes_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    write(tmp_path / "known" / "1.txt", "a")
    with pytest.raises(UnveilError, match=r"expected .*/CLASS/\*\.txt"):
        read_task(tmp_path / "known", None)
    (tmp_path / "known" / "a").mkdir()
    (tmp_path / "known" / "a" / "1.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UnveilError, match="not UTF-8"):
        read_task(tmp_path / "known", None)
