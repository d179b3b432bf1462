"""The metric: chosen by hidden known classes, and the same for new items."""

import numpy as np
from blobs import blobs

from unveil.clustering.graph import neighbor_graph
from unveil.encoders.metric import Metric, choose_metric
from unveil.numerics import whitening, within_class_covariance


def test_whitening_makes_the_spread_within_classes_round() -> None:
    x, y = blobs(5, 200)
    x = x * np.linspace(1, 9, 8, dtype=np.float32)
    shaped = x @ whitening(within_class_covariance(x, y), 1e-6)
    np.testing.assert_allclose(within_class_covariance(shaped, y), np.eye(8), atol=0.02)


def test_columns_of_noise_are_turned_down() -> None:
    """Three columns tell the classes apart, five hold noise that is ten times as large."""
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 40)
    x = np.concatenate([3 * draw.normal(size=(12, 3))[y], np.zeros((len(y), 5))], axis=1) + draw.normal(
        size=(len(y), 8)
    )
    x[:, 3:] *= 10
    x = x.astype(np.float32)
    labels = np.where(y < 8, y, -1)
    metric = choose_metric(x, labels)
    base = metric.base(x)
    shaping = metric.shaping(base(x), labels)
    z = base.then(shaping)(x)
    np.testing.assert_allclose(z, shaping(base(x)), atol=1e-4)

    def purity(vectors: np.ndarray) -> float:
        novel = np.flatnonzero(y >= 8)
        return float((y[novel][neighbor_graph(vectors[novel], 5).neighbors] == y[novel][:, None]).mean())

    assert purity(z) > purity(x) + 0.2
    assert "unit length" in Metric().describe()


def test_without_known_classes_there_is_a_default() -> None:
    x, _ = blobs(3, 20)
    assert choose_metric(x, np.full(len(x), -1)) == Metric()
    assert Metric().shaping(x, np.full(len(x), -1))(x).shape == x.shape


def test_only_the_scalings_that_are_given_are_tried() -> None:
    x, y = blobs(8, 40)
    labels = np.where(y < 5, y, -1)
    assert choose_metric(x, labels, ["standard"]).scaling == "standard"
    assert choose_metric(x, labels) == choose_metric(x.copy(), labels.copy())
