"""What a fitted estimator shows in a notebook: a summary, the report, plots, and the labels after a review.

Pages and plots are imported when they are asked for.
"""

import html
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from unveil.data.task import UNLABELED
from unveil.discovery.result import summary
from unveil.errors import UnveilError
from unveil.own import saved_estimator
from unveil.review.corrections import REJECTED, current_state
from unveil.runs.reader import Run, load


class NotebookDisplay:
    """Methods of the estimator that show its result."""

    _folder: Path | None = None  # where the estimator was saved or loaded from

    def show(self, X: Any = None, *, height: int = 760) -> Any:  # noqa: N803
        """The report with gallery and map, to be displayed in a notebook; it needs nothing from elsewhere.

        X: the items of the fit, where they should be shown. A saved estimator shows its review.
        """
        from unveil.pages import notebook

        with self._as_run(X) as run:
            return notebook.page(run, height)

    def plot_map(self, ax: Any = None) -> Any:
        """All items in two dimensions, in the colors of the report; returns the matplotlib axes."""
        return self._plot("plot_map", ax)

    def plot_sizes(self, ax: Any = None) -> Any:
        """The sizes of the novel classes as bars; returns the matplotlib axes."""
        return self._plot("plot_sizes", ax)

    def plot_confidence(self, ax: Any = None) -> Any:
        """How sure the labels of new items are, as a histogram; returns the matplotlib axes."""
        return self._plot("plot_confidence", ax)

    def plot_classes_estimate(self, ax: Any = None) -> Any:
        """The estimated number of novel classes, its interval and its criteria; returns the matplotlib axes."""
        from unveil.pages import notebook

        check_is_fitted(self, "labels_")
        estimate = getattr(self, "classes_estimate_", None)
        if estimate is None:
            raise UnveilError("the number of novel classes was given, not estimated: fit with n_novel='auto'")
        return notebook.plot_classes_estimate(estimate.to_json(), ax)

    def review(self) -> NDArray[Any]:
        """The labels after the review of the saved estimator, for each row of X; None for rejected items.

        Save it, look at it with `unveil review FOLDER`, and ask again whenever you like.
        """
        check_is_fitted(self, "labels_")
        if self._folder is None:
            raise UnveilError("there is no review: save the estimator first, and open it with `unveil review FOLDER`")
        run = load(self._folder)
        state, classes = current_state(run), self._given_labels()  # type: ignore[attr-defined]
        labels = np.empty(len(run.ids), dtype=object)
        for cluster in np.unique(state.labels).tolist():
            name: Any = None
            if cluster != REJECTED:
                meaning = state.meanings[cluster]
                index = cluster if meaning.known is None else meaning.known
                kept = index < len(classes) and not meaning.named
                name = classes[index] if kept or meaning.known is not None else state.name(cluster)
            labels[state.labels == cluster] = name
        return labels

    def _plot(self, name: str, ax: Any) -> Any:
        from unveil.pages import notebook

        with self._as_run(None) as run:
            return getattr(notebook, name)(run, ax)

    @contextmanager
    def _as_run(self, items: Any) -> Iterator[Run]:
        """The result as a run directory: the saved one, or one that exists for the moment."""
        check_is_fitted(self, "labels_")
        if self._folder is not None and self._folder.exists() and items is None:
            yield load(self._folder)
            return
        from unveil.own import inputs as input_checks

        read = None if items is None else input_checks.read_items(self, items, reset=False)
        with tempfile.TemporaryDirectory() as folder:
            saved_estimator.save(self, Path(folder) / "discovery", read)
            yield load(Path(folder) / "discovery")

    def _repr_html_inner(self) -> str:
        return self._summary_html() + str(estimator_html_repr(self))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _summary_html(self) -> str:
        """The result in sentences; empty before a fit."""
        if not hasattr(self, "labels_"):
            return ""
        task = self._task  # type: ignore[attr-defined]
        sentences = summary(self._result, task, task.labels == UNLABELED)  # type: ignore[attr-defined]
        lines = "".join(f"<li>{html.escape(text)}</li>" for text in sentences.values() if text)
        return f"<ul>{lines}</ul>"
