"""Names to suggest for a class: telling words of texts, images or file names, columns, nearest known classes."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unveil.runs.reader import Run

WORD = re.compile(r"[^\W\d_]{3,}")
MOST = 3  # suggestions of each kind, and words or columns in a suggestion
# fmt: off
USUAL = frozenset({
    "the", "and", "for", "you", "are", "with", "what", "can", "how", "this", "that", "from", "have", "not", "was",
    "but", "your", "will", "into", "does", "jpg", "jpeg", "png", "webp", "bmp", "tiff", "gif", "img", "dsc", "new",
    "known", "item", "image", "images", "picture", "photo",
})
# fmt: on
"""Words that name nothing: the most usual ones of English, and those of file names."""
LEAST_SHARE = 0.3  # a telling word is in at least this share of the texts of a class
LEAST_DEVIATIONS = 0.7  # a telling column differs by at least this many standard deviations


class Names:
    """Suggests names for classes of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def suggest(self, labels: NDArray[np.int64], cluster: int, nearest_known: Sequence[str] = ()) -> list[str]:
        """The best names first. `nearest_known`: known classes that are similar, the most similar first."""
        suggestions = []
        if words := telling_words(self._words, labels, cluster)[:MOST]:
            suggestions.append(" ".join(words))
        if columns := self._columns(labels == cluster)[: MOST - 1]:
            suggestions.append(", ".join(columns))
        if nearest_known:
            suggestions.append(f"like {', '.join(nearest_known[: MOST - 1])}")
        return suggestions[:MOST]

    def telling(self, labels: NDArray[np.int64], cluster: int, most: int) -> list[str]:
        """What sets a class apart from the others of `labels` (-1: not counted): words of texts, or named columns."""
        if self._run.texts:
            return telling_words(self._words, labels, cluster)[:most]
        return self._columns(labels == cluster, labels >= 0)[:most]

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        texts = self._run.texts or self._run.words or self._run.ids
        return [frozenset(word.lower() for word in WORD.findall(text)) - USUAL for text in texts]

    def _columns(self, members: NDArray[np.bool_], among: NDArray[np.bool_] | None = None) -> list[str]:
        """high petal length, low petal width: columns with names, the most unusual first. `among`: None means all."""
        run = self._run
        if not run.record.get("columns") or run.inputs is None or run.column_statistics is None or not members.any():
            return []
        mean = run.column_statistics[0] if among is None else run.inputs[among].mean(axis=0, dtype=np.float64)
        _, units = run.column_differences(members, mean)
        best = np.argsort(-np.abs(units), kind="stable").tolist()
        chosen = [column for column in best if abs(units[column]) >= LEAST_DEVIATIONS]
        return [f"{'high' if units[column] > 0 else 'low'} {self._run.column(column)}" for column in chosen]


def telling_words(words: Sequence[frozenset[str]], labels: NDArray[np.int64], cluster: int) -> list[str]:
    """The words of a class with the largest c-TF-IDF: frequent in its texts, rare in those of other classes."""
    members = np.flatnonzero(labels == cluster).tolist()
    here = Counter(word for row in members for word in words[row])
    if not here:
        return []
    everywhere = Counter(word for row in np.flatnonzero(labels >= 0).tolist() for word in words[row])
    classes = max(1, len(np.unique(labels[labels >= 0])))
    share = len(members) / max(1, int((labels >= 0).sum()))
    usual = sum(everywhere.values()) / classes  # words of an average class
    scores = {
        word: count * math.log(1 + usual / everywhere[word])
        for word, count in here.items()
        if count >= LEAST_SHARE * len(members) and count / everywhere[word] > (1 + share) / 2
    }
    return sorted(scores, key=lambda word: (-scores[word], word))


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, with a number where another class has it."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name} {number}", number + 1
    return free
