"""Run directories to review, written without training."""

from pathlib import Path

import numpy as np
from PIL import Image

from unveil import checksums, files
from unveil.runs.reader import Run, load
from unveil.runs.writer import Contents, write

KNOWN = ("cat", "<img src=x onerror=alert(1)>")


def write_run(
    folder: Path, *, each: int = 12, clusters: int = 4, known: tuple[str, ...] = KNOWN, pictures: str = "array"
) -> Path:
    """`each` items in every class; pictures as an array, as files, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    classes = [*known, *(f"novel-{i}" for i in range(clusters))]
    labels = np.repeat(np.arange(len(classes)), each)
    draw = np.random.default_rng(0)
    centers = np.eye(len(classes), 16) + 0.3 * draw.normal(size=(len(classes), 16))
    halves = 0.4 * np.where(np.arange(len(labels)) % 2, 1, -1)[:, None] * np.eye(1, 16, 15)
    features = (centers[labels] + halves + 0.05 * draw.normal(size=(len(labels), 16))).astype(np.float32)
    confidence = draw.uniform(0.5, 1, len(labels)).astype(np.float32)
    shade = (labels * 40 % 256).astype(np.uint8)[:, None, None, None]
    pixels = (shade + draw.integers(0, 30, (len(labels), 16, 16, 3))).astype(np.uint8)
    new = labels >= len(known)
    ids = [f"{'new' if new[row] else 'known'}/{row:04d}" for row in range(len(labels))]
    paths: list[str] = []
    if pictures == "files":
        hostile = "<script>alert(1)</script>"
        (folder / hostile).mkdir(parents=True)
        paths = [str(folder / hostile / f"{row:04d}.png") for row in range(len(labels))]
        for row, path in enumerate(paths):
            Image.fromarray(pixels[row]).save(path)
        ids = [f"{hostile}/{row:04d}.png" for row in range(len(labels))]
    contents = Contents(
        ids=ids,
        new=new,
        given=["" if new[row] else classes[label] for row, label in enumerate(labels)],
        labels=labels,
        classes=classes,
        n_known=len(known),
        confidence=confidence,
        typicality=confidence,
        kmeans=labels,
        features=features,
        paths=paths,
        pictures=pixels if pictures == "array" else None,
        inputs=features if pictures == "none" else None,
        record={"summary": {"result": f"{clusters} novel classes"}},
        config="",
    )
    write(folder, contents)
    return folder


def seal_again(folder: Path, **changes: object) -> None:
    """Bring the checksums of a run up to date after a test has changed its files, or keys of its record."""
    record = {**files.read_json(folder / "record.json"), **changes}
    record["checksums"] = {name: checksums.of_file(folder / name) for name in record["checksums"]}
    files.write_json(folder / "record.json", checksums.with_checksum(record))


def make_run(folder: Path, **options: object) -> Run:
    return load(write_run(folder, **options))  # type: ignore[arg-type]


def made_run(folder: Path, sizes: list[int], *, known: int = 3, pictures: np.ndarray | None = None) -> Path:
    """A run directory without a discovery: blobs with the given numbers of items in each class."""
    draw = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centers = draw.standard_normal((len(sizes), 8))
    features = (centers[labels] + 0.1 * draw.standard_normal((len(labels), 8))).astype("f4")
    novel = len(sizes) - known
    names = [f"known {i}" for i in range(known)] + [f"novel-{i}" for i in range(novel)]
    confidence = draw.uniform(0.5, 1, len(labels)).astype("f4")
    contents = Contents(
        ids=[f"item {row}" for row in range(len(labels))],
        new=labels >= known,
        given=[names[label] if label < known else "" for label in labels],
        labels=labels,
        classes=names,
        n_known=known,
        confidence=confidence,
        typicality=confidence,
        kmeans=labels,
        features=features,
        pictures=pictures,
        record={"summary": {"result": f"{novel} novel classes"}, "config": {"steps": 9}},
        config="steps = 9\n",
    )
    write(folder, contents)
    return folder
