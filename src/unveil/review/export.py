"""`unveil export RUN`: the labels of a run in the formats that other tools read."""

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import unicodedata
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np

from unveil import files
from unveil.errors import UnveilError
from unveil.review.decisions import REJECTED_KIND, corrected_items
from unveil.runs.reader import Run, load, read_items, read_record

Rows = list[dict[str, str]]


def export(
    run: Path, kind: str, out: Path | None, *, all_items: bool = False, original: bool = False, copy: bool = False
) -> Path:
    """Write the labels of a run directory in one of `FORMATS`; returns the file or folder.

    New items only, or `all_items`; labels as they are after the review, or the `original` ones. Folders have links to
    the images, or copies.
    """
    if (write := FORMATS.get(kind)) is None:
        raise UnveilError(f"the format is '{kind}': there is {', '.join(FORMATS)}")
    items = read_items(run) if original else corrected_items(run)
    rows = [row for row in items if all_items or row["part"] == "new"]
    target = out or run / f"export-{kind}{SUFFIXES.get(kind, f'.{kind}')}"
    if kind not in FOLDERS:
        if copy:
            raise UnveilError(f"--copy is for {' and '.join(FOLDERS)}, and {kind} is one file: leave it out")
        write(rows, run, target)
        return target
    _make_room(target)
    before = _files_in(target)
    write(rows, run, target, copy=copy)
    files.write_json(target / WRITTEN, sorted(_files_in(target) - before))
    return target


