"""The replay of a log, action by action: what each one leaves in the state, and what undo takes back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from review_runs import make_run

from unveil.errors import UnveilError
from unveil.review.corrections import REJECTED, State, current_state, replay
from unveil.review.log import LAST, LOG, Entry, write_last
from unveil.runs.reader import Run

A, B, C, D = 2, 3, 4, 5
"""Clusters of the run: two classes are known, and each class has 12 items."""
ROWS = {cluster: list(range(12 * cluster, 12 * cluster + 12)) for cluster in (A, B, C, D)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("replay") / "run")


def play(run: Run, *actions: tuple[str, dict[str, Any]]) -> State:
    state = State(run)
    for number, (kind, data) in enumerate(actions, start=1):
        state.apply(Entry(number=number, time="", kind=kind, data=data))
    return state


def refused(state: State, kind: str, data: dict[str, Any]) -> str:
    with pytest.raises(UnveilError) as error:
        state.apply(Entry(number=state.length + 1, time="", kind=kind, data=data))
    return str(error.value)


def test_restored_items_go_back_to_the_class_they_were_in(run: Run) -> None:
    moved = ("move", {"rows": ROWS[A][:2], "to": B})
    state = play(run, moved, ("reject", {"rows": ROWS[A][:3]}), ("restore", {"rows": ROWS[A][:3]}))
    assert state.labels[ROWS[A][:4]].tolist() == [B, B, A, A]
    assert not state.rejected.any()
    state = play(run, ("reject", {"rows": ROWS[A][:3]}), ("restore", {"rows": ROWS[A][1:2]}), ("undo", {}))
    assert np.flatnonzero(state.rejected).tolist() == ROWS[A][:3]


def test_only_rejected_items_of_classes_that_exist_can_be_restored(run: Run) -> None:
    state = play(run, ("reject", {"rows": ROWS[A]}))
    assert A not in state.meanings
    assert refused(state, "restore", {"rows": [ROWS[A][0], ROWS[B][0]]}) == (
        "some of these items are not rejected: reload the page"
    )
    state = play(run, ("reject", {"rows": [*ROWS[A][:3], *ROWS[B][:1]]}), ("merge", {"clusters": [C, A]}))
    assert refused(state, "restore", {"rows": [*ROWS[A][:3], *ROWS[B][:1]]}) == (
        "the class of 3 of these items does not exist any more: move them to another one"
    )
    assert state.labels[ROWS[A][0]] == REJECTED


def test_an_item_that_was_rejected_twice_goes_to_its_last_class(run: Run) -> None:
    row = {"rows": ROWS[A][:1]}
    state = play(run, ("reject", row), ("move", row | {"to": C}), ("reject", row), ("restore", row))
    assert state.labels[ROWS[A][0]] == C
    state = play(run, ("reject", row), ("reject", row), ("restore", row))
    assert state.labels[ROWS[A][0]] == A


def test_questions_that_were_denied_are_remembered_until_that_is_undone(run: Run) -> None:
    denied = ("no", {"question": "merge", "clusters": [B, A]})
    state = play(run, denied)
    assert state.is_denied("merge", [A, B])  # in rising order: the question is the same in both
    assert not state.is_denied("merge", [A, C])
    assert not state.is_denied("known", [A, B])
    assert not play(run, denied, ("undo", {})).denied
    assert play(run, denied, ("undo", {}), ("redo", {})).is_denied("merge", (A, B))
    state = play(run, ("no", {"question": "known", "clusters": [B, 0]}), ("no", {"question": "split", "clusters": [C]}))
    assert state.denied == {("known", (B, 0)), ("split", (C,))}
    assert state.done[-1].denied == ("split", (C,))
    assert (state.labels == run.labels).all()
    assert play(run, ("accept", {"cluster": A})).done[0].denied is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"question": "paint", "clusters": [A]}, "the question is 'paint': there is merge, known, split"),
        ({"clusters": [A, B]}, "the question is None: there is merge, known, split"),
        ({"question": "merge", "clusters": [A]}, "the question is 'merge': there is merge, known, split"),
        ({"question": "split"}, "the question is 'split': there is merge, known, split"),
        ({"question": "split", "clusters": [77]}, "there is no class 77 any more: reload the page"),
    ],
)
def test_questions_that_nobody_asks_are_refused(run: Run, data: dict[str, Any], message: str) -> None:
    state = State(run)
    assert refused(state, "no", data) == message
    assert not state.denied


def test_a_state_knows_which_entry_changed_a_class_last(run: Run) -> None:
    state = play(
        run,
        ("name", {"cluster": A, "text": "fox"}),
        ("move", {"rows": ROWS[B][:2], "to": C}),
        ("accept", {"cluster": D}),
        ("undo", {}),
    )
    assert [state.changed_at(cluster) for cluster in (0, A, B, C, D)] == [0, 1, 2, 2, 4]
    assert state.changed_at(99) == 0
    assert state.length == 4


def test_actions_conflict_with_later_changes_of_the_same_classes_and_items(run: Run) -> None:
    state = play(run, ("move", {"rows": ROWS[A][:1], "to": B}), ("name", {"cluster": C, "text": "fox"}))
    same = {"cluster": A, "text": "owl"}
    assert not state.conflicts("name", same, 2)
    assert not state.conflicts("name", same, 1)  # what changed A was entry 1
    assert state.conflicts("name", same, 0)
    assert state.conflicts("name", same, 3)  # nobody can have seen entry 3
    assert state.conflicts("move", {"rows": ROWS[D][:1], "to": C}, 1)
    assert state.conflicts("merge", {"clusters": [D, C]}, 1)
    assert state.conflicts("reject", {"rows": ROWS[A][:2]}, 0)
    assert not state.conflicts("reject", {"rows": ROWS[A][1:2]}, 0)
    assert not state.conflicts("merge", {"clusters": [D, 0]}, 0)
    for kind in ("undo", "redo"):
        assert state.conflicts(kind, {}, 1)
        assert not state.conflicts(kind, {}, 2)


def test_entries_are_stored_with_every_row_once(run: Run) -> None:
    state = State(run)
    assert state.compact("reject", {"rows": [40, 30, 40]}) == {"rows": [30, 40]}
    assert state.compact("split", {"cluster": A, "parts": [[27, 25, 27], [24]]}) == {
        "cluster": A,
        "parts": [[27, 25], [24]],  # the order is the reviewer's
    }
    assert state.compact("merge", {"clusters": [B, A, B]}) == {"clusters": [B, A]}
    assert state.compact("merge", {"clusters": [B, "x", B]}) == {"clusters": [B, "x", B]}
    assert state.compact("merge", {"clusters": 5}) == {"clusters": []}
    assert state.compact("name", {"cluster": A, "text": " fox "}) == {"cluster": A, "text": "fox"}
    assert state.compact("name", {"cluster": A, "text": None}) == {"cluster": A, "text": None}
    with pytest.raises(UnveilError, match="one or more items"):
        state.compact("split", {"parts": [[24], []]})
    with pytest.raises(UnveilError, match=r"item 72 of 72: there is no such item"):
        state.compact("reject", {"rows": [71, 72]})


def test_a_move_by_hand_is_noted_and_a_rejection_takes_that_back(run: Run) -> None:
    rows = ROWS[A][:2]
    moved = ("move", {"rows": rows, "to": B})
    assert np.flatnonzero(play(run, moved).by_hand).tolist() == rows
    assert not play(run, moved, ("undo", {})).by_hand.any()
    assert not play(run, moved, ("reject", {"rows": rows})).by_hand.any()
    merged = play(run, moved, ("merge", {"clusters": [C, B]}))
    assert np.flatnonzero(merged.by_hand).tolist() == rows  # a merge moves them along


def test_a_merge_takes_over_what_is_known_and_is_reviewed_only_where_all_are(run: Run) -> None:
    known, accepted = ("known", {"cluster": B, "class": 1}), ("accept", {"cluster": A})
    state = play(run, known, accepted, ("merge", {"clusters": [A, B, A]}))
    assert state.meanings[A].known == 1
    assert not state.meanings[A].reviewed
    assert state.name(A) == run.classes[1]
    both = play(run, accepted, ("accept", {"cluster": B}), ("merge", {"clusters": [A, B]}))
    assert both.meanings[A].reviewed
    back = play(run, accepted, ("accept", {"cluster": A, "reviewed": False}))
    assert not back.meanings[A].reviewed
    assert refused(State(run), "merge", {"clusters": [A, A]}) == "give two or more different classes to merge"


def test_a_new_cluster_never_takes_a_number_or_a_name_that_was_in_use(run: Run) -> None:
    named = ("name", {"cluster": A, "text": "novel-4"})  # the name that the next new cluster would get
    made = ("move", {"rows": ROWS[B][:1], "to": None})
    state = play(run, named, made)
    assert state.name(6) == "novel-5"
    state = play(run, made, ("undo", {}), ("move", {"rows": ROWS[C][:1], "to": None}))
    assert 6 not in state.meanings  # it was given away once
    assert state.name(7) == "novel-5"
    parts = [ROWS[A][:4], ROWS[A][4:8], ROWS[A][8:]]
    state = play(run, ("accept", {"cluster": A}), ("split", {"cluster": A, "parts": parts}))
    assert [state.name(cluster) for cluster in (A, 6, 7)] == ["novel-0", "novel-4", "novel-5"]
    assert [state.labels[part].tolist() for part in parts] == [[A] * 4, [6] * 4, [7] * 4]
    assert not state.meanings[A].reviewed  # it is another class now


def test_a_cluster_is_gone_only_when_its_last_item_leaves(run: Run) -> None:
    state = play(run, ("move", {"rows": ROWS[A][:11], "to": 0}))
    assert A in state.meanings
    state = play(run, ("move", {"rows": ROWS[A][:11], "to": 0}), ("move", {"rows": ROWS[A][11:], "to": 0}))
    assert A not in state.meanings
    assert A in play(run, ("move", {"rows": ROWS[A], "to": A})).meanings  # they have not left


def test_a_line_that_does_not_fit_is_named(run: Run, tmp_path: Path) -> None:
    entries = [Entry(number=n, time="", kind="reject", data={"rows": [row]}) for n, row in ((1, 30), (2, 5000))]
    with pytest.raises(UnveilError, match=r"line 2 of /log does not fit this run \(item 5000 of 72: .*\): cut it"):
        replay(State(run), entries, Path("/log"))


def test_the_state_of_a_run_is_checked_against_the_note_of_its_last_line(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert current_state(run).length == 0
    first = Entry(number=1, time="", kind="accept", data={"cluster": A}).chained("")
    (run.folder / LOG).write_bytes(first.line())
    assert current_state(run).meanings[A].reviewed
    write_last(run.folder / LOG, Entry(number=3, time="", kind="accept", data={}).chained(first.sum))
    with pytest.raises(UnveilError, match=f"has lost lines 2 to 3 at its end: .* delete {LAST}"):
        current_state(run)
    write_last(run.folder / LOG, Entry(number=1, time="", kind="accept", data={"cluster": B}).chained(""))
    with pytest.raises(UnveilError, match=r"line 1 of .* has changed since it was written"):
        current_state(run)
    (run.folder / LAST).unlink()
    (run.folder / LOG).unlink()
    (run.folder / LOG).mkdir()
    with pytest.raises(UnveilError, match="cannot be read"):
        current_state(run)
