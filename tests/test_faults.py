"""The short form of the faults: a few of each kind. The long form is `python -m tests.faults`.

Ranks that are killed are in tests/test_ranks.py.
"""

from faults.damages import damages, reviews_damaged
from faults.disks import clocks, full_disks, read_only
from faults.fuzz import fuzz, fuzz_page
from faults.kills import kills, kills_at_changes, named, reviews, side_by_side
from faults.outcomes import NEVER, Outcomes


def check(outcomes: Outcomes, least: int) -> None:
    assert outcomes.bad == []
    assert sum(counts.total() for counts in outcomes.counts.values()) >= least
    assert not any(counts[never] for counts in outcomes.counts.values() for never in NEVER)


def test_readers_give_a_value_or_an_error() -> None:
    outcomes = Outcomes()
    fuzz(outcomes, 100, seed=1)
    check(outcomes, 1400)
    assert all(counts["refused"] for counts in outcomes.counts.values())


def test_the_review_page_answers_whatever_it_is_asked() -> None:
    outcomes = Outcomes()
    fuzz_page(outcomes, 300, seed=1)
    check(outcomes, 300)
    assert set(outcomes.counts["fuzzed review page"]) == {"read", "refused"}


def test_damaged_files_are_refused_or_made_again() -> None:
    outcomes = Outcomes()
    damages(outcomes, 1, seed=1, most=1, every=5)
    check(outcomes, 60)
    assert outcomes.counts["damaged file of the store"]["made again"]
    assert outcomes.counts["damaged file of a run"]["refused"]
    assert outcomes.counts["damaged file of an interrupted run"]


def test_a_damaged_review_is_told() -> None:
    outcomes = Outcomes()
    reviews_damaged(outcomes, 40, seed=1)
    check(outcomes, 60)
    assert outcomes.counts["damaged review"]["refused"] > 40


def test_killed_commands_come_to_the_same_end() -> None:
    outcomes = Outcomes()
    kills(outcomes, 1, seed=1)
    kills(outcomes, 1, seed=2, times=2, every=False)
    check(outcomes, 5)


def test_commands_that_are_killed_at_a_change_come_to_the_same_end() -> None:
    outcomes = Outcomes()
    killed = kills_at_changes(outcomes, 2)
    check(outcomes, 8)
    assert killed.total() == 8


def test_changes_are_named_by_kind_and_file() -> None:
    assert named("os.rename /run/.config.toml.123.part") == "os.rename run/config.toml"
    assert named("os.mkdir /store/0123456789abcdef0123") == "os.mkdir store/stage"
    assert named("open /store/0123456789abcdef0123/views.bin") == "open store/views.bin"


def test_nothing_that_a_reviewer_was_answered_is_lost() -> None:
    outcomes = Outcomes()
    reviews(outcomes, 5, seed=1)
    check(outcomes, 5)


def test_two_processes_do_not_disturb_each_other() -> None:
    outcomes = Outcomes()
    side_by_side(outcomes, 2, seed=1, most=1)
    check(outcomes, 4)


def test_a_full_disk_is_told_and_costs_nothing() -> None:
    outcomes = Outcomes()
    full_disks(outcomes, 2, most=1)
    check(outcomes, 1)


def test_a_read_only_directory_is_told_and_costs_nothing() -> None:
    outcomes = Outcomes()
    read_only(outcomes, most=1)
    check(outcomes, 1)


def test_a_clock_that_goes_backwards_changes_nothing() -> None:
    outcomes = Outcomes()
    clocks(outcomes, 1, most=1)
    check(outcomes, 1)
