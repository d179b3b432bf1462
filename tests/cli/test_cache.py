"""`unveil cache`: what is stored is listed, and what was not used for a while is deleted."""

import json
import os
import time
from pathlib import Path

import pytest

from unveil import storage
from unveil.cli import cache
from unveil.cli.output import size_text
from unveil.errors import UnveilError

DAY = 86400


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Embeddings of today, a stage used 40 days ago, and things that unveil did not put there."""
    folder = tmp_path / "store"
    for name, days, size in (("embeddings.npy", 0, 500), ("model.safetensors", 40, 2000)):
        entry = folder / storage.identity(name=name)
        with storage.locked(entry):
            (entry / name).write_bytes(bytes(size))
        os.utime(entry / storage.LOCK, (time.time() - DAY * days,) * 2)
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("keep")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep")
    (folder / storage.identity(name="a link")).symlink_to(outside)
    return folder


def kinds(store: Path) -> list[str]:
    return [entry.kind for entry in storage.entries(store)]


def test_entries_are_listed_with_kind_size_and_last_use(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.list_(store=store)
    told = capsys.readouterr().out
    assert "pre-trained stage" in told
    assert "40 days ago" in told
    assert "2 entries, 2.5 kB" in told
    cache.list_(store=store, json=True)
    listed = json.loads(capsys.readouterr().out)
    assert listed["bytes"] == 2500
    assert [entry["kind"] for entry in listed["entries"]] == ["pre-trained stage", "embeddings"]


def test_a_store_that_is_not_there_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.list_(store=tmp_path / "none")
    assert "0 entries, 0 bytes" in capsys.readouterr().out


def test_old_entries_are_deleted_and_nothing_else(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.clean(store=store, dry_run=True)
    assert "1 entries would be deleted, 2.0 kB" in capsys.readouterr().out
    assert len(kinds(store)) == 2
    cache.clean(store=store)
    assert "1 entries deleted, 2.0 kB" in capsys.readouterr().out
    assert kinds(store) == ["embeddings"]
    cache.clean(store=store, all_=True)
    assert kinds(store) == []
    assert (store / "notes" / "mine.txt").exists()
    assert (store.parent / "outside" / "precious").exists()


def test_an_entry_in_use_is_kept(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used = storage.entries(store)[0]
    with storage.locked(used.folder):
        cache.clean(store=store, all_=True)
    assert kinds(store) == [used.kind]
    assert "1 entries are in use and were kept" in capsys.readouterr().out


def test_a_use_makes_an_entry_new(store: Path) -> None:
    old = next(entry for entry in storage.entries(store) if entry.kind == "pre-trained stage")
    with storage.locked(old.folder):
        pass
    cache.clean(store=store)
    assert len(kinds(store)) == 2


def test_days_are_not_negative(store: Path) -> None:
    with pytest.raises(UnveilError, match="--older-than is -1: give a number of days"):
        cache.clean(store=store, older_than=-1)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (123456789, "123 MB"), (5e12, "5,000 GB")]
)
def test_sizes_for_people(size: float, text: str) -> None:
    assert size_text(size) == text
