"""The estimator: `NovelClassDiscovery().fit(X, y)`, with y == -1 where the class is not known."""

import tempfile
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unveil import files
from unveil.data.labels import Classes, read_labels
from unveil.discovery import discover as discovery
from unveil.discovery import encoders as items
from unveil.discovery.count import Estimate
from unveil.discovery.predictor import Learned
from unveil.discovery.rehearsal import Trust
from unveil.errors import UnveilError, suggest
from unveil.methods.catalog import METHODS
from unveil.metrics import clustering_accuracy

NEITHER = "neither"


class NovelClassDiscovery(TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Find the classes that nobody has named, given labelled items of other classes.

    Parameters
    ----------
    n_novel : int or "auto"
        How many novel classes there are. "auto" estimates it (`classes_estimate_`).
    method : str
        "ncl-hng" (the default), "ncl", "baseline", "dtc", "rs", "kmeans", …
    encoder : str
        Turns images into vectors: "auto", "pixels", "compact" (trained here), "efficientnet-lite0", "timm:NAME",
        "transformers:NAME", "torchvision:NAME". Vectors are taken as they are.
    known_in_unlabelled : bool
        The unlabelled items may be of known classes too.
    rehearsals : int
        How often known classes are hidden and found again: they choose between k-means and training, and say how far
        to trust the result. 0: none.
    steps : int
        Training steps.
    random_state : int, RandomState or None
        Equal numbers give equal results.
    device : str
        "auto", "cpu", "cuda", "mps".
    store : path or None
        Where embeddings of images are kept. None: UNVEIL_STORE, or a folder in the user's cache.
    verbose : bool
        Say what is being done.

    Attributes
    ----------
    labels_ : known labels as given, novel clusters numbered after them (or called novel-0, … beside text).
    n_novel_ : number of novel clusters.
    novel_clusters_ : their labels.
    confidence_ : the chance that each item is where it belongs; 1 for labelled ones.
    kmeans_labels_ : what k-means on the same vectors gives.
    classes_ : all labels, known and novel.
    trust_ : what the rehearsals said.
    choice_ : in words, which way was taken and why.
    """

    def __init__(
        self,
        n_novel: int | str = "auto",
        method: str = "ncl-hng",
        encoder: str = "auto",
        *,
        known_in_unlabelled: bool = False,
        rehearsals: int = 3,
        steps: int = 1000,
        random_state: Any = None,
        device: str = "auto",
        store: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_novel = n_novel
        self.method = method
        self.encoder = encoder
        self.known_in_unlabelled = known_in_unlabelled
        self.rehearsals = rehearsals
        self.steps = steps
        self.random_state = random_state
        self.device = device
        self.store = store
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, folder: Path | None = None) -> Self:
        """Find the novel classes among the unlabelled rows. `folder`: where an interrupted fit can go on."""
        self._check()
        console = Console(stderr=True, markup=False, quiet=not self.verbose)
        seed = _seed(self.random_state)
        given = items.items_of(X)
        vectors = items.matrix(self, X, reset=True) if given is None else np.empty(0)
        classes, labels = read_labels(y, len(vectors) if given is None else len(given))
        self._source = None
        if given is not None:
            self._source = items.choose_source(
                given,
                self.encoder,
                labels,
                store=None if self.store is None else Path(self.store),
                device=self.device,
                seed=seed,
                console=console,
            )
            vectors = self._source(given, console)
            items.check_rows(vectors, given)
            self.n_features_in_ = vectors.shape[1]
        with tempfile.TemporaryDirectory() as temporary:
            result = discovery.discover(
                vectors,
                labels,
                discovery.Options(
                    n_novel=None if self.n_novel == "auto" else int(self.n_novel),
                    method=self.method,
                    known_in_unlabelled=self.known_in_unlabelled,
                    rehearsals=self.rehearsals,
                    steps=self.steps,
                    seed=seed,
                    device=self.device,
                ),
                folder=folder or Path(temporary),
                console=console,
            )
        for warning in result.warnings:
            warnings.warn(warning, UserWarning, stacklevel=2)
        self._keep(result, classes)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _check(self) -> None:
        if self.n_novel != "auto" and (isinstance(self.n_novel, str) or int(self.n_novel) != self.n_novel):
            raise UnveilError(f"n_novel is {self.n_novel!r}: give a whole number, or 'auto'")
        if self.method not in METHODS:
            raise UnveilError(f"method is {self.method!r}{suggest(self.method, METHODS)}")
        if self.rehearsals < 0 or self.steps < 1:
            raise UnveilError("rehearsals must be 0 or more, and steps 1 or more")

    def _keep(self, result: "discovery.Result", classes: Classes) -> None:
        self._learned, self._known = result.learned, classes
        self.n_novel_ = result.learned.n_novel
        self.novel_clusters_ = classes.novel(self.n_novel_)
        self.classes_ = classes.named(np.arange(len(classes.known) + self.n_novel_), self.n_novel_)
        self.labels_ = classes.named(result.labels, self.n_novel_)
        self.kmeans_labels_ = classes.named(result.kmeans, max(self.n_novel_, result.kmeans_clusters))
        self.confidence_ = result.confidence
        self.typicality_ = result.typicality
        self.classes_estimate_ = result.estimate
        self.trust_ = result.trust
        self.choice_ = result.choice

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[Any]:
        """`fit`, then `labels_`."""
        labels: NDArray[Any] = self.fit(X, y).labels_
        return labels

    def predict(self, X: Any, *, coverage: float | None = None) -> NDArray[Any]:
        """The class or cluster of each item, known or novel.

        coverage: say "neither" (-1 for numeric labels) of items that are farther from all that was seen than this share
        of items like those of the fit.
        """
        vectors = self._vectors(X)
        found: NDArray[Any] = self.classes_[self._learned.probabilities(vectors).argmax(axis=1)]
        if coverage is None:
            return found
        if not 0 < coverage <= 1:
            raise UnveilError(f"coverage is {coverage}: give a share, above 0 and at most 1")
        strange = self._learned.strangeness(vectors) > coverage
        found = found.copy()
        found[strange] = -1 if self._known.numeric else NEITHER
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """(n, known + novel), in the order of `classes_`."""
        vectors = self._vectors(X)
        return self._learned.probabilities(vectors)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features in which clusters were found."""
        vectors = self._vectors(X)
        return self._learned.features(vectors)

    def score(self, X: Any, y: Any) -> float:
        """Share of items in the class of their cluster, under the best one-to-one assignment."""
        return clustering_accuracy(np.asarray(y), self.predict(X).astype(str))

    def estimate_accuracy(self) -> dict[str, Any]:
        """The accuracy to expect on novel classes, with an interval, from the rehearsals of `fit`."""
        check_is_fitted(self, "labels_")
        trust = self.trust_
        return {
            "accuracy": trust.accuracy,
            "low": trust.low,
            "high": trust.high,
            "count_error": trust.count_error,
            "rehearsals": list(trust.rehearsals),
            "words": trust.sentence(),
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
        found: NDArray[np.int64] = members[order[:n]]
        return found

    def save(self, folder: str | Path) -> None:
        """Write everything that `load` needs to a directory: safetensors and JSON."""
        check_is_fitted(self, "labels_")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        source = items.save_source(self._source, folder)
        learned = self._learned.save(folder)
        arrays: dict[str, Any] = {"confidence": self.confidence_, "typicality": self.typicality_}
        index = {label: i for i, label in enumerate(self.classes_.tolist())}
        extra = {label: i for i, label in enumerate(self._known.novel(10_000).tolist(), start=len(self._known.known))}
        arrays["labels"] = np.array([index[label] for label in self.labels_.tolist()])
        arrays["kmeans"] = np.array([(extra | index)[label] for label in self.kmeans_labels_.tolist()])
        files.write_with(folder / "rows.npz", lambda file: np.savez(file, **arrays))
        params = {key: value for key, value in self.get_params().items() if key != "store"}
        params["random_state"] = params["random_state"] if isinstance(params["random_state"], int) else None
        files.write_json(
            folder / "estimator.json",
            {
                "format": 1,
                "parameters": params,
                "known": self._known.known.tolist(),
                "n_novel": self.n_novel_,
                "n_features_in": self.n_features_in_,
                "source": source,
                "learned": learned,
                "estimate": None if self.classes_estimate_ is None else self.classes_estimate_.to_json(),
                "trust": self.trust_.to_json(),
                "choice": self.choice_,
            },
        )

    @classmethod
    def load(cls, folder: str | Path) -> "NovelClassDiscovery":
        """What `save` wrote."""
        folder = Path(folder)
        if not (folder / "estimator.json").is_file():
            raise UnveilError(
                f"{folder} holds no saved discovery (estimator.json): give a directory of `save` or discover"
            )
        stored = files.read_json(folder / "estimator.json")
        found = cls(**stored["parameters"])
        known = stored["known"]
        numeric = all(isinstance(name, int) for name in known)
        classes = Classes(np.array(known, dtype=np.int64 if numeric else object))
        with np.load(folder / "rows.npz", allow_pickle=False) as rows:
            arrays = {key: rows[key] for key in rows.files}
        found.n_features_in_ = stored["n_features_in"]
        found._source = items.load_source(stored["source"], folder)
        found._keep(
            discovery.Result(
                learned=Learned.load(folder, stored["learned"]),
                labels=arrays["labels"],
                kmeans=arrays["kmeans"],
                confidence=arrays["confidence"],
                typicality=arrays["typicality"],
                estimate=None if stored["estimate"] is None else Estimate.from_json(stored["estimate"]),
                trust=Trust.from_json(stored["trust"]),
                choice=stored["choice"],
                warnings=(),
            ),
            classes,
        )
        return found

    def _vectors(self, X: Any) -> NDArray[np.floating]:
        check_is_fitted(self, "labels_")
        given = items.items_of(X)
        if given is None:
            return items.matrix(self, X, reset=False)
        if self._source is None:
            raise UnveilError("the fit was on vectors, and these are images: give their vectors")
        vectors = self._source(given, Console(stderr=True, markup=False, quiet=not self.verbose))
        items.check_rows(vectors, given)
        return vectors


def _seed(state: Any) -> int:
    if isinstance(state, int | np.integer):
        return int(state)
    return int(check_random_state(state).randint(2**31 - 1))
