"""`unveil discover KNOWN NEW`: from own folders or arrays to a run directory; `unveil predict`."""

import json
import time
import warnings
from dataclasses import dataclass, replace
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
from unveil.discovery.rehearsal import Trust
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.runs.writer import Contents, write
from unveil.settings import Machine
from unveil.storage import default_store, identity, locked


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
        read = time.monotonic()
        vectors, source, kept = vectors_of(own, request.encoder, store, request.device, request.seed, console)
        encoded = time.monotonic()
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
        record = {
            "source": {"kind": "files", "known": told["known"], "new": told["new"]},
            "method": request.method,
            "seed": request.seed,
            "summary": summary(estimator),
            "estimate": None if estimator.classes_estimate_ is None else estimator.classes_estimate_.to_json(),
            "forecast": _forecast(estimator.trust_),
            "warnings": told_warnings,
            "skipped": skipped,
            "seconds": {
                "reading": round(read - begun, 1),
                "encoding": round(encoded - read, 1),
                "discovery": round(time.monotonic() - encoded, 1),
            },
            "config": {key: value for key, value in told.items() if key not in ("known", "new", "items")},
            "environment": environment(request.device),
        }
        return write(out, _contents(own, kept, vectors, estimator, record, out))


def _contents(
    own: Own,
    kept: NDArray[np.bool_],
    vectors: NDArray[np.float32],
    estimator: NovelClassDiscovery,
    record: dict[str, Any],
    out: Path,
) -> Contents:
    """Everything about the fit, for the run directory."""
    rows = np.flatnonzero(kept)
    new = rows >= own.known
    with np.load(out / "rows.npz", allow_pickle=False) as stored:  # as `save` has just written it
        labels, plain = stored["labels"], stored["kmeans"]
    images = not isinstance(own.items, tuple) and own.items.dtype == np.uint8
    arrays: Any = None if isinstance(own.items, tuple) else own.items[kept]
    history = out / "work" / "metrics.jsonl"
    return Contents(
        ids=[own.ids[row] for row in rows],
        new=new,
        given=["" if row >= own.known else str(own.labels[row]) for row in rows],
        labels=labels,
        classes=[str(name) for name in estimator.classes_.tolist()],
        n_known=len(estimator._known.known),
        confidence=estimator.confidence_,
        typicality=estimator.typicality_,
        kmeans=plain,
        features=estimator.transform(vectors),
        paths=[str(own.paths[row].resolve()) for row in rows] if own.paths else (),
        pictures=arrays if images else None,
        inputs=arrays if arrays is not None and not images else None,
        columns=own.columns,
        record=record,
        config="".join(
            f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
            for key, value in record["config"].items()
            if value is not None
        ),
        history=[json.loads(line) for line in history.read_text().splitlines()] if history.exists() else (),
    )


def _forecast(trust: Trust) -> dict[str, Any] | None:
    """What the rehearsals say, for the record."""
    if trust.accuracy is None:
        return None
    rehearsals = [
        {
            "hidden": one["hidden"],
            "counted": one["counted"],
            "accuracy": {key: value for key, value in one.items() if key not in ("hidden", "counted")},
        }
        for one in trust.rehearsals
    ]
    return {
        "accuracy": trust.accuracy,
        "low": trust.low,
        "high": trust.high,
        "candidate": trust.way,
        "rehearsals": rehearsals,
    }


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


def summary(estimator: NovelClassDiscovery) -> dict[str, str]:
    """The result in sentences, by the keys of record.json."""
    new = estimator.novel_clusters_.tolist()
    sizes = [int((estimator.labels_ == label).sum()) for label in new]
    number = f"{estimator.n_novel_} novel class{'es' if estimator.n_novel_ != 1 else ''}"
    least, most = min(sizes, default=0), max(sizes, default=0)
    each = f"{least} items{' each' if len(sizes) > 1 else ''}" if least == most else f"{least} to {most} items"
    sentences = {"result": f"{number} of {each}" if sizes else "no novel classes"}
    if estimator.classes_estimate_ is not None:
        sentences["number"] = estimator.classes_estimate_.sentence()
    sentences["choice"] = estimator.choice_
    sentences["accuracy"] = estimator.trust_.sentence()
    novel = np.isin(estimator.labels_, estimator.novel_clusters_)
    if novel.any():
        same = clustering_accuracy(estimator.kmeans_labels_[novel].astype(str), estimator.labels_[novel].astype(str))
        sentences["agreement"] = f"k-means without training puts {100 * same:.0f} % of them into the same clusters"
    return sentences


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
