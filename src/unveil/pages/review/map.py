"""Where items lie on the page's map: at once by their main directions, and by t-SNE as soon as that is made."""

import os
import subprocess
import sys
import threading

import numpy as np
from numpy.typing import NDArray

from unveil.pages.review.summary import unit
from unveil.runs.map import Places, kept, possible
from unveil.runs.reader import Look

PIECE = 8192


class Map:
    """The finer map is made by a process of its own, so that nobody waits; the report makes and keeps the same."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._maker: subprocess.Popen[bytes] | None = None
        self._fine: Places | None = None
        self._quick: bytes | None = None

    def state(self) -> str:
        """`fine`, `drawing` (look again soon) or `quick` (there is no better one)."""
        with self._lock:
            if self._fine is None and not (drawing := self._drawing()):
                self._fine = kept(self._look)
                if self._fine is None and self._maker is None and possible():
                    self._maker, drawing = _draw(self._look), True
            return "fine" if self._fine is not None else "drawing" if drawing else "quick"

    def coordinates(self) -> tuple[bytes, str]:
        """(n, 2) float32, each from 0 to 1, and the state that they are of."""
        state = self.state()
        if state == "fine" and self._fine is not None:
            return _to_square(self._fine.xy).astype("<f4").tobytes(), state
        with self._lock:
            if self._quick is None:
                self._quick = _to_square(projected(self._look, 2)).astype("<f4").tobytes()
            return self._quick, state

    def _drawing(self) -> bool:
        return self._maker is not None and self._maker.poll() is None


def _draw(look: Look) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "unveil.runs.map", str(look.run.resolve())]
    one = {**os.environ, "OMP_NUM_THREADS": "1"}  # the page needs the other cores
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=one)


def projected(look: Look, dimensions: int) -> NDArray[np.float32]:
    """(n, dimensions): items of length one on the principal directions of the new ones; distances only shrink."""
    n, d = look.features.shape
    rows = np.flatnonzero(look.new) if look.new.any() else np.arange(n)
    total, squares = np.zeros(d), np.zeros((d, d))
    for start in range(0, len(rows), PIECE):
        x = unit(look.features[rows[start : start + PIECE]])
        total += x.sum(axis=0, dtype=np.float64)
        squares += x.T @ x
    mean = total / len(rows)
    _, vectors = np.linalg.eigh(squares / len(rows) - np.outer(mean, mean))
    axes = vectors[:, ::-1][:, :dimensions].astype(np.float32)
    found = np.zeros((n, dimensions), dtype=np.float32)
    for start in range(0, n, PIECE):
        x = unit(look.features[start : start + PIECE])
        found[start : start + PIECE, : axes.shape[1]] = (x - mean.astype(np.float32)) @ axes
    return found


def _to_square(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same shape within 0 to 1."""
    low, high = points.min(axis=0), points.max(axis=0)
    scale = max(float((high - low).max()), 1e-12)
    found: NDArray[np.float32] = ((points - (low + high) / 2) / scale + 0.5).astype(np.float32)
    return found
