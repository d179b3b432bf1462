"""Texts that are longer than what a model reads at once: their pieces are encoded, and the mean counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from unveil.data.items import Vectors

Encode = Callable[[Sequence[str]], Vectors]
MARGIN = 4
"""Tokens by which a piece stays below the limit: the two ends of a piece may become more tokens than they were."""


@dataclass
class InPieces:
    """An encoder that reads texts of any length by one that reads `most` tokens."""

    encode: Encode
    spans: Callable[[Sequence[str]], list[list[tuple[int, int]]]]
    """For each text the places (first, last + 1) of its tokens."""
    most: int
    longer: int = 0
    """How many of the texts so far were longer."""

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """(n, d). A piece counts as much as it has tokens, and the mean is as long as the pieces' vectors are."""
        pieces: list[str] = []
        weights: list[list[int]] = []
        for text, spans in zip(texts, self.spans(texts), strict=True):
            parts = [text] if len(spans) <= self.most else list(self._cut(text, spans))
            self.longer += len(parts) > 1
            pieces += parts
            weights.append([len(spans)] if len(parts) == 1 else [len(part) for part in parts])
        vectors = self.encode(pieces)
        if len(pieces) == len(texts):
            return vectors
        ends = np.cumsum([len(parts) for parts in weights])
        own = [vectors[end - len(parts) : end] for end, parts in zip(ends, weights, strict=True)]
        return np.stack([_mean(part, by) if len(by) > 1 else part[0] for part, by in zip(own, weights, strict=True)])

    def _cut(self, text: str, spans: list[tuple[int, int]]) -> list[str]:
        """Pieces of about equal numbers of tokens."""
        count = -(-len(spans) // (self.most - MARGIN))
        starts = [0, *(spans[len(spans) * number // count][0] for number in range(1, count)), len(text)]
        return [text[start:end] for start, end in pairwise(starts)]


def in_pieces(encode: Encode, tokenizer: Any, limit: int | None) -> Encode:
    """The encoder for texts of any length; as it is where its tokenizer does not say where its tokens are."""
    if limit is None or not getattr(tokenizer, "is_fast", False):
        return encode

    def spans(texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        tokens = tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        return list(tokens["offset_mapping"])

    return InPieces(encode, spans, limit - int(tokenizer.num_special_tokens_to_add()))


def _mean(vectors: Vectors, weights: list[int]) -> Vectors:
    mean = np.average(vectors, axis=0, weights=weights)
    length = np.average(np.linalg.norm(vectors, axis=1), weights=weights)
    return np.asarray(mean * length / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)
