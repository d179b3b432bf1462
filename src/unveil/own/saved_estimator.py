"""Save a fitted estimator as a run directory, and load it."""

from pathlib import Path
from typing import Any

import numpy as np

from unveil import ranks, recipe
from unveil.counting.estimate import Estimate
from unveil.data.items import Items
from unveil.data.labels import Classes
from unveil.data.task import UNLABELLED, Task
from unveil.discovery.describe import class_names, environment, summary
from unveil.discovery.discover import Discovery
from unveil.discovery.forecast import Forecast
from unveil.discovery.predictor import Predictor
from unveil.errors import UnveilError
from unveil.methods.catalog import method_title
from unveil.own.parameters import plain
from unveil.review.corrections import current_state
from unveil.review.decisions import classes_after
from unveil.review.log import LOG
from unveil.runs.reader import load
from unveil.runs.writer import Contents, write


def save(estimator: Any, folder: Path, items: Items | None) -> None:
    """Write the run directory; with the items of the fit, report and review can show them."""
    task: Task = estimator._task
    if items is not None and len(items) != len(task):
        raise UnveilError(f"X has {len(items)} rows and the fit had {len(task)}: give the items of the fit")
    result: Discovery = estimator._result
    names, new = class_names(task, estimator._predictor.n_novel), task.labels == UNLABELLED
    estimator._predictor.save(folder)
    contents = Contents(
        ids=task.ids or [f"{row:06d}" for row in range(len(task))],
        new=new,
        given=["" if label == UNLABELLED else names[label] for label in task.labels],
        labels=result.labels,
        classes=names,
        n_known=len(task.known),
        confidence=result.confidence,
        typicality=result.typicality,
        kmeans=result.kmeans,
        features=result.features,
        paths=[] if items is None else [str(path.resolve()) for path in items.paths],
        pictures=None if items is None or items.kind != "images" else items.array,
        inputs=None if items is None else estimator._predictor.preparation.shown(items),
        texts=() if items is None else items.texts,
        columns=_columns(estimator),
        record=_record(estimator, folder),
        config=recipe.dump(estimator._settings_used),
        history=result.history,
    )
    ranks.current().from_first(lambda: write(folder, contents))


def _columns(estimator: Any) -> tuple[str, ...]:
    """Names of the columns of the inputs."""
    table = estimator._predictor.preparation.table
    return table.names if table is not None else tuple(map(str, getattr(estimator, "feature_names_in_", ())))


def _record(estimator: Any, folder: Path) -> dict[str, Any]:
    task, result, settings = estimator._task, estimator._result, estimator._settings_used
    parameters = {key: plain(value) for key, value in estimator.get_params().items() if key != "store"}
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    return {
        "name": folder.resolve().name,
        "source": {"kind": "arrays"},
        "recipe": settings.name,
        "method": settings.discovery.method,
        "method_title": method_title(settings.discovery.method),
        "seed": settings.seed,
        "summary": summary(result, task, task.labels == UNLABELLED),
        "estimate": None if result.estimate is None else result.estimate.to_json(),
        "forecast": result.forecast.to_json(),
        "metrics": dict(result.history[-1]) if result.history else {},
        "seconds": result.seconds,
        "warnings": list(result.warnings),
        "config": recipe.to_table(settings),
        "environment": environment(settings),
        "estimator": {
            "parameters": parameters,
            "known": estimator._known.known.tolist(),
            "n_features_in": estimator.n_features_in_,
        },
    }


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
    result = Discovery(
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
    labels = np.where(run.new, UNLABELLED, run.labels)
    task = Task(name="arrays", items=no_items, labels=labels, known=tuple(known), ids=run.ids)
    classes = Classes(np.array(known, dtype=np.int64 if numeric else object))
    estimator._keep(result, classes, task, recipe.read(folder / "config.toml"))
    if (folder / LOG).exists():
        label_of = dict(zip(run.classes, estimator.classes_.tolist(), strict=True))
        after = classes_after(current_state(run))
        estimator._name_classes([label_of.get(name, name) for name, _ in after], [kind for _, kind in after])
