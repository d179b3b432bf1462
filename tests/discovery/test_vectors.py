"""Which rows a fit on vectors trains on, and how they are scaled."""

import numpy as np
import pytest
from blobs import blobs

from unveil.discovery import vectors


def test_no_class_is_lost_among_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MOST_ROWS", 100)
    monkeypatch.setattr(vectors, "PER_CLASS", 2)
    labels = np.concatenate([np.zeros(5000), np.full(5000, -1), [1, 2, 2]]).astype(np.int64)
    rows = vectors.training_rows(labels, 0)
    assert len(rows) == len(set(rows.tolist())) == 100
    assert np.bincount(labels[rows][labels[rows] >= 0]).tolist() == [47, 1, 2]
    np.testing.assert_array_equal(vectors.training_rows(labels[:50], 0), np.arange(50))


def test_the_scaling_that_suits_the_known_classes_is_taken() -> None:
    x, y = blobs(4, 40)
    assert vectors.choose_reduction(x, y, 0)[1] == "every column is standardized"  # eight columns are few
    wide = np.concatenate([x, np.zeros((160, 12), dtype=np.float32)], axis=1)
    loud = wide.copy()
    loud[:, 8:] = 500 * np.random.default_rng(0).normal(size=(160, 12))  # noise that drowns the others
    reduction, reason = vectors.choose_reduction(loud, y, 0)
    assert not reduction.unit
    assert "every column is standardized (k-means finds known classes with" in reason
    reduction, reason = vectors.choose_reduction(wide, y, 0)
    assert reduction.unit
    assert "unit length" in reason
    assert vectors.choose_reduction(wide, np.full(160, -1), 0)[1] == "every vector is brought to unit length"
