"""What a review asks of the next fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from review_runs import seal_again, write_run

from unveil.own.constraints import decided, kept_names, steered_labels
from unveil.review.corrections import State
from unveil.review.log import Entry
from unveil.runs.reader import load


@pytest.fixture
def state(tmp_path: Path) -> State:
    """Two known classes and four clusters of 12 items; three items of cluster 5 lie among those of cluster 2."""
    folder = write_run(tmp_path / "run")
    labels = np.repeat(np.arange(6), 12)
    places = labels.copy()
    places[60:63] = 2
    noise = 0.05 * np.random.default_rng(1).normal(size=(72, 16))
    np.save(folder / "features.npy", (np.eye(6, 16)[places] + noise).astype(np.float32))
    seal_again(folder)
    return State(load(folder))


def say(state: State, kind: str, **data: Any) -> None:
    state.apply(Entry(number=state.length + 1, time="", kind=kind, data=data))


def test_clusters_that_people_decided_about(state: State) -> None:
    say(state, "reject", rows=[24])
    say(state, "accept", cluster=3)
    say(state, "undo")
    assert decided(state) == set()
    say(state, "no", question="merge", clusters=[2, 3])
    assert decided(state) == {2, 3}
    say(state, "move", rows=[24], to=4)
    assert decided(state) == {2, 3, 4}
    say(state, "split", cluster=5, parts=[list(range(60, 66)), list(range(66, 72))])
    assert decided(state) == {2, 3, 4, 5, 6}
    say(state, "merge", clusters=[4, 5])
    assert decided(state) == {2, 3, 4, 6}


def test_items_vote_again_but_not_those_that_people_placed(state: State) -> None:
    assert steered_labels(state)[60:63].tolist() == [2, 2, 2]
    say(state, "move", rows=[60], to=5)
    say(state, "reject", rows=[61, 30])
    labels = steered_labels(state)
    assert labels[60] == 5  # a person said so
    assert labels[61] == 2
    assert labels[30] not in (-1, 2)  # it was rejected from class 2, where all its neighbors are
    assert labels[62] == 2
    assert (labels[:24] == state.labels[:24]).all()
    say(state, "known", cluster=3, **{"class": 0})
    assert (steered_labels(state)[36:48] == 0).all()


def test_with_very_many_items_the_review_is_taken_as_it_is(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.own.constraints.ROWS", 71)
    say(state, "move", rows=[60], to=2)
    assert steered_labels(state).tolist() == state.labels.tolist()


def test_clusters_keep_the_names_of_most_of_their_items() -> None:
    labels = np.array([0, 1, 1, 1, 2, 2, 3])
    before = [None, "novel-7", "novel-7", "novel-2", "novel-2", "novel-2", None]
    names = kept_names(["cat", "novel-0", "novel-1", "novel-2"], 1, labels, before, taken=("novel-0", "novel-1"))
    assert names == ["cat", "novel-7", "novel-2", "novel-3"]
    assert kept_names(["cat"], 1, np.zeros(3, dtype=np.int64), [None] * 3) == ["cat"]
