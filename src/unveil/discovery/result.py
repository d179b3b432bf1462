"""`Result`: what a discovery found, in sentences and as the contents of a run directory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil import __version__, hardware, recipe
from unveil.counting.estimate import Estimate
from unveil.data.items import Items, Rows
from unveil.data.labels import Classes
from unveil.data.task import UNLABELED, Task
from unveil.discovery.fit import Learner
from unveil.discovery.forecast import Forecast
from unveil.discovery.predictor import Predictor
from unveil.methods.catalog import method_title
from unveil.metrics import clustering_accuracy
from unveil.numerics import Labels
from unveil.runs.writer import Contents
from unveil.settings import Settings
from unveil.training.loop import Metrics


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a discovery found. Labels count the known classes, then the clusters; rows are those that were asked for."""

    predictor: Predictor
    labels: Labels
    kmeans: Labels
    """What k-means says; its clusters have other numbers."""
    confidence: NDArray[np.float32]
    """The probability that a row is in the right class; 1 for labeled rows."""
    typicality: NDArray[np.float32]
    """Cosine of a row's features to the mean direction of its class."""
    features: NDArray[np.float32] | None
    estimate: Estimate | None
    forecast: Forecast
    choice: str
    """Which candidate was taken, and why."""
    warnings: tuple[str, ...]
    history: list[Metrics]
    seconds: dict[str, float]
    cache: dict[str, Any] | None = None
    """What the trunk cache holds, where there is one."""
    learner: Learner | None = None
    """What was learned from, for further questions; None after loading."""

    def contents(
        self,
        task: Task,
        settings: Settings,
        *,
        name: str,
        source: Mapping[str, Any],
        items: Items | None,
        rows: Rows | None = None,
        new: NDArray[np.bool_] | None = None,
        names: Sequence[str] | None = None,
        still_novel: int = 0,
        columns: Sequence[str] = (),
        words: Sequence[str] = (),
        truth: Mapping[str, str] | None = None,
        **record: Any,
    ) -> Contents:
        """Everything that a run directory holds.

        `items`: the items of the rows as they were given; None: they are not at hand. `rows`: the rows of the task that
        were labeled; None: all. `new`: which of the task's rows came without a label. `names`: of all classes.
        `still_novel`: how many of the last known classes have no name yet. `record`: further keys of record.json, or
        other values of its usual keys.
        """
        rows = np.arange(len(task)) if rows is None else rows
        unlabeled = task.labels == UNLABELED
        new = unlabeled if new is None else new
        names = class_names(task, self.predictor.n_novel) if names is None else names
        given = ["" if is_new else names[label] for is_new, label in zip(new[rows], task.labels[rows], strict=True)]
        last = {key: value for key, value in self.history[-1].items() if key != "seconds"} if self.history else {}
        usual = {
            "name": name,
            "source": dict(source),
            "recipe": settings.name,
            "method": settings.discovery.method,
            "method_title": method_title(settings.discovery.method),
            "seed": settings.seed,
            "summary": summary(self, task, unlabeled[rows], still_novel=still_novel),
            "estimate": None if self.estimate is None else self.estimate.to_json(),
            "forecast": self.forecast.to_json(),
            "metrics": last,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
            **({} if self.cache is None else {"cache": self.cache}),
            "config": recipe.to_table(settings),
            "environment": environment(settings),
        }
        return Contents(
            ids=tuple(task.id_of(int(row)) for row in rows),
            new=new[rows],
            given=tuple(given),
            labels=self.labels,
            classes=tuple(names),
            n_known=len(task.known) - still_novel,
            confidence=self.confidence,
            typicality=self.typicality,
            kmeans=self.kmeans,
            features=self.features,
            paths=() if items is None else tuple(str(path.resolve()) for path in items.paths),
            pictures=None if items is None else items.pixels,
            inputs=None if items is None else self.predictor.preparation.shown(items),
            columns=tuple(columns),
            texts=() if items is None else items.texts,
            words=tuple(words),
            truth=truth,
            record={**usual, **record},
            config=recipe.dump(settings),
            history=self.history,
        )


def class_names(task: Task, n_novel: int) -> list[str]:
    """Names of the known classes, then unused names for the novel ones."""
    known = np.array([str(name) for name in task.known], dtype=object)
    return [*known.tolist(), *(str(name) for name in Classes(known).novel(n_novel))]


def summary(result: Result, task: Task, new: NDArray[np.bool_], *, still_novel: int = 0) -> dict[str, str]:
    """The result in sentences, by topic. `still_novel`: how many of the last known classes have no name yet."""
    n_known, n_novel = len(task.known) - still_novel, result.predictor.n_novel + still_novel
    sizes = np.bincount(result.labels, minlength=n_known + n_novel)[n_known:]
    classes = f"{n_novel} novel class{'es' if n_novel != 1 else ''}"
    least, most = (int(sizes.min()), int(sizes.max())) if n_novel else (0, 0)
    size = f"{least} items{' each' if n_novel > 1 else ''}" if least == most else f"{least} to {most} items"
    sentences = {"result": f"{classes} of {size}" if n_novel else "no novel classes"}
    if result.estimate is not None:
        sentences["number"] = result.estimate.sentence()
    sentences["choice"] = result.choice
    sentences["accuracy"] = result.forecast.sentence()
    novel = new & (result.labels >= n_known)
    if novel.any():
        same = clustering_accuracy(result.kmeans[novel], result.labels[novel])
        sentences["agreement"] = f"k-means puts {100 * same:.0f} % of these items into the same clusters"
    return sentences


def environment(settings: Settings) -> dict[str, Any]:
    """Version, commit and machine."""
    device = hardware.pick_device(settings.machine.device)
    machine = hardware.describe(device, hardware.pick_precision(settings.machine, device))
    return {"unveil": __version__, "commit": hardware.commit(), **machine}
