"""Items that are similar to another one, and likely duplicates."""

import hashlib
from collections import defaultdict
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.numerics import unit_rows
from unveil.runs.map import PIECE, projected
from unveil.runs.reader import Run

ALIKE = 0.999  # items with a larger cosine than this are likely duplicates
LEAST_ALIKE = 0.95  # the smallest cosine that people can ask for
MOST_PAIRS = 50_000
MOST_GROUPS = 500
DIMENSIONS = 8
NEIGHBORS = 5


class SimilarItems:
    """Similar items and duplicates by features. Corrections do not change features, so these are computed once."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def _lengths(self) -> NDArray[np.float32]:
        pieces = range(0, len(self._run.features), PIECE)
        lengths = [np.linalg.norm(self._run.features[start : start + PIECE], axis=1) for start in pieces]
        positive: NDArray[np.float32] = np.maximum(np.concatenate(lengths), 1e-12)
        return positive

    def similar(self, row: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The items nearest to a row by cosine, the row itself first, and the cosines."""
        query = unit_rows(self._run.features[row : row + 1])[0]
        cosine = (self._run.features @ query) / self._lengths
        cosine[row] = np.inf
        count = min(count, len(cosine))
        best = np.argpartition(-cosine, count - 1)[:count]
        best = best[np.argsort(-cosine[best], kind="stable")]
        return best.astype(np.int64), np.minimum(cosine[best], 1).astype(np.float32)

    def duplicates(self, alike: float = ALIKE) -> list[list[int]]:
        """Groups of items with the same picture or with a larger cosine than `alike`, the likeliest first."""
        pairs, cosines = self._close_pairs
        close = pairs[: int(np.searchsorted(-cosines, -alike))][:MOST_GROUPS]
        return _groups(self._same_pictures + close, len(self._same_pictures))

    @cached_property
    def _same_pictures(self) -> list[tuple[int, int]]:
        digests: dict[bytes, int] = {}
        pairs = []
        for row in self._candidates():
            content = self._content(row)
            if content is None:
                continue
            first = digests.setdefault(hashlib.blake2b(content, digest_size=16).digest(), row)
            if first != row:
                pairs.append((first, row))
        return pairs

    def _candidates(self) -> list[int]:
        """Rows whose picture may equal another's: files with a unique size need not be read."""
        if not any(self._run.paths):
            return list(range(len(self._run.ids))) if self._run.pictures is not None else []
        sizes: defaultdict[int, list[int]] = defaultdict(list)
        for row, path in enumerate(self._run.paths):
            try:
                sizes[Path(path).stat().st_size].append(row)
            except OSError:
                continue
        return sorted(row for rows in sizes.values() if len(rows) > 1 for row in rows)

    def _content(self, row: int) -> bytes | None:
        if self._run.pictures is not None:
            return np.ascontiguousarray(self._run.pictures[row]).tobytes()
        try:
            return Path(self._run.paths[row]).read_bytes()
        except OSError:
            return None

    @cached_property
    def _close_pairs(self) -> tuple[list[tuple[int, int]], NDArray[np.float32]]:
        """Pairs with similar features and their cosines, the largest first.

        Candidates are close in a few principal directions, where no distance is larger than in all.
        """
        from scipy.spatial import cKDTree

        points = projected(self._run.features, np.flatnonzero(self._run.new), DIMENSIONS)
        reach = float(np.sqrt(2 - 2 * LEAST_ALIKE))
        k = min(NEIGHBORS, len(points))
        _, nearest = cKDTree(points).query(points, k=k, distance_upper_bound=reach)
        nearest = nearest.reshape(len(points), k)
        left, rank = np.nonzero(nearest < len(points))
        right = nearest[left, rank]
        left, right = left[left < right], right[left < right]
        cosines = np.empty(len(left), dtype=np.float32)
        for start in range(0, len(left), PIECE):
            part = slice(start, start + PIECE)
            a, b = unit_rows(self._run.features[left[part]]), unit_rows(self._run.features[right[part]])
            cosines[part] = np.einsum("nd,nd->n", a, b)
        order = np.argsort(-cosines, kind="stable")
        order = order[cosines[order] > LEAST_ALIKE][:MOST_PAIRS]
        return list(zip(left[order].tolist(), right[order].tolist(), strict=True)), cosines[order]


def _groups(pairs: list[tuple[int, int]], same: int) -> list[list[int]]:
    """Pairs joined into groups, in the order of their first pair."""
    group_of: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for number, (a, b) in enumerate(pairs):
        left, right = group_of.get(a), group_of.get(b)
        if left is None and right is None:
            groups[number] = [a, b]
            group_of[a] = group_of[b] = number
        elif left is None or right is None:
            target = right if left is None else left
            assert target is not None
            row = a if left is None else b
            groups[target].append(row)
            group_of[row] = target
        elif left != right:
            if number >= same:
                continue  # groups would grow into long chains of nearly equal items
            groups[left] += groups.pop(right)
            group_of.update(dict.fromkeys(groups[left], left))
    return [sorted(group) for group in list(groups.values())[:MOST_GROUPS]]
