"""Progress of a stage: a bar on a terminal, plain lines elsewhere."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from torch import Tensor

SHOWN = ("acc", "test_acc", "known_acc", "neighbor_purity")
LINE_SECONDS = 30.0


class Bar:
    """Receives the events of the training loop: a rich bar for one stage, with a line for each evaluated epoch.

    Losses are read every `interval` seconds.
    """

    def __init__(self, stage: str, console: Console, interval: float = 1.0) -> None:
        self.stage, self.console, self.interval = stage, console, interval
        self.bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.read = 0.0

    def start(self, *, epochs: int, steps: int, done: int) -> None:
        self.epochs, self.total, self.done = epochs, epochs * steps, done
        self.begun, self.first = time.monotonic(), done
        self.task = self.bar.add_task(self.stage, total=self.total, completed=done, detail="")
        if done:
            self.console.print(f"{self.stage}: resumed at step {done:,} of {self.total:,}")
        self.read = time.monotonic()

    def advance(self, epoch: int, losses: dict[str, Tensor], rate: float) -> None:
        self.done += 1
        self.bar.advance(self.task)
        now = time.monotonic()
        if now - self.read < (self.interval if self.console.is_terminal else LINE_SECONDS):
            return
        self.read = now
        terms = " ".join(f"{name} {value.item():.3f}" for name, value in losses.items())
        detail = f"epoch {epoch + 1}/{self.epochs} {terms} lr {rate:.3g}"
        self.bar.update(self.task, detail=detail)
        if not self.console.is_terminal:
            left = (now - self.begun) / max(self.done - self.first, 1) * (self.total - self.done)
            steps = f"{self.stage} step {self.done:,}/{self.total:,}"
            self.console.print(f"{steps} {detail} eta {left / 60:.1f} min", soft_wrap=True)

    def epoch_done(self, metrics: dict[str, Any]) -> None:
        shown = " ".join(f"{name} {metrics[name]:.3f}" for name in SHOWN if name in metrics)
        if shown:
            epoch = f"{self.stage} epoch {int(metrics['epoch']) + 1}/{self.epochs}"
            self.console.print(f"{epoch} {shown}", highlight=False, soft_wrap=True)

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
