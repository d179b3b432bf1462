"""What a discovery that trains nothing is doing now, and since when. Training has a bar of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Step = Callable[[str], None]
"""Takes the title of the step that begins."""


def unseen(title: str) -> None:
    """Show nothing."""


@contextmanager
def shown(console: Console, *, trains: bool) -> Iterator[Step]:
    """A line on a terminal with the title of the step and the time since the first one."""
    if trains or not console.is_terminal or console.quiet:
        yield unseen
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as line:
        task = line.add_task("scaling", total=None)

        def step(title: str) -> None:
            line.update(task, description=title)

        yield step
