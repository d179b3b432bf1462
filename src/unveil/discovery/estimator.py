"""The estimator: `NovelClassDiscovery().fit(X, y)`, with y == -1 where the class is not known."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unveil.data.items import Items
from unveil.data.labels import Classes, read_labels
from unveil.data.task import Task
from unveil.discovery import input_checks, saved_estimator
from unveil.discovery.discover import Discovery, discover
from unveil.discovery.notebook import NotebookDisplay
from unveil.discovery.options import encoder_warning, own_settings, prepare, with_reduction
from unveil.discovery.predictor import Predictor
from unveil.errors import UnveilError, suggest
from unveil.methods.catalog import METHODS
from unveil.metrics import clustering_accuracy
from unveil.settings import Settings

NEITHER = "neither"
MOST_KEPT_ROWS = 100_000
"""Features are kept for report and review of a saved estimator if there are at most this many rows."""


class NovelClassDiscovery(NotebookDisplay, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Find novel classes among unlabelled items, given labelled items of known classes.

    A fit keeps everything in memory: it writes nothing to disk.

    Parameters
    ----------
    n_novel : int or "auto"
        The number of novel classes. "auto" estimates it (`classes_estimate_`).
    method : str
        "auto": that of the recipe, which for vectors is "neighbor-consensus"; "ncl-hng" and the others of the paper:
        "ncl", "baseline", "dtc", "rs", "uno", …; "kmeans".
    encoder : str
        Turns images into vectors: "auto", "pixels", "compact" (trained here), "efficientnet-lite0", "timm:NAME",
        "transformers:NAME", "torchvision:NAME". Vectors need no encoder.
    scaling : "auto", "unit", "standard" or "none"
        How vectors are scaled: to unit length, each column to the same spread, or not at all. "auto": as suits the
        known classes best.
    recipe : str, path or None
        For images: train on augmented images by this recipe (rotation, known classes, discovery) in place of a frozen
        encoder: "images", or a TOML file of your own.
    known_in_unlabelled : bool
        The unlabelled items may be of known classes too.
    rehearsals : int or None
        How often known classes are hidden and discovered again. Rehearsals choose between k-means and training, and
        forecast the accuracy. 0: none. None: as the recipe says (3 for vectors).
    steps : int or None
        Training steps of the discovery stage. None: as the recipe says (1,000 where a layer is trained on vectors).
    random_state : int, RandomState or None
        Equal numbers give equal results.
    device : str
        "auto", "cpu", "cuda", "mps".
    store : path or None
        A directory in which embeddings of images are stored for the next fit. None: they are not stored.
    verbose : bool
        Print what is being done.

    Attributes
    ----------
    labels_ : known labels as given, novel clusters numbered after them (or called novel-0, … beside text).
    n_novel_ : number of novel clusters.
    novel_clusters_ : their labels.
    confidence_ : the probability that each item is in the right class; 1 for labelled ones.
    kmeans_labels_ : labels by k-means on the same vectors.
    classes_ : all labels, known and novel.
    forecast_ : the forecast of the accuracy, from rehearsals.
    choice_ : which candidate was chosen and why, in one sentence.
    """

    def __init__(
        self,
        n_novel: int | str = "auto",
        method: str = "auto",
        encoder: str = "auto",
        *,
        scaling: str = "auto",
        recipe: str | Path | None = None,
        known_in_unlabelled: bool = False,
        rehearsals: int | None = None,
        steps: int | None = None,
        random_state: Any = None,
        device: str = "auto",
        store: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_novel = n_novel
        self.method = method
        self.encoder = encoder
        self.scaling = scaling
        self.recipe = recipe
        self.known_in_unlabelled = known_in_unlabelled
        self.rehearsals = rehearsals
        self.steps = steps
        self.random_state = random_state
        self.device = device
        self.store = store
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the novel classes among the unlabelled rows."""
        self._check()
        console = self._console()
        items = input_checks.read_items(self, X, reset=True)
        classes, labels = read_labels(y, len(items))
        settings = self._settings(items, any_labels=bool((labels >= 0).any()))
        task = Task(
            name="arrays",
            items=items,
            labels=labels,
            known=tuple(classes.known.tolist()),
            n_novel=settings.data.n_novel,
            known_in_unlabelled=settings.data.known_in_unlabelled,
        )
        folder = None if self.store is None else Path(self.store)
        preparation = prepare(items, settings, folder=folder)
        encoded, readable = preparation.encoded(items, console)
        input_checks.check_readable(readable, items)
        preparation = with_reduction(preparation, encoded, settings)
        if encoded.kind == "vectors":
            self.n_features_in_ = encoded.array.shape[-1]
        else:
            self.n_features_in_ = 1
        keep = len(task) <= MOST_KEPT_ROWS
        encoded_task = replace(task, items=encoded)
        result = discover(encoded_task, settings, preparation, console=console, keep_features=keep)
        for warning in (*encoder_warning(items, settings, self.encoder), *result.warnings):
            warnings.warn(warning, UserWarning, stacklevel=2)
        self._keep(replace(result, training=None), classes, task, settings)
        return self

    def _settings(self, items: Items, *, any_labels: bool) -> Settings:
        """One settings object from the recipe and the parameters."""
        chosen: dict[str, Any] = {
            "data.n_novel": None if self.n_novel == "auto" else int(self.n_novel),
            "data.known_in_unlabelled": "true" if self.known_in_unlabelled else None,
            "data.vector_scaling": None
            if self.scaling == "auto"
            else f'"{self.scaling}"',  # in quotes: "none" is a word
            "discovery.method": None if self.method == "auto" else self.method,
            "discovery.steps": self.steps,
            "rehearsals": self.rehearsals,
            "machine.device": self.device,
            "seed": _seed(self.random_state),
        }
        overrides = [f"{key}={value}" for key, value in chosen.items() if value is not None]
        name = None if self.recipe is None else str(self.recipe)
        return own_settings(items, name, overrides, encoder=self.encoder, any_labels=any_labels)

    def _console(self) -> Console:
        return Console(stderr=True, markup=False, quiet=not self.verbose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _check(self) -> None:
        if self.n_novel != "auto" and (isinstance(self.n_novel, str) or int(self.n_novel) != self.n_novel):
            raise UnveilError(f"n_novel is {self.n_novel!r}: give a whole number, or 'auto'")
        if self.method != "auto" and self.method not in METHODS:
            raise UnveilError(f"method is {self.method!r}{suggest(self.method, METHODS)}")
        if self.scaling not in ("auto", "unit", "standard", "none"):
            raise UnveilError(f"scaling is {self.scaling!r}: give 'auto', 'unit', 'standard' or 'none'")
        if (self.rehearsals is not None and self.rehearsals < 0) or (self.steps is not None and self.steps < 1):
            raise UnveilError("rehearsals must be 0 or more, and steps 1 or more")

    def _keep(self, result: Discovery, classes: Classes, task: Task, settings: Settings) -> None:
        self._predictor, self._known = result.predictor, classes
        no_items = Items.of(np.zeros((len(task), 0), dtype=np.float32))
        self._result, self._settings_used = result, settings
        self._task = replace(task, items=no_items)  # a fitted estimator does not keep X in memory
        self.n_novel_ = result.predictor.n_novel
        self.novel_clusters_ = classes.novel(self.n_novel_)
        self.classes_ = classes.named(np.arange(len(classes.known) + self.n_novel_), self.n_novel_)
        self.labels_ = classes.named(result.labels, self.n_novel_)
        kmeans_clusters = int(result.kmeans.max(initial=-1)) + 1 - len(classes.known)
        self.kmeans_labels_ = classes.named(result.kmeans, max(self.n_novel_, kmeans_clusters))
        self.confidence_ = result.confidence
        self.typicality_ = result.typicality
        self.classes_estimate_ = result.estimate
        self.forecast_ = result.forecast
        self.choice_ = result.choice
        self.history_ = result.history

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[Any]:
        """`fit`, then `labels_`."""
        labels: NDArray[Any] = self.fit(X, y).labels_
        return labels

    def predict(self, X: Any, *, coverage: float | None = None) -> NDArray[Any]:
        """The class or cluster of each item, known or novel.

        coverage: label an item "neither" (-1 beside numeric labels) if it lies farther from the training items than
        this share of them do from each other.
        """
        if coverage is not None and not 0 < coverage <= 1:
            raise UnveilError(f"coverage is {coverage}: give a share, above 0 and at most 1")
        names, predictor = [], self._fitted()
        for space in predictor.spaces(self._encoded(X)):
            labels = self.classes_[predictor.probabilities(space).argmax(axis=1)].copy()
            if coverage is not None:
                labels[predictor.unlikeness(space) > coverage] = -1 if self._known.numeric else NEITHER
            names.append(labels)
        return np.concatenate(names)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """(n, known + novel), in the order of `classes_`."""
        predictor = self._fitted()
        return np.concatenate([predictor.probabilities(space) for space in predictor.spaces(self._encoded(X))])

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features in which clusters were found."""
        predictor = self._fitted()
        return np.concatenate([predictor.features(space) for space in predictor.spaces(self._encoded(X))])

    def score(self, X: Any, y: Any) -> float:
        """Share of items in the class of their cluster, under the best one-to-one assignment."""
        return clustering_accuracy(np.asarray(y), self.predict(X).astype(str))

    def estimate_accuracy(self) -> dict[str, Any]:
        """The accuracy to expect on novel classes, with a 90 % interval, from the rehearsals of `fit`."""
        check_is_fitted(self, "labels_")
        forecast = self.forecast_
        return {
            "accuracy": forecast.accuracy,
            "low": forecast.low,
            "high": forecast.high,
            "count_error": forecast.count_error,
            "rehearsals": list(forecast.rehearsals),
            "sentence": forecast.sentence(),
        }

    def get_class_info(self) -> list[dict[str, Any]]:
        """A row for each class: label, known or novel, size, mean confidence, and the rows most typical of it."""
        check_is_fitted(self, "labels_")
        rows = []
        for index, label in enumerate(self.classes_.tolist()):
            members = np.flatnonzero(self.labels_ == label)
            rows.append(
                {
                    "label": label,
                    "kind": "known" if index < len(self._known.known) else "novel",
                    "size": len(members),
                    "confidence": float(self.confidence_[members].mean()) if len(members) else float("nan"),
                    "representatives": self.representatives(label, 5).tolist(),
                }
            )
        return rows

    def representatives(self, cluster: Any, n: int = 10) -> NDArray[np.int64]:
        """The rows of X that are most typical of a class or cluster, best first."""
        check_is_fitted(self, "labels_")
        members = np.flatnonzero(self.labels_ == cluster)
        if len(members) == 0 and cluster not in self.classes_.tolist():
            raise UnveilError(
                f"there is no class {cluster!r}: the labels are {', '.join(map(str, self.classes_[:10]))}"
            )
        order = np.argsort(-self.typicality_[members], kind="stable")
        best: NDArray[np.int64] = members[order[:n]]
        return best

    def save(self, folder: str | Path, X: Any = None) -> None:
        """Write a run directory, from which `load`, `unveil predict`, report, review and export work.

        X: the items of the fit, where report and review should show them.
        """
        check_is_fitted(self, "labels_")
        items = None if X is None else input_checks.read_items(self, X, reset=False)
        saved_estimator.save(self, Path(folder), items)
        self._folder = Path(folder)

    @classmethod
    def load(cls, folder: str | Path) -> "NovelClassDiscovery":
        """The estimator of a run directory: one that `save` wrote, or a run of the command line."""
        estimator = cls()
        saved_estimator.load_into(estimator, Path(folder))
        estimator._folder = Path(folder)
        return estimator

    def _fitted(self) -> Predictor:
        check_is_fitted(self, "labels_")
        return self._predictor

    def _encoded(self, X: Any) -> Items:
        predictor = self._fitted()
        items = input_checks.read_items(self, X, reset=False)
        encoded, readable = predictor.encoded(items, self._console())
        input_checks.check_readable(readable, items)
        return encoded


def _seed(state: Any) -> int:
    if isinstance(state, int | np.integer):
        return int(state)
    return int(check_random_state(state).randint(2**31 - 1))
