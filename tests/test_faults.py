"""The short form of the faults: a few of each kind. The long form is `python -m tests.faults`."""

import pytest
from faults import NEVER, Outcomes, damages, full_disks, fuzz, kills


def check(outcomes: Outcomes, least: int) -> None:
    assert outcomes.bad == []
    assert sum(counts.total() for counts in outcomes.counts.values()) >= least
    assert not any(counts[never] for counts in outcomes.counts.values() for never in NEVER)


def test_readers_give_a_value_or_an_error() -> None:
    outcomes = Outcomes()
    fuzz(outcomes, 150, seed=1)
    check(outcomes, 1500)
    assert all(counts["refused"] for counts in outcomes.counts.values())


def test_damaged_files_are_refused_or_made_again() -> None:
    outcomes = Outcomes()
    damages(outcomes, 24, seed=1)
    check(outcomes, 24)
    assert outcomes.counts["damaged file of the store"]["made again"]
    assert outcomes.counts["damaged file of a run"]["refused"]


@pytest.mark.parametrize("times", [1, 2])
def test_killed_commands_come_to_the_same_end(times: int) -> None:
    outcomes = Outcomes()
    kills(outcomes, 1, seed=times, times=times)
    check(outcomes, 2)


def test_a_full_disk_is_told_and_costs_nothing() -> None:
    outcomes = Outcomes()
    full_disks(outcomes, 1, seed=1)
    check(outcomes, 1)
