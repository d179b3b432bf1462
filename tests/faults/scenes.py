"""Small real runs: digits by recipe (stages, trunk cache, queues, hard negatives), a folder of images, arrays."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from .processes import NOTHING, Command, Fault

DIGITS = [
    *("data.per_class=8", "encoder.name=compact", "encoder.width=8", "encoder.space_to_depth=1"),
    *("encoder.strides=[1, 2, 2, 1]", "rotation.epochs=1", "rotation.batch=32", "rotation.rotations=one"),
    *("supervised.epochs=1", "discovery.epochs=3", "discovery.batch=32", "method.queue=50", "method.k_easy=10"),
    *("method.k_hard=10", "machine.cache_views=1", "machine.checkpoint_seconds=0", "machine.precision=float32"),
]
OWN = ["--n-novel", "2", "--rehearsals", "0", "--method", "ncl-hng"]
SHORT = ["supervised.steps=5", "discovery.epochs=2", "discovery.steps=10", "machine.checkpoint_seconds=0"]


def digits() -> Command:
    return Command("digits", ["run", "digits", *settings(DIGITS)], ["--resume"])


def images(folder: Path) -> Command:
    """Pictures of digits, 0-2 known and 3-4 new, embedded by a pretrained encoder."""
    X, y = load_digits(return_X_y=True)
    for row in np.flatnonzero(y < 5)[:40].tolist():
        target = folder / "pictures" / (f"known/{y[row]}" if y[row] < 3 else "new") / f"{row}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((X[row].reshape(8, 8) * 15.9).astype(np.uint8)).resize((32, 32)).save(target)
    known, new = str(folder / "pictures/known"), str(folder / "pictures/new")
    small = ["data.encoder_size=32", *SHORT]
    return Command("images", ["discover", known, new, *OWN, "--encoder", "efficientnet-lite0", *settings(small)])


def arrays(folder: Path) -> Command:
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 20)
    x = (draw.normal(size=(5, 8))[y] * 6 + draw.normal(size=(100, 8))).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "known.npz", X=x[:60], y=y[:60])
    np.save(folder / "new.npy", x[60:])
    return Command("arrays", ["discover", str(folder / "known.npz"), str(folder / "new.npy"), *OWN, *settings(SHORT)])


def continued(folder: Path) -> Command:
    """`--continue` of a reviewed run of arrays."""
    from unveil.pages.review.log import Log
    from unveil.runs.reader import load

    code, messages = arrays(folder).finish(folder)
    assert code == 0, messages
    log = Log(load(folder / "run"))
    log.act("name", {"cluster": 3, "text": "first"}, 0)
    log.act("reject", {"rows": [99]}, 1)
    return Command("continue", ["discover", "--continue", str(folder / "run")])


def commands(folder: Path, most: int = 4) -> Iterator[Command]:
    """The first of all commands, with their inputs below a folder."""
    yield digits()
    if most > 1:
        yield images(folder / "images")
    if most > 2:
        yield arrays(folder / "arrays")
    if most > 3:
        yield continued(folder / "continued")


def result(folder: Path) -> tuple[bytes, list[dict[str, Any]]] | None:
    """What must not change: the predictions, and the metrics without times; None where there is no finished run."""
    run = folder / "run"
    if not (run / "record.json").exists():
        return None
    lines = (run / "metrics.jsonl").read_text().splitlines() if (run / "metrics.jsonl").exists() else []
    metrics = [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]
    return (run / "predictions.csv").read_bytes(), metrics


def half_written(folder: Path) -> list[Path]:
    """Temporary files and checkpoints that a finished run should not have left."""
    return [*(folder / "run").glob(".*.part"), *(folder / "run").glob("checkpoint*"), *(folder / "run").glob("work")]


def judged(command: Command, folder: Path, expected: Any, *, fault: Fault = NOTHING) -> tuple[str, str]:
    """Give the command again, and judge what it makes of what a fault has left."""
    code, messages = command.finish(folder, fault)
    if "Traceback" in messages:
        return "traceback", messages[-700:]
    if code != 0:
        return "lost", messages[-700:]
    if result(folder) != expected:
        return "silently wrong", f"{command.name}: another result"
    if left := half_written(folder):
        return "silently wrong", f"{command.name}: left {left}"
    return "exact", ""


def settings(overrides: list[str]) -> list[str]:
    """Arguments that set them."""
    return [argument for override in overrides for argument in ("--set", override)]
