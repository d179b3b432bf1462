"""Scores of a clustering: pure functions of labels, which may have any values."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.errors import UnveilError
from unveil.numerics import match_clusters


def contingency(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.int64]:
    """Counts (clusters, classes): how many items of each class fell into each cluster."""
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != predicted.shape:
        raise UnveilError(f"labels have shapes {truth.shape} and {predicted.shape}: give two lists of equal length")
    columns, rows = _indices(truth), _indices(predicted)
    counts = np.zeros((rows.max(initial=-1) + 1, columns.max(initial=-1) + 1), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """ACC (Sec. 4.1): the share of items whose class is that of their cluster, by the best one-to-one assignment.

    NaN of no items at all.
    """
    counts = contingency(y_true, y_pred)
    if counts.size == 0:
        return float("nan")
    class_of = match_clusters(counts)
    matched = np.flatnonzero(class_of >= 0)
    return float(counts[matched, class_of[matched]].sum() / counts.sum())


def in_matched_class(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.bool_]:
    """(n,): whether the class of each item is the one that its cluster is matched to."""
    truth, clusters = _indices(np.asarray(y_true)), _indices(np.asarray(y_pred))
    if len(truth) == 0:
        return np.zeros(0, dtype=bool)
    right: NDArray[np.bool_] = match_clusters(contingency(truth, clusters))[clusters] == truth
    return right


def open_accuracy(y_true: ArrayLike, y_pred: ArrayLike, known: int) -> dict[str, float]:
    """Accuracy over `all` items, those of known classes (`old`, labels below `known`) and those of novel ones (`new`).

    Clusters are assigned to known and novel classes together.
    """
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    counts = contingency(truth, predicted)
    if counts.size == 0:
        return {"all": float("nan"), "old": float("nan"), "new": float("nan")}
    correct = in_matched_class(truth, predicted)
    groups = {"all": np.full(len(truth), True), "old": truth < known, "new": truth >= known}
    return {name: float(correct[members].mean()) if members.any() else float("nan") for name, members in groups.items()}


def clustering_scores(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """ACC, normalized mutual information and adjusted Rand index; all are NaN of no items."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score  # late: it takes a second

    accuracy = clustering_accuracy(y_true, y_pred)
    if np.isnan(accuracy):
        return dict.fromkeys(("acc", "nmi", "ari"), float("nan"))
    truth, clusters = _indices(np.asarray(y_true)), _indices(np.asarray(y_pred))
    nmi, ari = normalized_mutual_info_score(truth, clusters), adjusted_rand_score(truth, clusters)
    return {"acc": accuracy, "nmi": float(nmi), "ari": float(ari)}


def _indices(values: NDArray[Any]) -> NDArray[np.int64]:
    """(n,): a number for each value, the same for equal ones. Values may be of several types, None among them."""
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:  # they cannot be sorted
        number_of: dict[Any, int] = {}
        return np.array([number_of.setdefault(value, len(number_of)) for value in values.tolist()], dtype=np.int64)
