"""What is shown while nothing is trained."""

import io

import pytest
from rich.console import Console

from unveil.discovery.steps import shown, unseen


def test_a_terminal_shows_the_step() -> None:
    text = io.StringIO()
    with shown(Console(file=text, force_terminal=True, width=60), trains=False) as step:
        step("rehearsals on hidden known classes")
    assert "rehearsals on hidden known classes" in text.getvalue()


@pytest.mark.parametrize(("terminal", "trains"), [(False, False), (True, True)])
def test_files_and_bars_of_training_are_left_alone(terminal: bool, trains: bool) -> None:
    text = io.StringIO()
    with shown(Console(file=text, force_terminal=terminal), trains=trains) as step:
        assert step is unseen
        step("clusters")
    assert text.getvalue() == ""
