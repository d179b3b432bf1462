"""The estimator: `NovelClassDiscovery().fit(X, y)`, with y == -1 where the class is not known."""

import inspect
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unveil import log, ranks
from unveil.data.items import Items
from unveil.data.labels import Classes, read_labels
from unveil.data.task import Task
from unveil.discovery.discover import discover, few_threads
from unveil.discovery.fit import needs_network
from unveil.discovery.predictor import Predictor, summed
from unveil.discovery.result import Result
from unveil.discovery.steps import shown
from unveil.encoders.encode import encode
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.own import inputs as input_checks
from unveil.own import saved_estimator
from unveil.own.accepts import check, parameters
from unveil.own.notebook import NotebookDisplay
from unveil.own.options import encoder_warning, own_settings
from unveil.own.parameters import EstimatorOptions, changes
from unveil.own.updates import LEAST, Update, largest_group
from unveil.settings import Settings

NEITHER = "neither"
MOST_KEPT_ROWS = 100_000
"""Features are kept for report and review of a saved estimator if there are at most this many rows."""


class _Base(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn brings."""


class NovelClassDiscovery(NotebookDisplay, _Base):
    """Find novel classes among unlabeled items, given labeled items of known classes.

    X is a matrix of vectors, a data frame (numbers, categories, dates, missing values), images, paths of image files,
    or a list of texts. A fit keeps everything in memory: it writes nothing to disk, and says nothing unless it is asked
    to (`verbose`, or the logger `unveil`).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    labels_ : known labels as given, novel clusters numbered after them (or called novel-0, … beside text).
    n_novel_ : number of novel clusters.
    novel_clusters_ : their labels.
    confidence_ : the probability that each item is in the right class; 1 for labeled ones.
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
        quick: bool = False,
        scaling: str = "auto",
        text: str | None = None,
        recipe: str | Path | None = None,
        known_in_unlabeled: bool = False,
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
        self.quick = quick
        self.scaling = scaling
        self.text = text
        self.recipe = recipe
        self.known_in_unlabeled = known_in_unlabeled
        self.rehearsals = rehearsals
        self.steps = steps
        self.random_state = random_state
        self.device = device
        self.store = store
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **unknown: Any) -> Self:
        """Find the novel classes among the unlabeled rows."""
        if unknown:
            raise UnveilError(
                f"fit takes X and y, and no {', '.join(unknown)}: every item has the same weight; leave it out"
            )
        options = EstimatorOptions(**self.get_params(deep=False))
        check(options)
        console = log.console(verbose=bool(self.verbose) and ranks.join().first)
        self._input_notes: list[str] = []
        items = input_checks.read_items(self, X, reset=True)
        classes, labels = read_labels(y, len(items))
        settings = self._settings(items, options, any_labels=bool((labels >= 0).any()))
        task = Task(
            name="arrays",
            items=items,
            labels=labels,
            known=tuple(classes.known.tolist()),
            n_novel=settings.data.n_novel,
            known_in_unlabeled=settings.data.known_in_unlabeled,
            ids=input_checks.row_ids(X),
        )
        encoded = encode(task, settings, None if self.store is None else Path(self.store), console)
        input_checks.check_readable(encoded.readable, items)
        encoded_task, vectors = encoded.task, encoded.task.items
        if not items.are_table:
            self.n_features_in_ = vectors.n_features
        keep = len(task) <= MOST_KEPT_ROWS
        with few_threads(encoded_task, settings), shown(console, trains=needs_network(encoded_task, settings)) as step:
            result = discover(
                encoded_task, settings, encoded.preparation, console=console, keep_features=keep, step=step
            )
        for warning in (*self._input_notes, *encoder_warning(items, settings, self.encoder), *result.warnings):
            warnings.warn(warning, UserWarning, stacklevel=2)
        self._keep(replace(result, learner=None), classes, task, settings)
        return self

    def _settings(self, items: Items, options: EstimatorOptions, *, any_labels: bool) -> Settings:
        """One settings object from the recipe and the parameters."""
        seed = ranks.current().from_first(lambda: _seed(options.random_state))
        name = None if options.recipe is None else str(options.recipe)
        chosen = {**changes(vars(options)), "seed": seed}
        return own_settings(items, name, chosen, encoder=options.encoder, any_labels=any_labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _keep(self, result: Result, classes: Classes, task: Task, settings: Settings) -> None:
        self._predictor, self._known = result.predictor, classes
        no_items = Items.of(np.zeros((len(task), 0), dtype=np.float32))
        self._result, self._settings_used = result, settings
        self._task = replace(task, items=no_items)  # a fitted estimator does not keep X in memory
        self.n_novel_ = result.predictor.n_novel
        self._name_classes(self._given_labels(), ["known"] * len(classes.known) + ["novel"] * self.n_novel_)
        kmeans_clusters = int(result.kmeans.max(initial=-1)) + 1 - len(classes.known)
        self.kmeans_labels_ = classes.named(result.kmeans, max(self.n_novel_, kmeans_clusters))
        self.confidence_ = result.confidence
        self.typicality_ = result.typicality
        self.classes_estimate_ = result.estimate
        self.forecast_ = result.forecast
        self.choice_ = result.choice
        self.history_ = result.history

    def _given_labels(self) -> list[Any]:
        """The labels of the known classes as given, and those of the clusters, without the names of a review."""
        count = len(self._known.known) + self._predictor.n_novel
        labels: list[Any] = self._known.named(np.arange(count), self._predictor.n_novel).tolist()
        return labels

    def _name_classes(self, names: list[Any], kinds: list[str]) -> None:
        """Give the classes of the predictor their names; those of one name, merged in a review, are one class."""
        kind_of = dict(zip(names, kinds, strict=True))
        numeric = all(isinstance(name, int) for name in kind_of)
        self.classes_ = np.array(list(kind_of), dtype=np.int64 if numeric else object)
        self._kinds = np.array(list(kind_of.values()), dtype=object)
        self.novel_clusters_ = self.classes_[self._kinds == "novel"]
        self._class_of = np.array([list(kind_of).index(name) for name in names], dtype=np.int64)
        self.labels_ = self.classes_[self._class_of[self._result.labels]]

    def _probabilities(self, space: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, classes), in the order of `classes_`."""
        p = self._predictor.probabilities(space)
        return p if len(self.classes_) == len(self._class_of) else summed(p, self._class_of)

    def fit_predict(self, X: Any, y: Any = None, **unknown: Any) -> NDArray[Any]:
        """`fit`, then `labels_`."""
        labels: NDArray[Any] = self.fit(X, y, **unknown).labels_
        return labels

    def predict(self, X: Any, *, coverage: float | None = None) -> NDArray[Any]:
        """The class or cluster of each item, known or novel.

        coverage: label an item "neither" (-1 beside numeric labels) if it lies farther from the training items than
        this share of them do from each other.
        """
        _check_coverage(coverage)
        names, predictor = [], self._fitted()
        for space in predictor.spaces(self._encoded(X)):
            labels = self.classes_[self._probabilities(space).argmax(axis=1)]
            if coverage is not None:
                labels[predictor.unlikeness(space) > coverage] = -1 if self._known.numeric else NEITHER
            names.append(labels)
        return np.concatenate(names)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """(n, known + novel), in the order of `classes_`; classes that were merged in a review are one."""
        predictor = self._fitted()
        return np.concatenate([self._probabilities(space) for space in predictor.spaces(self._encoded(X))])

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
            "rehearsals": list(forecast.rehearsals),
            "sentence": forecast.sentence(),
        }

    def partial_update(self, X: Any, *, coverage: float = 0.95) -> Update:
        """Place items that arrived after the fit: in known classes, in novel clusters, or set aside.

        Items that are unlike those of the fit (see `predict`) are set aside and remembered from call to call, until
        enough of them lie together to make a new class. The fit itself does not change: fit again with all items then.
        """
        _check_coverage(coverage)
        predictor, parts = self._fitted(), []
        kept: list[NDArray[np.float32]] = getattr(self, "_set_aside", [])
        for space in predictor.spaces(self._encoded(X)):
            p = self._probabilities(space)
            away = predictor.unlikeness(space) > coverage
            kept = [*kept, space[away]]
            parts.append((p.argmax(axis=1), p.max(axis=1), away))
        best, probability, away = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._set_aside = kept
        labels = self.classes_[best].copy()
        labels[away] = -1 if self._known.numeric else NEITHER
        sizes = np.bincount(self._class_of[self._result.labels])
        points = np.concatenate(kept)
        return Update(
            labels=labels,
            kinds=np.where(away, NEITHER, self._kinds[best]).astype(str),
            probability=probability,
            set_aside=len(points),
            largest_group=largest_group(points, predictor, coverage),
            needed=max(LEAST, int(sizes[sizes > 0].min())),
        )

    @property
    def _n_features_out(self) -> int:
        """Columns of `transform`, for `get_feature_names_out`."""
        predictor = self._fitted()
        assert predictor.reference is not None
        return int(predictor.features(predictor.reference[:1]).shape[1])

    def get_class_info(self) -> Any:
        """A pandas data frame with a row for each class: label, kind (known or novel), size, mean confidence, and the
        rows most typical of it."""
        check_is_fitted(self, "labels_")
        try:
            import pandas as pd
        except ImportError:
            raise UnveilError("get_class_info needs the package pandas: pip install pandas") from None
        members = {label: np.flatnonzero(self.labels_ == label) for label in self.classes_.tolist()}
        return pd.DataFrame(
            {
                "label": list(members),
                "kind": self._kinds.tolist(),
                "size": [len(rows) for rows in members.values()],
                "confidence": [
                    float(self.confidence_[rows].mean()) if len(rows) else np.nan for rows in members.values()
                ],
                "representatives": [self.representatives(label, 5).tolist() for label in members],
            }
        )

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
        """The estimator of a run directory: one that `save` wrote, or a run of the command line.

        Classes have the names that a review gave them. Known classes keep the labels of the fit, and clusters without a
        name their numbers.
        """
        estimator = cls()
        saved_estimator.load_into(estimator, Path(folder))
        estimator._folder = Path(folder)
        return estimator

    def _fitted(self) -> Predictor:
        check_is_fitted(self, "labels_")
        return self._predictor

    def _encoded(self, X: Any) -> Items:
        predictor = self._fitted()
        input_checks.check_kind(X, predictor.preparation.kind)
        items = input_checks.read_items(self, X, reset=False)
        encoded, readable = predictor.encoded(items, log.console(verbose=bool(self.verbose)))
        input_checks.check_readable(readable, items)
        return encoded


_help = parameters(EstimatorOptions)
NovelClassDiscovery.__doc__ = inspect.cleandoc(NovelClassDiscovery.__doc__ or "").replace("{parameters}", _help)


def _check_coverage(coverage: Any) -> None:
    if coverage is not None and not (isinstance(coverage, int | float | np.floating) and 0 < coverage <= 1):
        raise UnveilError(f"coverage is {coverage!r}: give a share, above 0 and at most 1")


def _seed(state: Any) -> int:
    if isinstance(state, int | np.integer):
        return int(state)
    return int(check_random_state(state).randint(2**31 - 1))
