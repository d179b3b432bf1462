"""The map of the review page: principal directions at once, and t-SNE as soon as it is ready."""

import subprocess
import threading

from unveil.pages.review.pictures import in_background
from unveil.runs.map import Layout, can_use_tsne, quick_layout, stored_layout
from unveil.runs.reader import Run


class LiveMap:
    """t-SNE runs in a process of its own, which stores its layout in the run directory; the report uses the same."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._fine: Layout | None = None
        self._quick: Layout | None = None

    def state(self) -> str:
        """`fine`, `drawing` (ask again soon) or `quick` (there will be no better one)."""
        with self._lock:
            drawing = self._process is not None and self._process.poll() is None
            if self._fine is None and not drawing:
                self._fine = stored_layout(self._run)
                if self._fine is None and self._process is None and can_use_tsne():
                    self._process, drawing = in_background("unveil.runs.map", self._run), True
            return "fine" if self._fine is not None else "drawing" if drawing else "quick"

    def coordinates(self) -> tuple[bytes, str]:
        """(n, 2) float32 from 0 to 1, and the state that they belong to."""
        state = self.state()
        if state == "fine" and self._fine is not None:
            return self._fine.xy.astype("<f4").tobytes(), state
        with self._lock:
            if self._quick is None:
                self._quick = quick_layout(self._run)
            return self._quick.xy.astype("<f4").tobytes(), state
