"""Run directories to review, written file by file: no training."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

from unveil.discovery.run import table
from unveil.runs.reader import Look, load

KNOWN = ("cat", "<img src=x onerror=alert(1)>")


def write_run(
    folder: Path, *, each: int = 12, clusters: int = 4, known: tuple[str, ...] = KNOWN, pictures: str = "array"
) -> Path:
    """`each` items in every class; pictures as an array, as files, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [*known, *(f"novel-{i}" for i in range(clusters))]
    labels = np.repeat(np.arange(len(names)), each)
    draw = np.random.default_rng(0)
    centers = np.eye(len(names), 16) + 0.3 * draw.normal(size=(len(names), 16))
    halves = 0.4 * np.where(np.arange(len(labels)) % 2, 1, -1)[:, None] * np.eye(1, 16, 15)
    features = (centers[labels] + halves + 0.05 * draw.normal(size=(len(labels), 16))).astype(np.float32)
    confidence = draw.uniform(0.5, 1, len(labels)).astype(np.float32)
    shade = (labels * 40 % 256).astype(np.uint8)[:, None, None, None]
    pixels = (shade + draw.integers(0, 30, (len(labels), 16, 16, 3))).astype(np.uint8)
    lines = []
    for row, label in enumerate(labels):
        part = "known" if label < len(known) else "new"
        item, path = f"{part}/{row:04d}", ""
        if pictures == "files":
            path = str(folder / "<script>alert(1)</script>" / f"{row:04d}.png")
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels[row]).save(path)
            item = f"<script>alert(1)</script>/{row:04d}.png"
        kind, given = ("known", names[label]) if part == "known" else ("novel", "")
        lines.append((item, part, given, names[label], kind, f"{confidence[row]:.4f}", path))
    (folder / "items.csv").write_text(table(["id", "part", "given", "label", "kind", "confidence", "path"], lines))
    kept = {"labels": labels, "confidence": confidence, "typicality": confidence, "kmeans": labels}
    np.savez(folder / "rows.npz", **kept)
    np.save(folder / "features.npy", features)
    if pictures == "array":
        np.save(folder / "pictures.npy", pixels)
    elif pictures == "none":
        np.save(folder / "inputs.npy", features)
    (folder / "record.json").write_text(json.dumps({"words": [f"{clusters} novel classes"]}))
    (folder / "estimator.json").write_text(json.dumps({"known": known, "n_novel": clusters}))
    return folder


def look_at(folder: Path, **options: object) -> Look:
    return load(write_run(folder, **options))  # type: ignore[arg-type]
