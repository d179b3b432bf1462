"""How good is a clustering? Pure functions of labels; any label values will do."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from unveil.errors import UnveilError


def contingency(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.int64]:
    """Counts (clusters, classes): how many items of each class fell into each cluster."""
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != predicted.shape:
        raise UnveilError(f"labels have shapes {truth.shape} and {predicted.shape}: give two lists of equal length")
    _, columns = np.unique(truth, return_inverse=True)
    _, rows = np.unique(predicted, return_inverse=True)
    counts = np.zeros((rows.max(initial=-1) + 1, columns.max(initial=-1) + 1), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """ACC (Sec. 4.1): the share of items in the class of their cluster, under the best one-to-one assignment."""
    counts = contingency(y_true, y_pred)
    if counts.size == 0:
        return float("nan")
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def correctly_placed(y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.bool_]:
    """Whether each item is in the cluster that stands for its class, under the best one-to-one assignment."""
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    counts = contingency(truth, predicted)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    class_of = dict(zip(np.unique(predicted)[rows].tolist(), np.unique(truth)[columns].tolist(), strict=True))
    pairs = zip(predicted.tolist(), truth.tolist(), strict=True)
    return np.array([class_of.get(cluster) == label for cluster, label in pairs], dtype=bool)


def open_accuracy(y_true: ArrayLike, y_pred: ArrayLike, known: int) -> dict[str, float]:
    """All, old and new: the share of items in the class of their cluster under one assignment for known (below
    `known`) and novel classes together, over all items, those of known classes and those of novel ones."""
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    correct = correctly_placed(truth, predicted)
    parts = {"all": np.full(len(truth), True), "old": truth < known, "new": truth >= known}
    return {name: float(correct[part].mean()) if part.any() else float("nan") for name, part in parts.items()}


def clustering_scores(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """ACC, normalised mutual information and adjusted Rand index."""
    return {
        "acc": clustering_accuracy(y_true, y_pred),
        "nmi": float(normalized_mutual_info_score(y_true, y_pred)),
        "ari": float(adjusted_rand_score(y_true, y_pred)),
    }
