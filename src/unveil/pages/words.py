"""Titles that the command line, the report and the review page share, by the keys of record.json and metrics.jsonl."""

from typing import Any

SUMMARY = {
    "result": "Result",
    "number": "Number of classes",
    "choice": "Method",
    "accuracy": "Forecast",
    "agreement": "Agreement with k-means",
}
"""Titles of the sentences in record["summary"], in the order in which they are shown."""


def headline(record: dict[str, Any], *, edited: bool = False) -> str:
    """The accuracy to expect, in one sentence; an interval only where the number of classes was given, not guessed."""
    forecast, estimate = record.get("forecast") or {}, record.get("estimate")
    accuracy = forecast.get("accuracy")
    if accuracy is None:
        reason = forecast.get("reason")
        return f"Expected accuracy unknown: {reason}." if reason else ""
    text = f"Expected accuracy {100 * accuracy:.0f} %"
    low, high = forecast.get("low"), forecast.get("high")
    if estimate:
        number, least, most = (estimate.get(key) for key in ("number", "low", "high"))
        classes = "class" if number == 1 else "classes"
        between = f", between {least} and {most}" if least != most else ""
        text += f" if there are {number} novel {classes}, which is an estimate{between}"
    elif low is not None and high is not None:
        text += f" (90 % interval {100 * low:.0f}-{100 * high:.0f} %)"
    return f"{text}{'; before the review' if edited else ''}."


METRICS = {
    "ce": ("cross-entropy", "loss of the known classes"),
    "bce": ("pairs", "loss of pairs of new items: same class or not"),
    "consistency": ("consistency", "difference between the predictions for two views of an item"),
    "ncl": ("neighborhood contrast", "loss that brings neighbors among the new items together"),
    "scl": ("class contrast", "loss that brings known items of one class together"),
    "swapped": ("swapped prediction", "difference between a prediction and the pseudo-label of the other view"),
    "overclustering": ("over-clustering", "the same for heads with more clusters than classes"),
    "pair_density": ("pair density", "share of pairs that are assumed to be of one class"),
    "pair_precision": ("pair precision", "share of those pairs that really are one class"),
    "neighbor_purity": ("neighbor purity", "share of nearest neighbors of the same class"),
    "mean_cosine": ("mean cosine", "close to 1: all features are the same (collapse)"),
    "clusters_used": ("clusters in use", "fewer than there are classes: the others are empty"),
    "confidence": ("confidence", "mean probability of the chosen cluster"),
    "acc": ("accuracy", "share of items in the right cluster"),
    "nmi": ("NMI", "normalized mutual information of clusters and classes"),
    "ari": ("ARI", "adjusted Rand index of clusters and classes"),
}
"""Title and meaning of the metrics of an epoch."""

SCORES = {
    "kmeans_inputs": "k-means on the inputs",
    "kmeans": "k-means on features of unit length",
    "metrics": "",  # the title is that of the method
}
"""What the scores under these keys of record.json belong to, in the order of a table."""


def score_rows(record: dict[str, Any]) -> list[tuple[str, str, dict[str, float]]]:
    """(key of the record, title, scores) of the run and of k-means beside it, where the truth was known."""
    rows = []
    for key, title in SCORES.items():
        scores = record.get(key)
        if isinstance(scores, dict) and "acc" in scores:
            rows.append((key, title or record.get("method_title") or record.get("method") or "this run", scores))
    return rows