def _make_room(target: Path) -> None:
    """Delete what an earlier export wrote into a folder; other files in it are an error."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UnveilError(f"{target} is not a folder: choose another --out")
    if not target.exists() or not any(target.iterdir()):
        return
    if not (target / WRITTEN).is_file():
        raise UnveilError(f"{target} is not empty, and no export wrote it: choose another --out")
    names = files.read_json(target / WRITTEN)
    for name in names if isinstance(names, list) else []:
        path = target / str(name)
        if ".." not in path.parts and (path.is_symlink() or path.is_file()):
            path.unlink()
            with contextlib.suppress(OSError):
                path.parent.rmdir()  # where it is empty


def _files_in(folder: Path) -> set[str]:
    paths = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return {path.relative_to(folder).as_posix() for path in paths}


def formats_for(run: Run) -> tuple[str, ...]:
    """The formats that a run can be exported to on this machine."""
    has_files = all(run.paths[row] for row in np.flatnonzero(run.new)) and bool(run.new.any())
    has_pyarrow = "pyarrow" in sys.modules or importlib.util.find_spec("pyarrow") is not None
    missing = {*(() if has_files else IMAGE_FORMATS), *(() if has_pyarrow else ("parquet",))}
    source = run.record["source"]
    if not str(source.get("new") or source.get("known")).lower().endswith(".h5ad"):
        missing.add("h5ad")
    return tuple(kind for kind in FORMATS if kind not in missing)


def _csv(rows: Rows, run: Path, out: Path) -> None:
    header = ["id", "label", "kind", "confidence", "path"]
    files.write(out, files.sheet_text(header, ([row[key] for key in header] for row in rows)))


def _npz(rows: Rows, run: Path, out: Path) -> None:
    arrays: dict[str, Any] = {key: np.array([row[key] for row in rows], dtype=str) for key in ("id", "label", "kind")}
    arrays["confidence"] = np.array([float(row["confidence"]) for row in rows], dtype=np.float32)
    row_of = {item["id"]: number for number, item in enumerate(read_items(run))}
    arrays["features"] = load(run).features[[row_of[row["id"]] for row in rows]]
    files.write_with(out, lambda file: np.savez_compressed(file, **arrays))


def _folders(rows: Rows, run: Path, out: Path, *, copy: bool = False) -> None:
    """A folder for each class with links to its images, or copies where that was asked for or there are no links."""
    rows = _with_images(_without_rejected(rows))
    name_of = folder_names({row["label"] for row in rows})
    for row in rows:
        folder = out / name_of[row["label"]]
        folder.mkdir(parents=True, exist_ok=True)
        _place(Path(row["path"]), folder / safe_name(row["id"].replace("/", "__")), copy)


def _coco(rows: Rows, run: Path, out: Path) -> None:
    """Whole images as boxes, with the confidence as `score`."""
    rows = _without_rejected(rows)
    classes = sorted({row["label"] for row in rows})
    images, annotations = [], []
    for number, row in enumerate(_with_images(rows), start=1):
        width, height = _size(Path(row["path"]))
        images.append({"id": number, "file_name": row["path"], "width": width, "height": height})
        box = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0, "score": float(row["confidence"])}
        category = classes.index(row["label"]) + 1
        annotations.append({"id": number, "image_id": number, "category_id": category, **box})
    kinds = {row["label"]: row["kind"] for row in rows}
    categories = [{"id": i, "name": name, "supercategory": kinds[name]} for i, name in enumerate(classes, start=1)]
    files.write_json(out, {"images": images, "annotations": annotations, "categories": categories})


def _label_studio(rows: Rows, run: Path, out: Path) -> None:
    """Tasks with predictions: import them, and correct the choices. The labeling configuration is beside them."""
    loaded = load(run) if (run / "texts.json").exists() else None
    texts = {} if loaded is None else dict(zip(loaded.ids, loaded.texts, strict=False))
    shown = "image" if any(row["path"] for row in rows) else "text"
    tasks = []
    for row in rows:
        image = {"image": f"/data/local-files/?d={quote(row['path'].lstrip('/'))}"} if row["path"] else {}
        data = {"id": row["id"], **(image or {"text": texts.get(row["id"], row["id"])})}
        choice = {"from_name": "class", "to_name": shown, "type": "choices", "value": {"choices": [row["label"]]}}
        prediction = {"model_version": "unveil", "score": float(row["confidence"]), "result": [choice]}
        tasks.append({"data": data, "predictions": [prediction] if row["kind"] != REJECTED_KIND else []})
    files.write_json(out, tasks)
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, shown.capitalize(), {"name": shown, "value": f"${shown}"})
    choices = ElementTree.SubElement(view, "Choices", {"name": "class", "toName": shown, "choice": "single"})
    for name in sorted({row["label"] for row in rows if row["kind"] != REJECTED_KIND}):
        ElementTree.SubElement(choices, "Choice", {"value": name})
    ElementTree.indent(view)
    files.write(out.with_suffix(".config.xml"), ElementTree.tostring(view, encoding="unicode") + "\n")


def _fiftyone(rows: Rows, run: Path, out: Path, *, copy: bool = False) -> None:
    """A FiftyOneImageClassificationDataset: data/ and labels.json."""
    rows = _without_rejected(rows)
    classes = sorted({row["label"] for row in rows})
    labels: dict[str, Any] = {}
    (out / "data").mkdir(parents=True, exist_ok=True)
    for row in _with_images(rows):
        path = Path(row["path"])
        name = uuid.uuid5(uuid.NAMESPACE_URL, row["id"]).hex
        _place(path, out / "data" / f"{name}{path.suffix.lower()}", copy)
        attributes = {"item": row["id"], "kind": row["kind"]}  # FiftyOne keeps `id` for itself
        labels[name] = {"label": row["label"], "confidence": float(row["confidence"]), "attributes": attributes}
    files.write(out / "labels.json", json.dumps({"classes": classes, "labels": labels}, ensure_ascii=False) + "\n")


def _parquet(rows: Rows, run: Path, out: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UnveilError(f"parquet needs the package pyarrow ({error}): pip install pyarrow") from None
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in ("id", "label", "kind", "path")}
    columns["confidence"] = [float(row["confidence"]) for row in rows]
    with files.replacing(out) as temporary:
        pq.write_table(pa.table(columns), temporary)


def _cvat(rows: Rows, run: Path, out: Path) -> None:
    """ "CVAT for images 1.1": a tag for each image. Upload it as annotations of a task with the same images."""
    rows = _with_images(_without_rejected(rows))
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    labels = ElementTree.SubElement(ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task"), "labels")
    for name in sorted({row["label"] for row in rows}):
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = name
        ElementTree.SubElement(label, "type").text = "tag"
        ElementTree.SubElement(label, "attributes")
    paths = [Path(row["path"]) for row in rows]
    names = [path.name for path in paths]
    if len(set(names)) < len(names):  # their paths below the folder of all
        folder = os.path.commonpath([path.parent for path in paths])
        names = [path.relative_to(folder).as_posix() for path in paths]
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        width, height = _size(Path(row["path"]))
        values = {"id": str(number), "name": name, "width": str(width), "height": str(height)}
        image = ElementTree.SubElement(root, "image", values)
        ElementTree.SubElement(image, "tag", {"label": row["label"], "source": "auto"})
    ElementTree.indent(root)
    files.write(out, ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n")


def _h5ad(rows: Rows, run: Path, out: Path) -> None:
    """The file of cells that the run was made from, with the labels as columns of `obs`."""
    source = read_record(run)["source"]
    path = Path(str(source.get("new") or source.get("known") or ""))
    if path.suffix.lower() != ".h5ad":
        raise UnveilError(f"{run} was not made from a .h5ad file: use csv or parquet")
    from unveil.data.cells import open_cells, write_cells  # late: anndata is optional

    cells = open_cells(path)
    row_of = {row["id"]: row for row in read_items(run)} | {row["id"]: row for row in rows}
    found = [row_of.get(f"new/{name}") or row_of.get(name) for name in map(str, cells.obs_names)]
    for key in ("label", "kind"):
        cells.obs[f"unveil_{key}"] = ["" if row is None else row[key] for row in found]
    cells.obs["unveil_confidence"] = [float("nan") if row is None else float(row["confidence"]) for row in found]
    with files.replacing(out) as temporary:
        write_cells(cells, temporary)


FORMATS: dict[str, Callable[..., None]] = {
    "csv": _csv,
    "npz": _npz,
    "folders": _folders,
    "coco": _coco,
    "label-studio": _label_studio,
    "fiftyone": _fiftyone,
    "cvat": _cvat,
    "h5ad": _h5ad,
    "parquet": _parquet,
}
RESERVED = {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))}
"""Names that Windows does not allow."""
FOLDERS = ("folders", "fiftyone")
SUFFIXES = {"folders": "", "fiftyone": "", "coco": ".json", "label-studio": ".json", "cvat": ".xml"}
WRITTEN = ".unveil-export.json"
"""Names of the files that an export wrote into a folder, so that the next one can replace them."""
IMAGE_FORMATS = ("folders", "coco", "fiftyone", "cvat")  # formats that refer to image files


def safe_name(text: str) -> str:
    """A label or id as the name of one folder or file: without separators, not hidden, not too long."""
    name = "".join("_" if c in '/\\:*?"<>|' or ord(c) < 32 or not files.is_text(c) else c for c in text)
    short = name.encode()[-120:].decode("utf-8", "ignore").strip(" .")  # 255 bytes are the most on many systems
    return f"_{short}" if short.partition(".")[0].upper() in RESERVED or not short else short


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder name for each label; different labels have different ones, also where upper and lower case are alike."""
    names: dict[str, str] = {}
    taken: set[str] = set()

    def folded(name: str) -> str:  # equal for names that some file system takes for the same
        return unicodedata.normalize("NFC", name).casefold()

    for label in sorted(labels, key=lambda label: (safe_name(label) != label, label)):  # what fits keeps its name
        number, name = 1, safe_name(label)
        while folded(name) in taken:
            number += 1
            name = f"{safe_name(label)}-{number}"
        taken.add(folded(name))
        names[label] = name
    return names


def _without_rejected(rows: Rows) -> Rows:
    """Rejected items belong to no class."""
    return [row for row in rows if row["kind"] != REJECTED_KIND]


def _with_images(rows: Rows) -> Rows:
    if missing := [row for row in rows if not row["path"]]:
        raise UnveilError(f"this format needs image files, and {missing[0]['id']} has none: use csv, npz or parquet")
    if gone := [row["path"] for row in rows if not Path(row["path"]).is_file()]:
        raise UnveilError(f"{len(gone)} images are not where they were, the first is {gone[0]}: put them back")
    return rows


def _place(source: Path, target: Path, copy: bool) -> None:
    """A link to the file, or a copy."""
    number, first = 1, target
    while os.path.lexists(target):
        target = first.with_name(f"{first.stem}-{number}{first.suffix}")
        number += 1
    if not copy:
        with contextlib.suppress(OSError):
            target.symlink_to(source)
            return
    shutil.copy2(source, target)


def _size(path: Path) -> tuple[int, int]:
    from unveil.data.pictures import open_image  # late: a CSV needs none

    with open_image(path) as image:
        return image.size
