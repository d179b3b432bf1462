"""Every clusterer: clusters of the unlabeled rows, how sure it is, and a head that labels new rows."""

from pathlib import Path

import numpy as np
import pytest
import torch
from blobs import blobs

from unveil.clustering.catalog import CLUSTERERS
from unveil.clustering.clusterer import nearest_center, with_known
from unveil.metrics import clustering_accuracy
from unveil.models.heads import Heads, linear_head
from unveil.models.model import load_model, save_model


@pytest.mark.parametrize("name", CLUSTERERS)
def test_a_clusterer_finds_the_novel_classes_and_labels_new_rows(name: str) -> None:
    x, y = blobs(6, 60, apart=6.0)
    seen = np.arange(len(y)) % 4 > 0
    labels = np.where(y < 3, y, -1)
    clusterer = CLUSTERERS[name](CLUSTERERS[name].Settings())
    found = clusterer.fit(x[seen], labels[seen], 3, 0)
    new = labels[seen] == -1
    assert clustering_accuracy(y[seen][new], found.labels) == 1.0
    assert found.certainty.shape == found.labels.shape
    assert ((found.certainty > 0.5) & (found.certainty <= 1)).all()
    later = ~seen & (y >= 3)
    with torch.no_grad():
        own = found.head(torch.from_numpy(x[seen][new])).argmax(dim=1).numpy()
        predicted = found.head(torch.from_numpy(x[later])).argmax(dim=1).numpy()
    np.testing.assert_array_equal(own, found.labels)
    assert clustering_accuracy(y[later], predicted) == 1.0
    np.testing.assert_array_equal(clusterer.fit(x[seen], labels[seen], 3, 0).labels, found.labels)


@pytest.mark.parametrize("name", CLUSTERERS)
def test_a_head_over_known_and_novel_classes(name: str, tmp_path: Path) -> None:
    x, y = blobs(6, 60, apart=6.0)
    labels = np.where(y < 3, y, -1)
    found = CLUSTERERS[name](CLUSTERERS[name].Settings()).fit(x, labels, 3, 0)
    head = with_known(found.head, x[y < 3], y[y < 3], 3)
    with torch.no_grad():
        predicted = head(torch.from_numpy(x)).argmax(dim=1).numpy()
    np.testing.assert_array_equal(predicted[y < 3], y[y < 3])
    np.testing.assert_array_equal(predicted[y >= 3], 3 + found.labels)
    heads = Heads(linear_head(x.shape[1], 3, torch.Generator().manual_seed(0)), head)
    save_model(heads, tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert isinstance(again, Heads)
    with torch.no_grad():
        np.testing.assert_array_equal(again.novel_head(torch.from_numpy(x)).argmax(dim=1).numpy(), predicted)


def test_the_nearest_center_by_its_definition() -> None:
    draw = np.random.default_rng(0)
    centers, x = (draw.normal(size=(n, 4)).astype(np.float32) for n in (5, 40))
    expected = np.square(x[:, None] - centers).sum(axis=2).argmin(axis=1)
    with torch.no_grad():
        np.testing.assert_array_equal(nearest_center(centers)(torch.from_numpy(x)).argmax(dim=1).numpy(), expected)
