"""Describe a result: names of classes, a summary in sentences, and the machine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil import __version__, hardware
from unveil.data.labels import Classes
from unveil.data.task import Task
from unveil.discovery.discover import Discovery
from unveil.metrics import clustering_accuracy
from unveil.settings import Settings


def class_names(task: Task, n_novel: int) -> list[str]:
    """Names of the known classes, then unused names for the novel ones."""
    known = np.array([str(name) for name in task.known], dtype=object)
    return [*known.tolist(), *(str(name) for name in Classes(known).novel(n_novel))]


def summary(result: Discovery, task: Task, new: NDArray[np.bool_], *, still_novel: int = 0) -> dict[str, str]:
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
