"""The log of a review: what it means, and that nothing breaks it."""

import multiprocessing
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from review_runs import make_run, write_run

from unveil.errors import UnveilError
from unveil.pages.review.log import ConflictError, Log, TroubleError
from unveil.review.corrections import REJECTED, State, replay
from unveil.review.decisions import corrected_items
from unveil.review.export import export
from unveil.review.log import LAST, LOG, Entry, clean_name, parse_entries
from unveil.runs.reader import Run, load, read_items

A, B, C, D = 2, 3, 4, 5
"""Clusters of the run: two classes are known, and each class has 12 items."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "run")


def play(run: Run, *actions: tuple[str, dict[str, Any]]) -> State:
    state = State(run)
    for number, (kind, data) in enumerate(actions, start=1):
        state.apply(Entry(number=number, time="", kind=kind, data=data))
    return state


def rows_of(state: State, cluster: int) -> list[int]:
    return np.flatnonzero(state.labels == cluster).tolist()


def test_names_and_known_classes(run: Run) -> None:
    state = play(run, ("name", {"cluster": A, "text": "  fox "}), ("known", {"cluster": B, "class": 0}))
    assert state.name(A) == "fox"
    assert state.name(B) == "cat"
    assert state.meanings[B].name == "novel-1"
    state = play(run, ("name", {"cluster": A, "text": "cat"}))
    assert state.meanings[A].known == 0
    state = play(run, ("known", {"cluster": B, "class": 0}), ("known", {"cluster": B, "class": None}))
    assert state.name(B) == "novel-1"
    assert (state.labels == run.labels).all()


def test_merge_keeps_the_first_and_a_given_name(run: Run) -> None:
    state = play(run, ("name", {"cluster": B, "text": "fox"}), ("merge", {"clusters": [A, B, C]}))
    assert len(rows_of(state, A)) == 36
    assert state.name(A) == "fox"
    assert B not in state.meanings
    assert C not in state.meanings
    with pytest.raises(UnveilError, match="no class 3 any more"):
        state.apply(Entry(number=3, time="", kind="name", data={"cluster": B, "text": "x"}))


def test_split_move_reject(run: Run) -> None:
    rows = np.flatnonzero(run.labels == A).tolist()
    state = play(run, ("split", {"cluster": A, "parts": [rows[:5], rows[5:9], rows[9:]]}))
    assert [len(rows_of(state, cluster)) for cluster in (A, 6, 7)] == [5, 4, 3]
    assert sorted(meaning.name for meaning in state.meanings.values())[-6:] == [f"novel-{i}" for i in range(6)]
    state = play(run, ("move", {"rows": rows[:3], "to": None, "text": "owl"}), ("move", {"rows": rows[3:], "to": 0}))
    assert state.name(6) == "owl"
    assert rows_of(state, 6) == rows[:3]
    assert A not in state.meanings  # it is empty
    state = play(run, ("reject", {"rows": rows[:2]}), ("move", {"rows": rows[1:2], "to": B}))
    assert np.flatnonzero(state.rejected).tolist() == rows[:1]
    assert state.labels[rows[1]] == B


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("name", {"cluster": 99, "text": "x"}, "no class 99"),
        ("name", {"cluster": True, "text": "x"}, "no class True"),
        ("name", {"cluster": 0, "text": "x"}, "is a known class"),
        ("name", {"cluster": A, "text": "novel-1"}, "merge the two"),
        ("name", {"cluster": A, "text": "a\nb"}, "one line"),
        ("name", {"cluster": A, "text": " "}, "1 to 200"),
        ("known", {"cluster": A, "class": B}, "is no known class"),
        ("merge", {"clusters": [A]}, "two or more"),
        ("merge", {"clusters": [A, 0]}, "is a known class"),
        ("split", {"cluster": A, "parts": [[24, 25], [25]]}, "share no item"),
        ("split", {"cluster": A, "parts": [[24], [40]]}, "not of 'novel-0' any more"),
        ("move", {"rows": [0], "to": A}, "came with its label"),
        ("move", {"rows": [10**9], "to": A}, "no such item"),
        ("reject", {"rows": [-1]}, "no such item"),
        ("reject", {"rows": []}, "one or more items"),
        ("reject", {"rows": [[1], [2, 3]]}, "one or more items"),
        ("reject", {"rows": ["a"]}, "one or more items"),
        ("paint", {}, "the action is 'paint'"),
        ("undo", {}, "nothing to undo"),
    ],
)
def test_what_cannot_be_is_told_and_changes_nothing(run: Run, kind: str, data: dict[str, Any], message: str) -> None:
    state = State(run)
    with pytest.raises(UnveilError, match=message):
        state.apply(Entry(number=1, time="", kind=kind, data=data))
    assert (state.labels == run.labels).all()
    assert state.meanings == State(run).meanings
    assert state.length == 0


def test_undo_and_redo(run: Run) -> None:
    state = play(run, ("merge", {"clusters": [A, B]}), ("name", {"cluster": A, "text": "fox"}), ("undo", {}))
    assert state.name(A) == "novel-0"
    state = play(run, ("merge", {"clusters": [A, B]}), ("undo", {}), ("redo", {}))
    assert B not in state.meanings
    state = play(run, ("merge", {"clusters": [A, B]}), ("undo", {}), ("accept", {"cluster": A}))
    assert state.undone == []
    with pytest.raises(UnveilError, match="nothing to redo"):
        state.apply(Entry(number=4, time="", kind="redo", data={}))


ACTIONS = st.one_of(
    st.tuples(st.just("name"), st.integers(0, 12), st.text(max_size=3)),
    st.tuples(st.just("known"), st.integers(0, 12), st.sampled_from([None, 0, 1])),
    st.tuples(st.just("merge"), st.lists(st.integers(2, 12), max_size=3)),
    st.tuples(st.just("move"), st.lists(st.integers(20, 71), max_size=9), st.one_of(st.none(), st.integers(0, 12))),
    st.tuples(st.just("reject"), st.lists(st.integers(20, 71), max_size=9)),
    st.tuples(st.just("split"), st.integers(2, 12), st.integers(1, 5)),
    st.tuples(st.just("accept"), st.integers(0, 12)),
    st.tuples(st.just("undo")),
    st.tuples(st.just("redo")),
)


def as_data(state: State, action: tuple[Any, ...]) -> dict[str, Any]:
    keys = {"name": ("cluster", "text"), "known": ("cluster", "class"), "merge": ("clusters",), "accept": ("cluster",)}
    keys |= {"move": ("rows", "to"), "reject": ("rows",), "undo": (), "redo": ()}
    if action[0] == "split":
        rows = rows_of(state, action[1])
        return {"cluster": action[1], "parts": [rows[: action[2]], rows[action[2] :]]}
    return dict(zip(keys[action[0]], action[1:], strict=True))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("shared") / "run")


@settings(deadline=None, max_examples=100)
@given(actions=st.lists(ACTIONS, max_size=25))
def test_undoing_everything_gives_the_original(shared: Run, actions: list[tuple[Any, ...]]) -> None:
    run = shared
    state, entries = State(run), []
    for action in actions:
        entry = Entry(number=state.length + 1, time="", kind=action[0], data=as_data(state, action))
        try:
            state.apply(entry)
        except UnveilError:
            continue
        entries.append(entry)
        filled = {label for label in np.unique(state.labels).tolist() if label != REJECTED}
        assert filled | {0, 1} == set(state.meanings)  # every item has a class, and no cluster is empty
    again = replay(State(run), parse_entries(b"".join(entry.line() for entry in entries), Path("log"))[0], Path("log"))
    assert (again.labels == state.labels).all()
    assert again.meanings == state.meanings
    labels, meanings, undone = state.labels.copy(), dict(state.meanings), len(state.done)
    for kind in ["undo"] * undone + ["redo"] * undone:
        if kind == "redo" and state.done == []:
            assert (state.labels == run.labels).all()
            assert state.meanings == State(run).meanings
        state.apply(Entry(number=state.length + 1, time="", kind=kind, data={}))
    assert (state.labels == labels).all()
    assert state.meanings == meanings


def test_a_torn_line_is_as_if_it_had_not_been_written(run: Run) -> None:
    log = Log(run)
    log.act("name", {"cluster": A, "text": "fox"}, 0)
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + b'{"number":2,"time":"","kind":"mer')
    again = Log(run)
    assert again.state.length == 1
    assert again.state.name(A) == "fox"
    again.act("name", {"cluster": B, "text": "owl"}, 1)
    assert len(log.path.read_bytes().splitlines()) == 2
    assert Log(run).state.name(B) == "owl"


def test_a_damaged_or_foreign_log_is_told(run: Run) -> None:
    (run.folder / LOG).write_text("nonsense\n")
    with pytest.raises(UnveilError, match=r"line 1 of .* is damaged"):
        Log(run)
    (run.folder / LOG).write_bytes(Entry(number=1, time="", kind="reject", data={"rows": [5000]}).line())
    with pytest.raises(UnveilError, match="does not fit this run"):
        corrected_items(run.folder)


def test_a_write_that_fails_changes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(run)
    log.act("accept", {"cluster": A}, 0)
    before = log.path.read_bytes()
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:10]))
        with pytest.raises(UnveilError, match="disk is full"):
            log.act("accept", {"cluster": B}, 1)
    assert log.path.read_bytes() == before
    log.refresh()
    assert log.state.length == 1
    assert not log.state.meanings[B].reviewed


def test_conflicts_are_about_the_same_things_only(run: Run) -> None:
    here, there = Log(run), Log(run)
    rows = np.flatnonzero(run.labels == A).tolist()
    here.act("move", {"rows": rows[:2], "to": B}, 0)
    there.act("name", {"cluster": C, "text": "fox"}, 0)  # something else
    there.act("reject", {"rows": rows[5:6]}, 0)
    for kind, data in [
        ("name", {"cluster": A, "text": "owl"}),
        ("reject", {"rows": rows[1:3]}),
        ("merge", {"clusters": [D, B]}),
        ("undo", {}),
    ]:
        with pytest.raises(ConflictError):
            there.act(kind, data, 0)
    here.refresh()
    assert here.state.length == 3
    here.act("undo", {}, 3)
    assert (here.state.labels == run.labels)[rows[5]]


def test_a_log_that_is_cut_is_read_again_and_a_deleted_one_is_said(run: Run) -> None:
    log = Log(run)
    log.act("name", {"cluster": A, "text": "fox"}, 0)
    log.act("name", {"cluster": B, "text": "owl"}, 1)
    log.path.write_bytes(log.path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(UnveilError, match=r"has lost line 2 at its end: .* delete review\.last"):
        log.refresh()
    log.path.with_name(LAST).unlink()
    log.refresh()
    assert log.state.length == 1
    log.path.unlink()
    with pytest.raises(TroubleError, match="was deleted while it was in use"):
        log.refresh()
    assert log.state.length == 1
    log.forget()
    log.refresh()
    assert log.state.length == 0


def _append(run: Run, cluster: int, times: int) -> None:
    log = Log(run)
    for number in range(times):
        log.act("accept", {"cluster": cluster, "reviewed": number % 2 == 0}, log.state.length)


def test_processes_and_threads_append_together(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Log._append

    def slowly(log: Log, descriptor: int, line: bytes) -> None:
        time.sleep(0.003)  # time enough for others to come between reading and writing
        real(log, descriptor, line)

    monkeypatch.setattr(Log, "_append", slowly)
    workers: list[Any] = [multiprocessing.get_context("fork").Process(target=_append, args=(run, A, 30))]
    workers += [threading.Thread(target=_append, args=(run, cluster, 30)) for cluster in (B, C)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert workers[0].exitcode == 0
    log = Log(run)
    entries, used = parse_entries(log.path.read_bytes(), log.path)
    assert [entry.number for entry in entries] == list(range(1, 91))
    assert used == log.path.stat().st_size
    assert log.state.length == 90


def test_export_applies_the_review_and_keeps_the_original(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pictures="files")
    before = (run / "items.csv").read_bytes()
    log = Log(load(run))
    rows = np.flatnonzero(log.state.labels == D).tolist()
    log.act("name", {"cluster": A, "text": "../fox"}, 0)
    log.act("known", {"cluster": B, "class": 0}, 1)
    log.act("reject", {"rows": rows[:3]}, 2)
    items = corrected_items(run)
    new = [item for item in items if item["part"] == "new"]
    assert [(item["label"], item["kind"]) for item in new[::12]] == [
        ("../fox", "novel"),
        ("cat", "known"),
        ("novel-2", "novel"),
        ("", "rejected"),
    ]
    assert [item for item in items if item["part"] == "known"] == read_items(run)[:24]
    lines = export(run, "csv", tmp_path / "a.csv").read_text().splitlines()
    assert sum(",cat,known," in line for line in lines) == 12
    assert "../fox" not in export(run, "csv", tmp_path / "b.csv", original=True).read_text()
    folders = export(run, "folders", tmp_path / "folders")
    assert sorted(path.name for path in folders.iterdir() if path.is_dir()) == ["_fox", "cat", "novel-2", "novel-3"]
    assert len(list(folders.rglob("*.png"))) == 45
    assert export(run, "label-studio", tmp_path / "t.json").read_text().count('"predictions": []') == 3
    assert '"category_id": 0' not in export(run, "coco", tmp_path / "c.json").read_text()
    assert (run / "items.csv").read_bytes() == before


@pytest.mark.parametrize("text", ["\ud800", "a\u2028b", "\x00", None, 3, "x" * 201])
def test_names_that_are_none(text: object) -> None:
    with pytest.raises(UnveilError):
        clean_name(text)
