"""One type for images, image files and vectors."""

import os
from pathlib import Path

import numpy as np
import pytest

from unveil.data.items import Items

KINDS = {
    "images": np.arange(5 * 4, dtype=np.uint8).reshape(5, 2, 2, 1),
    "vectors": np.arange(10, dtype=np.float32).reshape(5, 2),
    "files": tuple(Path(f"{i}.png") for i in range(5)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_taken_and_joined_whatever_the_kind(kind: str) -> None:
    items = Items.of(KINDS[kind])
    assert (items.kind, len(items)) == (kind, 5)
    both = items.take(np.array([4, 1])).and_then(items.take(slice(0, 1)))
    assert both.kind == kind
    expected = [KINDS[kind][row] for row in (4, 1, 0)]
    assert list(both.paths) == expected if kind == "files" else np.array_equal(both.array, np.stack(expected))
    assert [len(piece) for piece in items.pieces(2)] == [2, 2, 1]


def test_files_have_no_array_and_arrays_no_paths() -> None:
    assert Items.of(KINDS["images"]).paths == ()
    with pytest.raises(AssertionError):
        _ = Items.of(KINDS["files"]).array


def test_a_fingerprint_of_an_array_is_its_content() -> None:
    images = np.arange(10_000 * 4, dtype=np.uint8).reshape(10_000, 2, 2, 1)
    name = Items.of(images).fingerprint()
    assert Items.of(images.copy()).fingerprint() == name
    assert Items.of(np.asfortranarray(images)).fingerprint() == name  # the layout in memory is no content
    for row in (0, 8191, 8192, 9999):  # both sides of the pieces in which it is read
        changed = images.copy()
        changed[row, 1, 1] ^= 1
        assert Items.of(changed).fingerprint() != name
    assert Items.of(images[::-1]).fingerprint() != name
    assert Items.of(images.reshape(10_000, 4, 1, 1)).fingerprint() != name
    assert Items.of(np.zeros((2, 2), np.float32)).fingerprint() != Items.of(np.zeros((2, 4), np.float16)).fingerprint()


def test_a_fingerprint_of_a_mapped_file_is_that_of_the_array(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", vectors)
    assert Items.of(np.load(tmp_path / "x.npy", mmap_mode="r")).fingerprint() == Items.of(vectors).fingerprint()


def test_a_fingerprint_of_files_is_their_content(tmp_path: Path) -> None:
    paths = tuple(tmp_path / place / name for place in ("a", "b") for name in ("1.png", "2.png"))
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"picture")
        os.utime(path, ns=(0, 10**18))
    name = Items.of(paths).fingerprint()
    assert Items.of(paths).fingerprint() == name
    assert Items.of(paths[:3]).fingerprint() != name
    os.utime(paths[3], ns=(0, 10**18 + 1))
    assert Items.of(paths).fingerprint() == name
    paths[3].write_bytes(b"fixture")  # of the same size, and with the same time
    os.utime(paths[3], ns=(0, 10**18 + 1))
    assert Items.of(paths).fingerprint() != name
