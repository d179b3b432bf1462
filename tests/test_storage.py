"""The stage store: names by content, and one writer at a time."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from unveil import storage as store
from unveil.errors import UnveilError


def test_an_identity_is_stable_across_versions_and_orders() -> None:
    assert store.identity(stage="rotation", settings={"lr": 0.1, "epochs": 3}) == "1f018bbb6f0932b42760"
    assert store.identity(a=1, b={"c": 2, "d": 3}) == store.identity(b={"d": 3, "c": 2}, a=1)


def test_an_identity_depends_on_every_part() -> None:
    parts = {"stage": "rotation", "settings": {"lr": 0.1}, "data": "x", "after": ""}
    changes = [{"stage": "supervised"}, {"settings": {"lr": 0.2}}, {"settings": {}}, {"data": "y"}, {"after": "z"}]
    assert len({store.identity(**parts), *(store.identity(**{**parts, **change}) for change in changes)}) == 6


def test_a_fingerprint_of_an_array_is_its_content() -> None:
    images = np.arange(10_000 * 4, dtype=np.uint8).reshape(10_000, 2, 2, 1)
    name = store.fingerprint(images)
    assert store.fingerprint(images.copy()) == name
    assert store.fingerprint(np.asfortranarray(images)) == name  # the layout in memory is no content
    for row in (0, 8191, 8192, 9999):  # both sides of the pieces in which it is read
        changed = images.copy()
        changed[row, 1, 1] ^= 1
        assert store.fingerprint(changed) != name
    assert store.fingerprint(images[::-1]) != name
    assert store.fingerprint(images.reshape(10_000, 4, 1, 1)) != name
    assert store.fingerprint(np.zeros((2, 2), np.float32)) != store.fingerprint(np.zeros((2, 4), np.float16))


def test_a_fingerprint_of_a_mapped_file_is_that_of_the_array(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", vectors)
    assert store.fingerprint(np.load(tmp_path / "x.npy", mmap_mode="r")) == store.fingerprint(vectors)


def test_a_fingerprint_of_files_is_their_class_name_size_and_time(tmp_path: Path) -> None:
    paths = tuple(tmp_path / place / name for place in ("a", "b") for name in ("1.png", "2.png"))
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"picture")
        os.utime(path, ns=(0, 10**18))
    name = store.fingerprint(paths)
    assert store.fingerprint(paths) == name
    assert store.fingerprint(paths[:3]) != name
    os.utime(paths[3], ns=(0, 10**18 + 1))
    assert store.fingerprint(paths) != name
    paths[3].write_bytes(b"another")
    os.utime(paths[3], ns=(0, 10**18))
    assert store.fingerprint(paths) == name  # same size and time: content is not read
    paths[3].write_bytes(b"longer than before")
    os.utime(paths[3], ns=(0, 10**18))
    assert store.fingerprint(paths) != name


def test_a_second_process_waits_for_the_lock(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    script = (
        "import sys, pathlib, unveil.storage as store\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "print('asking', flush=True)\n"
        "with store.locked(folder):\n"
        "    print((folder / 'content').read_text(), flush=True)\n"
    )
    with store.locked(folder):
        other = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "asking\n"
        time.sleep(0.2)
        assert other.poll() is None
        (folder / "content").write_text("filled")
    output, _ = other.communicate(timeout=30)
    assert (other.returncode, output) == (0, "filled\n")


def test_a_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), store.locked(tmp_path / "stage"):
        raise ValueError("stop")
    with store.locked(tmp_path / "stage"):
        assert (tmp_path / "stage").is_dir()


def test_a_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnveilError, match="could not be written"), store.locked(tmp_path / "file" / "stage"):
        pass


def test_the_default_store_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNVEIL_STORE", "/some/place")
    assert store.default_store() == Path("/some/place")
    monkeypatch.delenv("UNVEIL_STORE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert store.default_store() == Path("/cache/unveil/stages")
