"""`unveil discover` on a text CSV, a table and a folder of photographs, called as a user would call it.

    python -m benchmarks.own_inputs --out results/own-inputs.json [--tasks letter clinc150 imagenet20] [--rows 4000]

The last half of the classes is novel and their number is given. Each task is laid out as files, the command runs in a
process of its own, and its predictions are compared with the hidden classes. Records of other tasks stay in the file.
"""

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from unveil import files
from unveil.data import catalog
from unveil.metrics import clustering_scores

Rows = list[tuple[list[str], str]]
"""Cells and class of each item."""
OPTIONS = {
    "letter": ("known.csv", "new.csv", "--label", "letter"),
    "clinc150": ("known.csv", "new.csv", "--text", "message", "--label", "topic"),
    "imagenet20": ("known", "new"),
}


def letter(root: Path) -> tuple[list[str], str, Rows]:
    """A table of 16 whole numbers."""
    with np.load(root / "letter.npz", allow_pickle=False) as file:
        x, y = file["X"], file["y"]
    rows = [
        ([f"{value:g}" for value in cells], str(label)) for cells, label in zip(x.tolist(), y.tolist(), strict=True)
    ]
    return [f"x{place}" for place in range(x.shape[1])], "letter", rows


def clinc150(root: Path) -> tuple[list[str], str, Rows]:
    """Questions with 150 intents."""
    with gzip.open(root / "clinc150.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return ["message"], "topic", [([line["text"]], line["label"]) for line in lines]


def lay_out_table(folder: Path, task: str, most: int) -> dict[str, str]:
    """Write known.csv and new.csv; returns the class of each new item by its id."""
    header, label, rows = {"letter": letter, "clinc150": clinc150}[task](catalog.data_root())
    classes = sorted({name for _, name in rows})
    novel = set(classes[len(classes) // 2 :])
    order = [rows[row] for row in np.random.default_rng(0).permutation(len(rows))]
    known = [row for row in order if row[1] not in novel][:most]
    new = [row for row in order if row[1] in novel][:most]
    lines = [[*cells, name] for cells, name in known]
    files.write(folder / "known.csv", files.csv_text([*header, label], lines))
    files.write(folder / "new.csv", files.csv_text(header, [cells for cells, _ in new]))
    return {f"new/{row:05d}": name for row, (_, name) in enumerate(new)}


def lay_out_photographs(folder: Path, most: int) -> dict[str, str]:
    """Links to the photographs: a folder for each known class, and one folder with all new ones."""
    data = catalog.load("imagenet20")
    novel = set(data.classes[len(data.classes) // 2 :])
    truth: dict[str, str] = {}
    order = np.random.default_rng(0).permutation(len(data.train))
    counts = {True: 0, False: 0}
    for row in order.tolist():
        name, path = data.classes[data.train.labels[row]], data.train.items.paths[row]
        is_new = name in novel
        if counts[is_new] >= most:
            continue
        place = Path("new") if is_new else Path("known") / name
        file = f"{counts[is_new]:05d}{path.suffix}"
        counts[is_new] += 1
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / file).symlink_to(path.resolve())
        if is_new:
            truth[file] = name
    return truth


def measure(task: str, most: int, store: Path) -> dict[str, Any]:
    """Lay out the files, call the command, compare its labels with the classes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = lay_out_photographs(folder, most) if task == "imagenet20" else lay_out_table(folder, task, most)
        number = len(set(truth.values()))
        options = [*OPTIONS[task], "--n-novel", str(number), "--out", "run", "--store", str(store)]
        begun, stored = time.monotonic(), _embeddings(store)
        subprocess.run([sys.executable, "-m", "unveil", "discover", *options], cwd=folder, check=True)
        seconds, computed = time.monotonic() - begun, bool(_embeddings(store) - stored)
        with (folder / "run" / "predictions.csv").open(newline="", encoding="utf-8") as file:
            labels = {line["id"]: line["label"] for line in csv.DictReader(file)}
        record = json.loads((folder / "run" / "record.json").read_text(encoding="utf-8"))
    ids = sorted(truth)
    scores = clustering_scores([truth[item] for item in ids], [labels[item] for item in ids])
    return {
        "task": task,
        "command": f"unveil discover {' '.join(options[:-4])}",
        "known_rows": record["items"]["known"],
        "new_rows": record["items"]["new"],
        "known": len(record["known"]),
        "novel": number,
        **{key: round(float(value), 4) for key, value in scores.items()},
        "forecast": record["forecast"]["accuracy"],
        "seconds": round(seconds, 1),
        "encoder": (encoder := record["config"]["data"].get("encoder")),
        "embeddings_stored": encoder is not None and not computed,
        "seed": record["seed"],
        "environment": record["environment"],
    }


def _embeddings(store: Path) -> set[Path]:
    return set(store.rglob("embeddings.npy"))


def main() -> None:
    """Measure the tasks and keep their records in one file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", choices=list(OPTIONS), default=list(OPTIONS))
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--store", type=Path, default=Path(tempfile.gettempdir()) / "unveil-own-inputs")
    options = parser.parse_args()
    for task in options.tasks:
        kept = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else []
        record = measure(task, options.rows, options.store)
        files.write_json(
            options.out, sorted([*(r for r in kept if r["task"] != task), record], key=lambda r: r["task"])
        )
        print(f"{task}: ACC {100 * record['acc']:.1f} %, {record['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
