"""Claims: of processes that race for a result one makes it, and one that is gone does not block the others."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from unveil import claims
from unveil.claims import claimed, once


def _race(folder: str, start: float) -> None:
    """One of many processes that want the same ten results at the same moment."""
    time.sleep(max(0.0, start - time.time()))
    for number in range(10):
        result = Path(folder) / f"{number}.json"

        def make(result: Path = result) -> None:
            with (result.parent / "made.txt").open("a") as log:
                log.write(f"{result.name}\n")
            result.write_text("{}")

        once(result, make, expires=30)


def test_a_race_makes_every_result_once(tmp_path: Path) -> None:
    context, start = multiprocessing.get_context("fork"), time.time() + 0.5
    processes = [context.Process(target=_race, args=(str(tmp_path), start)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    assert sorted((tmp_path / "made.txt").read_text().split()) == [f"{number}.json" for number in range(10)]
    assert not list(tmp_path.glob(".*claim*"))


def _claim_and_die(result: str) -> None:
    with claimed(Path(result)) as ours:
        assert ours
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_claim_of_a_dead_process_is_taken_over_at_once(tmp_path: Path) -> None:
    result = tmp_path / "x.json"
    process = multiprocessing.get_context("fork").Process(target=_claim_and_die, args=(str(result),))
    process.start()
    process.join(60)
    assert (tmp_path / ".x.json.claim").exists()
    assert once(result, lambda: result.write_text("made"))
    assert result.read_text() == "made"


def test_the_claim_of_another_machine_expires(tmp_path: Path) -> None:
    result, claim = tmp_path / "x.json", tmp_path / ".x.json.claim"
    claim.write_text("elsewhere 1\n")
    with claimed(result, expires=60) as ours:
        assert not ours  # it is still young
    old = time.time() - 100
    os.utime(claim, (old, old))
    assert once(result, lambda: result.write_text("made"), expires=60)
    assert result.read_text() == "made"


def test_a_long_work_keeps_its_claim(tmp_path: Path) -> None:
    result = tmp_path / "x.json"
    with claimed(result, expires=0.4) as ours:
        assert ours
        time.sleep(1.0)
        with claimed(result, expires=0.4) as others:
            assert not others


def test_a_claim_that_was_taken_over_meanwhile_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / ".x.json.claim"
    path.write_text("theirs")
    assert not claims._take_away(path, expires=60)  # it was void when we looked, and is fresh now
    assert path.read_text() == "theirs"


def test_an_error_leaves_no_claim(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        once(tmp_path / "x.json", fail)
    assert not list(tmp_path.iterdir())
