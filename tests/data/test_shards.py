"""Shards of files and folders: what they are called, in which order they come, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unveil.data.shards import find_shards
from unveil.errors import UnveilError


def test_a_single_file_is_a_shard(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.ones((3, 2), dtype=np.float32))
    (shard,) = find_shards(tmp_path / "rows.npy")
    assert shard.name == "rows"
    (piece,) = shard.pieces()
    assert list(piece.ids) == ["rows/00000000", "rows/00000001", "rows/00000002"]
    assert piece.present.all()
    np.testing.assert_array_equal(piece.items.array, np.ones((3, 2)))


def test_a_folder_of_texts_is_divided(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text(f"\ufeffsentence {number}", encoding="utf-8")
    shards = find_shards(tmp_path, files_per_shard=2)
    assert [shard.name for shard in shards] == ["texts-000000", "texts-000001", "texts-000002"]
    pieces = [piece for shard in shards for piece in shard.pieces()]
    assert [text for piece in pieces for text in piece.items.texts] == [f"sentence {number}" for number in range(5)]
    assert [name for piece in pieces for name in piece.ids] == [f"{number}.txt" for number in range(5)]


def test_a_folder_of_images_is_divided(tmp_path: Path) -> None:
    for number in range(3):
        Image.new("L", (4, 4), 80 * number).save(tmp_path / f"{number}.png")
    first, second = find_shards(tmp_path, files_per_shard=2)
    assert (first.name, second.name) == ("images-000000", "images-000001")
    (piece,) = second.pieces()
    assert [path.name for path in piece.items.paths] == ["2.png"]


def test_a_signature_follows_names_and_sizes(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.ones((3, 2), dtype=np.float32))
    before = find_shards(tmp_path / "rows.npy")[0].signature()
    assert find_shards(tmp_path)[0].signature() == before
    np.save(tmp_path / "rows.npy", np.ones((4, 2), dtype=np.float32))
    assert find_shards(tmp_path)[0].signature() != before


def test_what_is_no_shard_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(UnveilError, match=r"notes\.md is no folder and no .*\.npy.* file"):
        find_shards(tmp_path / "notes.md")
    with pytest.raises(UnveilError, match=r"there is no file or folder .*gone\.npy"):
        find_shards(tmp_path / "gone.npy")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(UnveilError, match=r"broken\.npy cannot be read .* replace or remove the file"):
        list(find_shards(tmp_path / "broken.npy")[0].pieces())


def test_results_of_two_files_never_have_one_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/b.npy", "a-b.npy"):
        np.save(tmp_path / name, np.ones((2, 2), dtype=np.float32))
    with pytest.raises(UnveilError, match="results of the same name: rename one"):
        find_shards(tmp_path)
