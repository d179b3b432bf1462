"""Save a fitted estimator as a run directory, and load it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unveil import ranks, recipe
from unveil.counting.estimate import Estimate
from unveil.data.items import Items
from unveil.data.labels import Classes
from unveil.data.task import UNLABELED, Task
from unveil.discovery.forecast import Forecast
from unveil.discovery.predictor import Predictor
from unveil.discovery.result import Result
from unveil.errors import UnveilError
from unveil.own.accepts import plain
from unveil.review.corrections import current_state
from unveil.review.decisions import classes_after
from unveil.review.log import LOG
from unveil.runs.reader import load
from unveil.runs.writer import write


def save(estimator: Any, folder: Path, items: Items | None) -> None:
    """Write the run directory; with the items of the fit, report and review can show them."""
    task: Task = estimator._task
    if items is not None and len(items) != len(task):
        raise UnveilError(f"X has {len(items)} rows and the fit had {len(task)}: give the items of the fit")
    result, settings = estimator._result, estimator._settings_used
    estimator._predictor.save(folder)
    parameters = {key: plain(value) for key, value in estimator.get_params().items() if key != "store"}
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    contents = result.contents(
        replace(task, ids=task.ids or tuple(f"{row:06d}" for row in range(len(task)))),
        settings,
        name=folder.resolve().name,
        source={"kind": "arrays"},
        items=items,
        columns=_columns(estimator),
        estimator={
            "parameters": parameters,
            "known": estimator._known.known.tolist(),
            "n_features_in": estimator.n_features_in_,
        },
    )
    ranks.current().from_first(lambda: write(folder, contents))


def _columns(estimator: Any) -> tuple[str, ...]:
    """Names of the columns of the inputs."""
    table = estimator._predictor.preparation.table
    return table.names if table is not None else tuple(map(str, getattr(estimator, "feature_names_in_", ())))


def load_into(estimator: Any, folder: Path) -> None:
    """Fill a new estimator from a run directory."""
    run = load(folder)
    stored = run.record.get("estimator", {})
    estimator.set_params(**stored.get("parameters", {}))
    known = stored.get("known", list(run.classes[: run.n_known]))
    numeric = all(isinstance(name, int) for name in known)
    predictor = Predictor.load(folder, device=estimator.device)
    estimator.n_features_in_ = stored.get("n_features_in") or predictor.n_inputs
    table = predictor.preparation.table
    columns = run.record["columns"] if table is None else [column.name for column in table.columns]
    if columns:
        estimator.feature_names_in_ = np.array(columns, dtype=object)
        estimator.n_features_in_ = len(columns)
    if table is not None:
        estimator.set_params(text=table.text)
    estimate, forecast = run.record["estimate"], run.record["forecast"]
    result = Result(
        predictor=predictor,
        labels=run.labels,
        kmeans=run.kmeans,
        confidence=run.confidence,
        typicality=run.typicality,
        features=np.asarray(run.features) if (folder / "features.npy").exists() else None,
        estimate=None if estimate is None else Estimate.from_json(estimate),
        forecast=Forecast.from_json(forecast),
        choice=run.record["summary"].get("choice", ""),
        warnings=tuple(run.record["warnings"]),
        history=run.history,
        seconds=run.record["seconds"],
    )
    no_items = Items.of(np.zeros((len(run.ids), 0), dtype=np.float32))  # the items themselves are not stored
    labels = np.where(run.new, UNLABELED, run.labels)
    task = Task(name="arrays", items=no_items, labels=labels, known=tuple(known), ids=run.ids)
    classes = Classes(np.array(known, dtype=np.int64 if numeric else object))
    estimator._keep(result, classes, task, recipe.read(folder / "config.toml"))
    if (folder / LOG).exists():
        label_of = dict(zip(run.classes, estimator.classes_.tolist(), strict=True))
        after = classes_after(current_state(run))
        estimator._name_classes([label_of.get(name, name) for name, _ in after], [kind for _, kind in after])
