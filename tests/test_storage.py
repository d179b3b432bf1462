"""The stage store: names by content, and one writer at a time."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unveil import storage as store
from unveil.errors import UnveilError


def test_an_identity_is_stable_across_versions_and_orders() -> None:
    assert store.identity(stage="rotation", settings={"lr": 0.1, "epochs": 3}) == "83c2be321dde6b35332b"
    assert store.identity(a=1, b={"c": 2, "d": 3}) == store.identity(b={"d": 3, "c": 2}, a=1)


def test_an_identity_depends_on_every_part() -> None:
    parts = {"stage": "rotation", "settings": {"lr": 0.1}, "data": "x", "after": ""}
    changes = [{"stage": "supervised"}, {"settings": {"lr": 0.2}}, {"settings": {}}, {"data": "y"}, {"after": "z"}]
    assert len({store.identity(**parts), *(store.identity(**{**parts, **change}) for change in changes)}) == 6


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


def test_a_lock_that_is_no_file_of_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("content")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / store.LOCK).symlink_to(tmp_path / "precious")
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / store.LOCK)
    for folder in ("a", "b"):
        with pytest.raises(UnveilError, match=r"\.lock is"), store.locked(tmp_path / folder):
            pass
    assert (tmp_path / "precious").read_text() == "content"


def test_what_killed_processes_left_is_cleared(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = [f".a.{gone.pid}.part", f".b.c.{gone.pid}.part"]
    kept = [f".a.{os.getpid()}.part", ".hidden", "a.part", ".a.part", ".a.1x.part"]
    for name in (*left, *kept):
        (tmp_path / name).touch()
    with store.locked(tmp_path):
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, store.LOCK])
