"""The review page on many items: `python -m benchmarks.review [--items 50000] [--images FOLDER] [--out FILE.json]`.

A run directory of random items is written, `unveil review` is started on it as a process, and everything that the page
asks for before it is ready, every kind of action, and the memory of the server are measured over HTTP. Start-up is
measured on a run of 1,000 items. Seconds of the processor are those of the server alone: other work on the machine
does not count in them. With `--images`, files of a folder are embedded with and without thumbnails.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from rich.console import Console
from rich.table import Table

from unveil import __version__, files, hardware
from unveil.runs.writer import Contents, write
from unveil.settings import Machine

KNOWN, CLUSTERS, DIMENSIONS, SIDE = 10, 200, 256, 32
FEW = 1000
"""Items of the run whose start-up is measured."""
IMAGES = 100
"""Files that are embedded with and without thumbnails."""
GOALS = {
    "page ready, s": 2.0,
    "slowest action, s": 0.1,
    "server memory, MB": 1000.0,
    f"start with {FEW:,} items, s of the processor": 0.7,
    f"memory with {FEW:,} items, MB": 120.0,
}


def write_run(folder: Path, items: int) -> Path:
    """Items around random centres with small random pictures, as `unveil discover` would leave them."""
    draw = np.random.default_rng(0)
    classes = KNOWN + CLUSTERS
    labels = np.sort(draw.integers(0, classes, items))
    centers = draw.normal(size=(classes, DIMENSIONS)).astype(np.float32)
    features = centers[labels] + 0.5 * draw.normal(size=(items, DIMENSIONS)).astype(np.float32)
    confidence = draw.uniform(0.3, 1, items).astype(np.float32)
    names = [*(f"known {i}" for i in range(KNOWN)), *(f"novel-{i}" for i in range(CLUSTERS))]
    contents = Contents(
        ids=[f"{row:06d}" for row in range(items)],
        new=labels >= KNOWN,
        given=[names[label] if label < KNOWN else "" for label in labels],
        labels=labels,
        classes=names,
        n_known=KNOWN,
        confidence=confidence,
        typicality=confidence,
        kmeans=labels,
        features=features,
        pictures=draw.integers(0, 256, (items, SIDE, SIDE, 3), dtype=np.uint8),
        record={"summary": {"result": f"{CLUSTERS} novel classes"}},
        config="",
    )
    write(folder, contents)
    return folder


class Visitor:
    """One connection with the key of a session, which the code of the address opens."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.base = 0
        self._connection = http.client.HTTPConnection(parts.netloc)
        self._headers = {"Origin": f"http://{parts.netloc}", "Content-Type": "application/json"}
        code = parts.fragment.removeprefix("open=")
        self._headers["X-Unveil-Key"] = json.loads(self.ask("/api/session", {"code": code}))["key"]

    def ask(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        sent = None if body is None else json.dumps(body)
        self._connection.request("GET" if body is None else "POST", path, sent, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {content[:200]!r}")
        return content

    def act(self, path: str, body: dict[str, Any]) -> None:
        self.ask(path, {**body, "base": self.base})
        self.base += 1


@contextmanager
def server(run: Path) -> Iterator[tuple[str, int, float]]:
    """`unveil review`: its address, its process, and the seconds until it answered."""
    command = [sys.executable, "-m", "unveil", "review", str(run), "--no-browser"]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split(": ", 1)[1].strip()
            yield address, process.pid, time.perf_counter() - begun
        finally:
            process.terminate()


def memory(process: int) -> float:
    """Largest resident size so far, in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1000


def processor(process: int) -> float:
    """Seconds of the processor so far, of all threads."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def page_ready(visitor: Visitor) -> int:
    """What a browser asks for until the first screen of classes is there; returns the bytes."""
    page = visitor.ask("/")
    static = Path(__file__).parent.parent / "src/unveil/pages/review/static"
    total = len(page) + sum(len(visitor.ask(f"/static/{path.name}")) for path in static.iterdir())
    total += len(visitor.ask("/api/about"))
    state = json.loads(visitor.ask("/api/state"))
    shown = sorted(state["classes"], key=lambda one: -one["confidence"])[:24]
    rows = [row for one in shown for row in one["typical"]]
    for start in range(0, len(rows), 64):
        total += len(visitor.ask(f"/api/thumbs?rows={','.join(map(str, rows[start : start + 64]))}"))
    return total


def actions(visitor: Visitor) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each kind of action, as calls to be timed."""

    def act(kind: str, **data: Any) -> Callable[[], Any]:
        return lambda: visitor.act("/api/action", {"kind": kind, **data})

    def rows(cluster: int) -> list[int]:
        found: list[int] = json.loads(visitor.ask(f"/api/cluster/{cluster}"))["rows"]
        return found

    first = KNOWN
    for turn in range(10):
        a, b, c = first + 5 * turn, first + 5 * turn + 1, first + 5 * turn + 2
        many = [row for cluster in range(first + 150, first + 190) for row in rows(cluster)]
        here = rows(c)
        few = len(here) // 4
        yield from [
            ("name", act("name", cluster=a, text=f"name {turn}")),
            ("known", act("known", cluster=a, **{"class": 0})),
            ("accept", act("accept", cluster=a)),
            ("merge", act("merge", clusters=[a, b])),
            ("split", act("split", cluster=c, parts=[here[::2], here[1::2]])),
            ("move some", act("move", rows=here[:few], to=a)),
            ("reject some", act("reject", rows=here[few : 2 * few])),
            ("move a fifth", act("move", rows=many, to=None)),
            ("undo", lambda: visitor.act("/api/undo", {})),
            ("redo", lambda: visitor.act("/api/redo", {})),
            ("undo again", lambda: visitor.act("/api/undo", {})),
        ]


def questions(visitor: Visitor) -> dict[str, float]:
    """Other answers, each once, in seconds."""
    paths = {
        "class": f"/api/cluster/{KNOWN + 3}",
        "similar": "/api/similar/1000",
        "similar again": "/api/similar/1001",
        "map": "/api/map",
        "map again": "/api/map",
        "duplicates": "/api/duplicates",
        "questions": "/api/queue",
        "questions again": "/api/queue",
        "sheet of 64": f"/api/thumbs?rows={','.join(map(str, range(900, 964)))}",
    }
    return {name: timed(lambda path=path: visitor.ask(path))[0] for name, path in paths.items()}  # type: ignore[misc]


def start_up() -> tuple[float, float]:
    """Seconds of the processor until `unveil review` answers on a run of few items, and MB when its page is ready."""
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "run", FEW)
        with server(run) as (address, process, _):
            started = processor(process)
            page_ready(Visitor(address))
            return started, memory(process)


def thumbnails(images: Path) -> dict[str, Any]:
    """Seconds of the processor for embeddings of image files, alone and with thumbnails of them; the least of two."""
    from unveil.data.items import Items
    from unveil.encoders.preparation import LARGE
    from unveil.encoders.stored import Embedding
    from unveil.runs.thumbnails import FILE, kept_in

    paths = sorted(path for path in images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    items = Items.of([paths[row] for row in np.random.default_rng(0).permutation(len(paths))[:IMAGES]])
    device = hardware.pick_device("cpu")
    embedding = Embedding(
        name="efficientnet-lite0",
        size=LARGE,
        device=device,
        precision=hardware.pick_precision(Machine(), device),
        folder=None,
        console=Console(quiet=True),
    )
    embedding(items.take(slice(0, 64)))  # the first ones are slower
    alone, together, size = [], [], 0
    for _ in range(2):
        begun = time.process_time()
        embedding(items)
        alone.append(time.process_time() - begun)
        with tempfile.TemporaryDirectory() as folder:
            begun = time.process_time()
            with kept_in(Path(folder)) as keep:
                replace(embedding, keep=keep)(items)
            together.append(time.process_time() - begun)
            size = (Path(folder) / FILE).stat().st_size
    return {
        "files": len(items),
        "embeddings, s": min(alone),
        "with thumbnails, s": min(together),
        "more": min(together) / min(alone) - 1,
        "bytes of a thumbnail": round(size / len(items)),
    }


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = call()
    return time.perf_counter() - begun, found


def measure(items: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "run", items)
        with server(run) as (address, process, start):
            visitor = Visitor(address)
            ready, size = timed(lambda: page_ready(visitor))
            seconds: dict[str, list[float]] = {}
            worked: dict[str, list[float]] = {}
            for name, call in actions(visitor):
                before = processor(process)
                seconds.setdefault(name, []).append(timed(call)[0])
                worked.setdefault(name, []).append(processor(process) - before)
            asked = questions(visitor)
            used = memory(process)
    slowest = {name: max(values) for name, values in seconds.items()}
    few, small = start_up()
    values = (ready, max(slowest.values()), used, few, small)
    found = dict(zip(GOALS, values, strict=True))
    return {
        "items": items,
        "clusters": CLUSTERS,
        "dimensions": DIMENSIONS,
        "measured": found,
        "goals": GOALS,
        "reached": {name: found[name] < goal for name, goal in GOALS.items()},
        "process start, s": start,
        "slowest action, s of the processor": max(max(values) for values in worked.values()),
        "page, bytes": size,
        "actions": {
            name: {"median": float(np.median(values)), "slowest": slowest[name], "processor": max(worked[name])}
            for name, values in seconds.items()
        },
        "questions": asked,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = hardware.pick_device("cpu")
    record = {
        "benchmark": "review",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "unveil": __version__,
        "commit": hardware.commit(),
        "load": os.getloadavg()[0],
        "machine": hardware.describe(device, hardware.pick_precision(Machine(), device)),
        **measure(args.items),
        **({} if args.images is None else {"thumbnails": thumbnails(args.images)}),
    }
    shown = Table("", "measured", "goal", title=f"review of {args.items} items")
    for name, goal in GOALS.items():
        shown.add_row(name, f"{record['measured'][name]:.3g}", f"{goal:g}")
    for name, times in record["actions"].items():
        shown.add_row(f"{name}, ms", f"{1000 * times['median']:.1f} (slowest {1000 * times['slowest']:.1f})", "100")
    for name, value in record["questions"].items():
        shown.add_row(f"{name}, ms", f"{1000 * value:.1f}", "")
    for name, value in record.get("thumbnails", {}).items():
        shown.add_row(f"thumbnails: {name}", f"{value:.4g}", "")
    Console().print(shown)
    if args.out is not None:
        files.write_json(args.out, record)


if __name__ == "__main__":
    main()
