"""Neighbor consensus: the embedding's gradient, the consensus, and the method as a whole."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from blobs import blobs
from sklearn.datasets import load_digits, make_moons

from unveil import NovelClassDiscovery
from unveil.clustering import neighbor_consensus
from unveil.clustering.embedding import embed
from unveil.clustering.graph import edge_weights, neighbor_graph
from unveil.clustering.neighbor_consensus import (
    NeighborConsensusSettings,
    choices_of_dimensions,
    discriminant_kmeans,
    find_clusters,
    separated_by_planes,
)
from unveil.clustering.partitions import (
    agreement,
    average_labels,
    consensus,
    evenness,
    kmeans_labels,
    most_agreed,
    share_that_agrees,
    ward_labels,
)
from unveil.clustering.vote import NeighborVote
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.models.heads import build_head, describe_head

USUAL = NeighborConsensusSettings()


def test_an_embedding_keeps_neighbors_together() -> None:
    x, y = make_moons(400, noise=0.04, random_state=0)
    places = embed(edge_weights(neighbor_graph(x.astype(np.float32), 15)), 4, seed=0)
    assert places.shape == (400, 4)
    assert np.isfinite(places).all()
    neighbors = neighbor_graph(places, 10).neighbors
    assert (y[neighbors] == y[:, None]).mean() > 0.97
    np.testing.assert_array_equal(places, embed(edge_weights(neighbor_graph(x.astype(np.float32), 15)), 4, seed=0))


def test_the_consensus_outvotes_a_partition_that_is_wrong() -> None:
    x, y = blobs(4, 30)
    draw = np.random.default_rng(0)
    wrong = draw.integers(0, 4, len(y))
    partitions = [y, (y + 1) % 4, wrong, y]
    np.testing.assert_allclose(agreement(partitions)[[0, 1, 3]], 2 / 3, atol=0.05)
    assert agreement(partitions)[2] < 0.1
    assert clustering_accuracy(y, consensus(partitions, 4, 0)) == 1.0
    assert clustering_accuracy(y, ward_labels(x, 4, 0)) == clustering_accuracy(y, kmeans_labels(x, 4, 0, 10)) == 1.0


def test_blobs_of_unequal_spread_are_told_apart() -> None:
    x, y = blobs(6, 60, apart=2.0)
    known, novel = y < 3, y >= 3
    clusters = find_clusters(x[novel], x[known], y[known], 3, NeighborConsensusSettings(), seed=0)
    assert clustering_accuracy(y[novel], clusters) > 0.95
    assert len(find_clusters(x[:5], x[known], y[known], 3, NeighborConsensusSettings(), seed=0)) == 5


def test_classes_of_unequal_size_are_found_whole() -> None:
    """k-means splits the large classes; known classes show that such sizes are not those of equal classes."""
    x, y = load_digits(return_X_y=True)
    kept = np.concatenate([np.flatnonzero(y == c)[: 15 if c in (6, 8) else 150] for c in range(10)])
    x, y = x[kept].astype(np.float32), y[kept]
    known, novel = y < 5, y >= 5
    config = NeighborConsensusSettings()
    found = find_clusters(x[novel], x[known], y[known], 5, config, seed=0)
    even = find_clusters(x[novel], x[known], y[known], 5, replace(config, unequal=1.0), seed=0)
    assert clustering_accuracy(y[novel], found) > clustering_accuracy(y[novel], even) + 0.05
    np.testing.assert_array_equal(found, find_clusters(x[novel], x[known], y[known], 5, config, seed=0))


def test_sizes_of_clusters() -> None:
    assert evenness(np.repeat(np.arange(4), 25), 4) == pytest.approx(1.0)
    assert evenness(np.repeat(np.arange(4), [97, 1, 1, 1]), 4) < 0.2
    x, y = blobs(3, 2000, apart=3.0)
    kept = np.concatenate([np.flatnonzero(y == c)[: (10, 2000, 1500)[c]] for c in range(3)])
    assert clustering_accuracy(y[kept], average_labels(x[kept], 3, 0)) == 1.0
    partitions = [y, (y + 1) % 3, np.zeros_like(y)]
    assert clustering_accuracy(y, most_agreed(partitions)) == 1.0


def test_planes_or_neighbors() -> None:
    x, y = blobs(3, 100, apart=0.8)
    stretched = x * np.array([1, 20, 20, 20, 20, 20, 20, 20], dtype=np.float32)
    assert separated_by_planes(stretched, y, 0)
    moons, half = make_moons(600, noise=0.05, random_state=0)
    assert not separated_by_planes(moons.astype(np.float32), half, 0)
    assert not separated_by_planes(x, np.zeros(len(x), dtype=np.int64), 0)
    assert not separated_by_planes(x[:6], y[:6], 0)  # too few rows to tell
    assert clustering_accuracy(y, discriminant_kmeans(x, y, x, y, 3)) > 0.8


def test_a_vote_of_neighbors_changes_smoothly() -> None:
    head = NeighborVote(1, 2, rows=6, neighbors=3)
    head.points.copy_(torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]))
    head.labels.copy_(torch.tensor([0, 0, 0, 1, 1, 1]))
    shares = head(torch.tensor([[1.0], [11.0], [6.0]])).exp()
    assert shares[0, 0] > 0.99
    assert shares[1, 1] > 0.99
    near, next_to_it = head(torch.tensor([[5.999], [6.001]])).exp()
    torch.testing.assert_close(near, next_to_it, atol=1e-2, rtol=0)
    again = build_head(describe_head(head))
    again.load_state_dict(head.state_dict())
    torch.testing.assert_close(again(torch.tensor([[4.0]])), head(torch.tensor([[4.0]])))
    assert head(torch.zeros(0, 1)).shape == (0, 2)


def test_digits_by_default(tmp_path: Path) -> None:
    X, truth = load_digits(return_X_y=True)
    y = np.where(truth < 5, truth, -1)
    fitted = NovelClassDiscovery(n_novel=5, rehearsals=0, random_state=0).fit(X, y)
    novel = truth >= 5
    assert clustering_accuracy(truth[novel], fitted.labels_[novel]) > 0.94
    assert (fitted.predict(X)[novel] >= 5).mean() > 0.9
    fitted.save(tmp_path / "run")
    again = NovelClassDiscovery.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_known_classes_among_the_unlabeled_items_are_for_other_methods() -> None:
    x, y = blobs(4, 40)
    fit = NovelClassDiscovery(n_novel=1, method="uno", known_in_unlabeled=True, rehearsals=0)
    with pytest.raises(UnveilError, match="looks for novel classes alone"):
        fit.fit(x, np.where(np.arange(len(y)) % 2, -1, y))


def test_points_that_are_not_certain_of_their_cluster_vote_less() -> None:
    points = np.array([[0.0], [0.1], [0.2], [0.3]], dtype=np.float32)
    labels = np.array([0, 0, 1, 1])
    sure = NeighborVote.of(points, labels, np.ones(4, dtype=np.float32), 2, 4)
    unsure = NeighborVote.of(points, labels, np.array([1, 1, 0.2, 0.2], dtype=np.float32), 2, 4)
    z = torch.tensor([[0.2]])
    assert sure(z).argmax() == 1
    assert unsure(z).argmax() == 0
    torch.testing.assert_close(unsure(z).exp().sum(), torch.tensor(1.002), atol=1e-4, rtol=0)


def test_rows_in_clusters_that_come_and_go_are_uncertain() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1])
    same, other_names, split = labels, 1 - labels, np.array([0, 0, 0, 1, 2, 1])
    np.testing.assert_allclose(share_that_agrees(labels, [same, other_names, split]), [1, 1, 1, 1, 2 / 3, 1])


@pytest.mark.parametrize(
    ("clusters", "few"),
    [(2, (3, 3, 3)), (5, (4, 4, 4)), (14, (13, 12, 13)), (17, None), (40, None)],
)
def test_graphs_are_embedded_in_as_few_dimensions_as_clusters_need(clusters: int, few: tuple[int, ...] | None) -> None:
    many = USUAL.dimensions
    assert choices_of_dimensions(clusters, USUAL) == ([many] if few is None else [many, few])


@pytest.mark.parametrize(
    ("cut", "unequal", "few"),
    [
        ((0.050, 0.050), False, True),
        ((0.050, 0.056), False, False),  # it cuts more edges than 1.05 times as many
        ((0.010, 0.012), False, True),  # and so few that they say nothing
        ((0.050, 0.050), True, False),  # sizes are unequal in few dimensions alone
    ],
)
def test_few_dimensions_are_taken_unless_they_entangle_classes(
    cut: tuple[float, float], unequal: bool, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = blobs(6, 20)
    many_labels, few_labels = np.zeros(60, dtype=np.int64), np.ones(60, dtype=np.int64)
    results, cuts, sizes = iter((many_labels, few_labels)), iter(cut), iter((False, unequal))
    monkeypatch.setattr(neighbor_consensus, "consensus", lambda *_: next(results))
    monkeypatch.setattr(neighbor_consensus, "cut_share", lambda *_: next(cuts))
    monkeypatch.setattr(neighbor_consensus, "unequal_sizes", lambda *_: next(sizes))
    monkeypatch.setattr(neighbor_consensus, "separated_by_planes", lambda *_: False)
    found = neighbor_consensus.find_clusters(x[60:], x[:60], y[:60], 3, USUAL, 0)
    assert found is (few_labels if few else many_labels)
