"""Texts as vectors without a pretrained encoder: TF-IDF of their words, on the main directions (SVD)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from unveil.data.items import Vectors
from unveil.errors import UnveilError

MOST_WORDS = 20_000
COMPONENTS = 100


@dataclass(frozen=True)
class Tfidf:
    """Words and pairs of words with their weights, and the directions on which texts are projected."""

    words: tuple[str, ...]
    idf: NDArray[np.float32]
    """(words,)"""
    axes: NDArray[np.float32]
    """(components, words)"""

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """(n, components): of unit length; zeros for a text without any of the words."""
        weights = _vectorizer(vocabulary=self.words)
        weights.idf_ = self.idf.astype(np.float64)
        x = weights.transform(texts) @ self.axes.T
        length = np.linalg.norm(x, axis=1, keepdims=True)
        vectors: Vectors = (x / np.maximum(length, 1e-12)).astype(np.float32)
        return vectors

    def arrays(self) -> dict[str, NDArray[np.float32] | NDArray[np.uint8]]:
        """Everything, to be stored."""
        words = np.frombuffer(json.dumps(self.words).encode(), dtype=np.uint8)
        return {"words": words, "idf": self.idf, "axes": np.ascontiguousarray(self.axes)}

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> "Tfidf":
        """What `arrays` gave."""
        words = tuple(json.loads(arrays["words"].tobytes()))
        return Tfidf(words, arrays["idf"].astype(np.float32), arrays["axes"].astype(np.float32))


def fit_tfidf(texts: Sequence[str], seed: int = 0) -> Tfidf:
    """Learn words, weights and directions from the texts themselves."""
    weights = _vectorizer(min_df=2 if len(texts) >= 200 else 1, max_features=MOST_WORDS)
    try:
        x = weights.fit_transform(texts)
    except ValueError:
        raise UnveilError("the texts have no words: give sentences, or vectors of your own") from None
    components = min(COMPONENTS, min(x.shape) - 1)
    if components < 1:
        raise UnveilError("the texts have too few different words: give more texts")
    svd = TruncatedSVD(components, random_state=seed).fit(x)
    words = tuple(weights.get_feature_names_out().tolist())
    return Tfidf(words, weights.idf_.astype(np.float32), svd.components_.astype(np.float32))


def _vectorizer(**values: object) -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), strip_accents="unicode", **values)
