"""Ctrl-C and termination end a stage between two steps, so that the work so far can be saved."""

import signal
import threading
from types import FrameType


class Interrupt:
    """A context in which the first signal only sets `asked`; a second one stops at once."""

    def __init__(self) -> None:
        self.asked = False
        self.previous: dict[int, object] = {}

    def __enter__(self) -> "Interrupt":
        if threading.current_thread() is threading.main_thread():  # Python allows handlers nowhere else
            for number in (signal.SIGINT, signal.SIGTERM):
                self.previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
