"""The known head that is computed: planes or neighbors, whichever recognizes known items better."""

import numpy as np
import torch
from blobs import blobs
from sklearn.datasets import make_moons
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import nn

from unveil.clustering.known_head import known_head, mean_head
from unveil.clustering.vote import NeighborVote


def test_planes_are_those_of_linear_discriminant_analysis() -> None:
    x, y = blobs(4, 200, apart=1.0)
    stretched = x * np.linspace(1, 5, 8, dtype=np.float32)
    found = mean_head(stretched, y, 4)(torch.from_numpy(stretched)).argmax(dim=1).numpy()
    expected = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5).fit(stretched, y).predict(stretched)
    assert (found == expected).mean() > 0.97  # a shrinkage of 1 here is a half there


def test_the_better_of_planes_and_neighbors_is_taken() -> None:
    x, y = blobs(3, 100, apart=0.8)
    stretched = x * np.array([1, 20, 20, 20, 20, 20, 20, 20], dtype=np.float32)
    assert isinstance(known_head(stretched, y, 3, 0), nn.Linear)
    moons, half = make_moons(600, noise=0.05, random_state=0)
    points = moons.astype(np.float32)
    head = known_head(points, half, 2, 0)
    assert isinstance(head, NeighborVote)
    assert (head(torch.from_numpy(points)).argmax(dim=1).numpy() == half).mean() > 0.98


def test_a_class_without_rows_is_never_recognized() -> None:
    x, y = blobs(3, 60, apart=0.8)
    for head in (mean_head(x, y, 5), known_head(x[:20], y[:20], 5, 0)):
        assert int(head(torch.from_numpy(x)).argmax(dim=1).max()) < 3
