"""Which encoder of texts is worth its size: k-means and nearest neighbors on 20 classes of two data sets.

    python -m benchmarks.text_encoders --titles stackoverflow.tsv.gz [--out results/text-encoders.json]

50 texts of each class, three draws of 20 of the 150 intents and one of the 20 topics of questions; all labels are used.
TF-IDF is fitted to the texts themselves, as a fit would. One thread; seconds are of the processor.
"""

import csv
import gzip
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.image_sizes import scores
from unveil import files, hardware, rng
from unveil.data import catalog
from unveil.encoders.text import text_encoder
from unveil.encoders.tfidf import fit_tfidf
from unveil.numerics import unit_rows

ENCODERS = ("tfidf", "wordllama", "multilingual", "minilm")
TOGETHER = (("minilm", "multilingual"), ("multilingual", "wordllama"))
PER_CLASS, CLASSES, DRAWS = 50, 20, 3
RECORD = Path("results/text-encoders.json")
app = cyclopts.App(help=__doc__)


@app.default
def main(*, titles: Path, out: Path = RECORD) -> None:
    """Measure everything and write the record."""
    torch.set_num_threads(1)
    rows = []
    for data, texts, labels in drawn(titles):
        vectors, seconds = {}, {}
        for name in ENCODERS:
            begun = time.process_time()
            encode = fit_tfidf(texts) if name == "tfidf" else text_encoder(name, torch.device("cpu"))
            vectors[name] = unit_rows(encode(texts))
            seconds[name] = time.process_time() - begun
        for names in ((name,) for name in ENCODERS), TOGETHER:
            for parts in names:
                both = np.concatenate([vectors[name] for name in parts], axis=1)
                cost = round(sum(seconds[name] for name in parts), 2)
                rows.append({"data": data, "encoder": " + ".join(parts), **scores(both, labels), "seconds": cost})
                print(rows[-1])
    files.write_json(
        out,
        {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": hardware.commit(),
            "machine": hardware.describe(torch.device("cpu"), torch.float32),
            "seed": 0,
            "per_class": PER_CLASS,
            "rows": rows,
        },
    )


def drawn(titles: Path) -> Iterator[tuple[str, list[str], NDArray[np.int64]]]:
    """The name of a draw, its texts and their classes."""
    for path, draws in ((catalog.data_root() / "clinc150.tsv.gz", DRAWS), (titles, 1)):
        found = read(path)
        for number in range(draws):
            draw = rng.numpy(number, f"texts {path.name}")
            classes = draw.permutation(np.unique([row["label"] for row in found]))[:CLASSES]
            texts, labels = [], []
            for index, name in enumerate(sorted(classes)):
                own = [row["text"] for row in found if row["label"] == name]
                texts += [own[place] for place in draw.permutation(len(own))[:PER_CLASS]]
                labels += [index] * min(PER_CLASS, len(own))
            yield f"{path.name.partition('.')[0]}, draw {number}", texts, np.array(labels)


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    header = rows[0] if rows[0][0] == "label" or "label" in rows[0] else ["label", "text"]
    body = rows[1:] if header == rows[0] else rows
    return [{"label": row[header.index("label")], "text": row[1 - header.index("label")]} for row in body]


if __name__ == "__main__":
    app()
