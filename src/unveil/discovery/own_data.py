"""`unveil discover KNOWN NEW`: people's own folders or arrays into a run directory, and what else reads one."""

import csv
import time
import warnings
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from unveil import __version__, files, hardware
from unveil.data.known_new import Own, read_new, read_own
from unveil.data.labels import read_labels
from unveil.discovery.encoders import Source, choose_source, load_source
from unveil.discovery.estimator import NEITHER, NovelClassDiscovery
from unveil.discovery.run import table
from unveil.errors import UnveilError
from unveil.settings import Machine
from unveil.storage import default_store, identity, locked

PICTURE = 64
"""Side of the pictures that are kept where images came as an array."""
MOST_VALUES = 20_000_000
"""Numbers that are kept for looking at where there are no pictures."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line says."""

    known: Path
    new: Path
    classes: int | None = None
    encoder: str = "auto"
    method: str = "ncl-hng"
    may_contain_known: bool = False
    rehearsals: int = 3
    seed: int = 0
    device: str = "auto"


@dataclass(frozen=True)
class Given:
    """What a review has told beyond KNOWN: labels of new items by their id, and classes that an item is not of."""

    labels: dict[str, str]
    never: dict[str, str]
    source: str
    """Which run, and the state of its review."""


def discover(
    request: Request,
    *,
    out: Path,
    store: Path | None = None,
    console: Console | None = None,
    given: Given | None = None,
) -> dict[str, Any]:
    """Find the novel classes of NEW; everything about it is in the directory `out`. Returns the record."""
    console = console or Console(stderr=True, markup=False)
    begun = time.monotonic()
    own = read_own(request.known, request.new)
    told = {**{key: _plain(value) for key, value in request.__dict__.items()}, "items": identity(ids=own.ids)}
    if given is not None:
        told["continues"] = given.source
        own = replace(
            own, labels=tuple(given.labels.get(i, label) for i, label in zip(own.ids, own.labels, strict=True))
        )
    _prepare(out, told)
    with locked(out, wait=False):
        files.write_json(out / "request.json", told)
        vectors, source, kept = vectors_of(own, request.encoder, store, request.device, request.seed, console)
        skipped = [own.ids[row] for row in np.flatnonzero(~kept)]
        labels = np.array(own.labels, dtype=object)[kept]
        if not any(label is None for label in labels):
            told_why = f"{skipped[0]} and {len(skipped) - 1} more cannot be read" if skipped else "all have labels"
            raise UnveilError(f"there is no new item in {request.new} ({told_why}): nothing to discover")
        estimator = NovelClassDiscovery(
            n_novel="auto" if request.classes is None else request.classes,
            method=request.method,
            encoder=request.encoder if source is None else source.name,
            known_in_unlabelled=request.may_contain_known,
            rehearsals=request.rehearsals,
            random_state=request.seed,
            device=request.device,
            verbose=not console.quiet,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            estimator.fit(vectors, labels, folder=out / "work")
        told_warnings = [str(warning.message) for warning in caught if warning.category is UserWarning]
        estimator._source = source
        if given is not None:
            _keep_away(estimator, vectors, [own.ids[row] for row in np.flatnonzero(kept)], given.never)
        estimator.save(out)
        _write_items(out, own, kept, estimator)
        write_contents(out, own, kept)
        files.write_with(out / "features.npy", lambda file: np.save(file, estimator.transform(vectors), False))
        record = {
            "request": told,
            "known": estimator._known.known.tolist(),
            "n_novel": estimator.n_novel_,
            "items": {"known": int(kept[: own.known].sum()), "new": int(kept[own.known :].sum())},
            "estimate": None if estimator.classes_estimate_ is None else estimator.classes_estimate_.to_json(),
            "trust": {**estimator.trust_.to_json(), "low": estimator.trust_.low, "high": estimator.trust_.high},
            "words": words(estimator),
            "warnings": told_warnings,
            "skipped": skipped,
            "columns": list(own.columns),
            "seconds": round(time.monotonic() - begun, 1),
            "environment": environment(request.device),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        files.write_json(out / "record.json", record)
    return record


def _keep_away(
    estimator: NovelClassDiscovery, vectors: NDArray[np.float32], ids: list[str], never: dict[str, str]
) -> None:
    """An item that was rejected from a class goes to the next likely one."""
    place = {name: row for row, name in enumerate(ids)}
    for name, label in never.items():
        row = place.get(name)
        if row is None or str(estimator.labels_[row]) != label:
            continue
        p = estimator.predict_proba(vectors[row : row + 1])[0]
        p[estimator.classes_.tolist().index(estimator.labels_[row])] = -1
        estimator.labels_[row] = estimator.classes_[int(p.argmax())]
        estimator.confidence_[row] = max(0.0, float(p.max()))


def _plain(value: Any) -> Any:
    """For a JSON file; a path so that it is found from anywhere."""
    return str(value.resolve()) if isinstance(value, Path) else value


def _prepare(out: Path, told: dict[str, Any]) -> None:
    if not out.exists() or not any(not path.name.startswith(".") for path in out.iterdir()):
        return
    if not (out / "request.json").exists():
        raise UnveilError(f"{out} is not empty and holds no discovery: choose another --out")
    if files.read_json(out / "request.json") != told:
        raise UnveilError(f"{out} holds a discovery of other data or settings: choose another --out")
    if (out / "record.json").exists():
        raise UnveilError(f"{out} already holds this discovery, finished: look at it, or choose another --out")


def environment(device: str) -> dict[str, object]:
    """Where it was run."""
    where = hardware.pick_device(device)
    machine = hardware.describe(where, hardware.pick_precision(Machine(), where))
    return {"unveil": __version__, "commit": hardware.commit(), **machine}


def vectors_of(
    own: Own, encoder: str, store: Path | None, device: str, seed: int, console: Console
) -> tuple[NDArray[np.float32], Source | None, NDArray[np.bool_]]:
    """Vectors of all items that can be read, what made them, and which those are."""
    kept = np.ones(len(own.ids), dtype=bool)
    if not isinstance(own.items, tuple) and own.items.dtype != np.uint8:
        return own.items, None, kept  # type: ignore[return-value]
    _, labels = read_labels(np.array(own.labels, dtype=object), len(own.ids))
    source = choose_source(
        own.items, encoder, labels, store=store or default_store(), device=device, seed=seed, console=console
    )
    vectors = source(own.items, console)
    kept = ~np.isnan(vectors[:, 0])
    return (vectors if kept.all() else vectors[kept]), source, kept


def _write_items(out: Path, own: Own, kept: NDArray[np.bool_], estimator: NovelClassDiscovery) -> None:
    """items.csv: every item that could be read; predictions.csv: the new ones."""
    rows = np.flatnonzero(kept)
    novel = {str(label) for label in estimator.novel_clusters_.tolist()}
    lines = []
    for place, row in enumerate(rows):
        label = str(estimator.labels_[place])
        path = str(own.paths[row].resolve()) if own.paths else ""
        part, given = ("known", own.labels[row]) if row < own.known else ("new", "")
        kind = "novel" if label in novel else "known"
        lines.append((own.ids[row], part, given, label, kind, f"{estimator.confidence_[place]:.4f}", path))
    header = ["id", "part", "given", "label", "kind", "confidence", "path"]
    files.write(out / "items.csv", table(header, lines))
    new = [(line[0], line[3], line[4], line[5]) for line in lines if line[1] == "new"]
    files.write(out / "predictions.csv", table(["id", "label", "kind", "confidence"], new))


def write_contents(out: Path, own: Own, kept: NDArray[np.bool_]) -> None:
    """What people look at where there are no image files: small pictures, or the numbers themselves."""
    if isinstance(own.items, tuple):
        return
    items = own.items[kept]
    if items.dtype == np.uint8:
        step = max(1, -(-max(items.shape[1:3]) // PICTURE))
        files.write_with(out / "pictures.npy", lambda file: np.save(file, items[:, ::step, ::step], False))
    elif items.size <= MOST_VALUES:
        files.write_with(out / "inputs.npy", lambda file: np.save(file, items.astype(np.float32), False))


def words(estimator: NovelClassDiscovery) -> list[str]:
    """The result in sentences."""
    new = estimator.novel_clusters_.tolist()
    sizes = [int((estimator.labels_ == label).sum()) for label in new]
    told = f"{estimator.n_novel_} novel class{'es' if estimator.n_novel_ != 1 else ''}"
    least, most = min(sizes, default=0), max(sizes, default=0)
    each = f"{least} items{' each' if len(sizes) > 1 else ''}" if least == most else f"{least} to {most} items"
    lines = [f"{told} of {each}" if sizes else "no novel classes"]
    if estimator.classes_estimate_ is not None:
        lines.append(f"how many: {estimator.classes_estimate_.sentence()}")
    lines.append(f"how: {estimator.choice_}")
    lines.append(f"how sure: {estimator.trust_.sentence()}")
    hidden = np.isin(estimator.labels_, estimator.novel_clusters_)
    if hidden.any():
        from unveil.metrics import clustering_accuracy

        same = clustering_accuracy(estimator.kmeans_labels_[hidden].astype(str), estimator.labels_[hidden].astype(str))
        lines.append(f"k-means on the same vectors puts {100 * same:.0f} % of them into the same clusters")
    return lines


def read_items(run: Path) -> list[dict[str, str]]:
    """items.csv of a run directory."""
    path = run / "items.csv"
    if not path.is_file():
        raise UnveilError(f"{run} holds no finished discovery (items.csv): give the --out of `unveil discover`")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def predict(
    run: Path, inputs: Path, *, coverage: float | None, store: Path | None = None, console: Console | None = None
) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """(id, label, kind, probability) of each item that can be read, and the ids of the others."""
    console = console or Console(stderr=True, markup=False)
    estimator = NovelClassDiscovery.load(run)
    record = (
        files.read_json(run / "record.json") if (run / "record.json").exists() else {}
    )  # a saved estimator has none
    items, ids = read_new(inputs, record.get("columns", ()))
    kept = np.ones(len(ids), dtype=bool)
    if isinstance(items, tuple) or items.dtype == np.uint8:
        source = load_source(files.read_json(run / "estimator.json")["source"], run)
        if source is None:
            raise UnveilError(f"{run} was made from vectors, and {inputs} holds images: give their vectors")
        vectors = source(items, console)
        kept = ~np.isnan(vectors[:, 0])
        vectors = vectors[kept]
    else:
        if estimator._source is not None:
            raise UnveilError(f"{run} was made from images, and {inputs} holds vectors: give images")
        vectors = items  # type: ignore[assignment]
    if len(vectors) == 0:
        return [], list(ids)
    labels = estimator.predict(vectors, coverage=coverage).tolist()
    chance = estimator.predict_proba(vectors).max(axis=1)
    novel = set(estimator.novel_clusters_.tolist())
    lines = []
    for row, label, p in zip(np.flatnonzero(kept), labels, chance, strict=True):
        neither = coverage is not None and label in (-1, NEITHER)
        kind = NEITHER if neither else "novel" if label in novel else "known"
        lines.append((ids[row], NEITHER if neither else str(label), kind, f"{p:.4f}"))
    return lines, [ids[row] for row in np.flatnonzero(~kept)]
