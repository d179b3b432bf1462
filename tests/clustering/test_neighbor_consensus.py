"""Neighbor consensus: the embedding's gradient, the consensus, and the method as a whole."""

from pathlib import Path

import numpy as np
import pytest
import torch
from blobs import blobs
from sklearn.datasets import load_digits, make_moons

from unveil import NovelClassDiscovery
from unveil.clustering.embedding import embed
from unveil.clustering.graph import edge_weights, neighbor_graph
from unveil.clustering.known_head import separated_by_planes
from unveil.clustering.neighbor_consensus import (
    NeighborConsensus,
    NeighborConsensusSettings,
    evidence_weights,
    find_clusters,
    hidden_classes,
    rehearse_known_classes,
)
from unveil.clustering.partitions import (
    adjusted_rand_matrix,
    agreement,
    average_labels,
    consensus,
    evenness,
    kmeans_labels,
    votes,
    ward_labels,
)
from unveil.clustering.spaces import COMPONENTS, components, scaled, shaped
from unveil.clustering.taught import taught
from unveil.clustering.vote import NeighborVote
from unveil.errors import UnveilError
from unveil.metrics import clustering_accuracy
from unveil.models.heads import build_head, describe_head
from unveil.numerics import adjusted_rand

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
    assert clustering_accuracy(y, consensus(partitions, np.ones(4, dtype=np.float32) / 4, 4, 0)) == 1.0
    assert clustering_accuracy(y, ward_labels(x, 4, 0)) == clustering_accuracy(y, kmeans_labels(x, 4, 0, 10)) == 1.0


def test_blobs_of_unequal_spread_are_told_apart() -> None:
    x, y = blobs(6, 60, apart=2.0)
    labels = np.where(y < 3, y, -1)
    found = find_clusters(x, labels, 3, USUAL, seed=0, rehearsals=2)
    assert clustering_accuracy(y[y >= 3], found.labels) > 0.95
    assert len(found.evidence.rehearsals) == 2
    assert all(one.hidden == 2 and one.accuracy > 0.9 for one in found.evidence.rehearsals)
    again = find_clusters(x, labels, 3, USUAL, seed=0, rehearsals=2)
    np.testing.assert_array_equal(found.labels, again.labels)
    np.testing.assert_array_equal(found.certainty, again.certainty)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_hardly_any_rows(rows: int) -> None:
    x, y = blobs(4, 30)
    some = np.concatenate([np.flatnonzero(y < 3), np.flatnonzero(y == 3)[:rows]])
    labels = np.where(y < 3, y, -1)[some]
    found = find_clusters(x[some], labels, 3, USUAL, seed=0, rehearsals=1)
    assert len(found.labels) == len(found.certainty) == rows
    assert found.labels.max() < 3


def test_without_known_classes_nothing_is_rehearsed() -> None:
    x, y = blobs(4, 40)
    found = find_clusters(x, np.full(len(y), -1), 4, USUAL, seed=0, rehearsals=3)
    assert found.evidence.rehearsals == ()
    assert clustering_accuracy(y, found.labels) > 0.95


def test_known_classes_are_rehearsed_without_any_new_rows() -> None:
    x, y = blobs(5, 40)
    evidence = rehearse_known_classes(x, y, 3, USUAL, seed=0, rehearsals=2)
    assert [one.hidden for one in evidence.rehearsals] == [2, 2]
    assert all(len(one.certainty) == len(one.correct) == 80 for one in evidence.rehearsals)
    assert min(one.accuracy for one in evidence.rehearsals) > 0.9


def test_classes_of_unequal_size_are_found_whole() -> None:
    """k-means on the vectors splits the large classes."""
    x, y = load_digits(return_X_y=True)
    kept = np.concatenate([np.flatnonzero(y == c)[: 15 if c in (6, 8) else 150] for c in range(10)])
    x, y = x[kept].astype(np.float32), y[kept]
    labels = np.where(y < 5, y, -1)
    found = find_clusters(x, labels, 5, USUAL, seed=0, rehearsals=3)
    plain = kmeans_labels(x[y >= 5], 5, 0, 10)
    assert clustering_accuracy(y[y >= 5], found.labels) > clustering_accuracy(y[y >= 5], plain) + 0.05


def test_average_linkage_leaves_unequal_classes_whole() -> None:
    x, y = blobs(3, 2000, apart=3.0)
    kept = np.concatenate([np.flatnonzero(y == c)[: (10, 2000, 1500)[c]] for c in range(3)])
    assert clustering_accuracy(y[kept], average_labels(x[kept], 3, 0)) == 1.0


def test_rows_that_were_not_drawn_follow_their_neighbors() -> None:
    x, y = blobs(6, 100, apart=2.0)
    labels = np.where(y < 3, y, -1)
    few = NeighborConsensus(NeighborConsensusSettings(rows=90, rows_per_cluster=1))
    clustering = few.fit_weighed(x, labels, 3, 0, unscaled=x, rehearsals=1)
    assert len(few.fit(x, labels, 3, 0).head.points) == 90
    assert clustering_accuracy(y[y >= 3], clustering.labels) > 0.95
    assert clustering.certainty.min() > 0


def test_evidence_raises_the_weight_of_partitions_that_agree_and_find_hidden_classes() -> None:
    agree, rehearsed = np.array([0.9, 0.9, 0.1], dtype=np.float32), np.array([[0.9, 0.5, 0.5], [0.8, 0.5, 0.5]])
    of_any_size = np.array([False, False, True])
    weights = evidence_weights(agree, rehearsed, of_any_size, 0.0)
    assert weights[0] > weights[1] > weights[2]
    assert weights.sum() == pytest.approx(1)
    same = np.full(3, 0.5, dtype=np.float32)
    np.testing.assert_allclose(evidence_weights(same, np.zeros((0, 3)), of_any_size, 0.0), 1 / 3)
    even, uneven = (evidence_weights(same, np.full((2, 3), 0.8), of_any_size, value) for value in (0.0, 0.04))
    assert even[2] < even[0] / 2
    assert uneven[2] > 0.9


def test_sizes_of_clusters() -> None:
    assert evenness(np.repeat(np.arange(4), 25), 4) == pytest.approx(1.0)
    assert evenness(np.repeat(np.arange(4), [97, 1, 1, 1]), 4) < 0.2


def test_no_two_rehearsals_hide_the_same_classes() -> None:
    labels = np.repeat(np.arange(4), 20)
    hidden = hidden_classes(labels, 5, 6, 0)
    assert len({tuple(one) for one in hidden}) == len(hidden) == 6  # all pairs of four classes
    assert len(hidden_classes(labels[labels < 3], 5, 9, 0)) == 3
    assert hidden_classes(labels[labels < 2], 5, 3, 0) == []
    assert hidden_classes(np.arange(125), 5, 3, 0) == []  # an item alone is no class to be found
    assert {len(one) for one in hidden_classes(np.repeat(np.arange(20), 5), 4, 3, 0)} == {4}


def test_pairs_of_partitions_by_one_product() -> None:
    draw = np.random.default_rng(0)
    partitions = [draw.integers(0, size, 200) for size in (2, 5, 9)] + [np.zeros(200, dtype=np.int64)]
    slow = [[adjusted_rand(first, second) for second in partitions] for first in partitions]
    np.testing.assert_allclose(adjusted_rand_matrix(partitions), slow, atol=1e-5)


def test_votes_are_shares_of_the_consensus_in_a_cluster() -> None:
    labels, split = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    said = votes(labels, [1 - labels, split], np.array([1.0, 1.0], dtype=np.float32), 2)
    np.testing.assert_allclose(said.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(said[:, 0], [1, 1, 0.625, 0.125, 0.125, 0.125], atol=1e-6)


def test_spaces_scale_the_columns_and_are_taught_by_known_classes() -> None:
    x, y = blobs(4, 30)
    spoiled = np.concatenate([x, 1e6 * np.eye(1, len(x), 3, dtype=np.float32).T], axis=1)  # one cell is far off
    base = scaled(spoiled)
    assert list(base) == ["standard", "unit", "none"]
    assert np.abs(base["standard"]).max() < 20
    assert [space.name for space in shaped(base, y, 0)][:2] == ["standard", "standard, taught"]
    assert list(scaled(x / np.linalg.norm(x, axis=1, keepdims=True))) == ["standard", "unit"]
    wide = np.random.default_rng(0).normal(size=(40, 3 * COMPONENTS)).astype(np.float32)
    np.testing.assert_allclose(components(wide) @ components(wide).T, (wide - wide.mean(0)) @ (wide - wide.mean(0)).T,
                               atol=1e-2)  # fmt: skip


def test_known_classes_teach_what_does_not_matter() -> None:
    """Most of the variance is the same in all classes; the map that known classes teach leaves it out."""
    draw = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 60)
    x = np.concatenate(
        [draw.normal(size=(8, 6))[y] + 0.5 * draw.normal(size=(480, 6)), 3 * draw.normal(size=(480, 6))], 1
    )
    x, labels = x.astype(np.float32), np.where(y < 5, y, -1)
    mapped = taught(x, labels, 0)
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, atol=1e-5)

    def purity(z: np.ndarray) -> float:
        return float((y[neighbor_graph(z[y >= 5], 10).neighbors + 300] == y[y >= 5][:, None]).mean())

    assert purity(mapped) > purity(x) + 0.1
    np.testing.assert_array_equal(mapped, taught(x, labels, 0))
    assert np.isfinite(taught(x, np.full(480, -1), 0)).all()  # nobody teaches


def test_planes_or_neighbors() -> None:
    x, y = blobs(3, 100, apart=0.8)
    stretched = x * np.array([1, 20, 20, 20, 20, 20, 20, 20], dtype=np.float32)
    assert separated_by_planes(stretched, y, 0)
    moons, half = make_moons(600, noise=0.05, random_state=0)
    assert not separated_by_planes(moons.astype(np.float32), half, 0)
    assert not separated_by_planes(x, np.zeros(len(x), dtype=np.int64), 0)
    assert not separated_by_planes(x[:6], y[:6], 0)  # too few rows to tell


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


def test_a_stored_point_keeps_its_cluster() -> None:
    points = np.array([[0.0], [0.1], [0.2], [0.3]], dtype=np.float32)
    head = NeighborVote.of(points, np.array([0, 1, 0, 0]), np.ones(4, dtype=np.float32), 2, 3).keeping()
    assert head(torch.from_numpy(points)).argmax(dim=1).tolist() == [0, 1, 0, 0]
    assert head(torch.tensor([[0.12]])).argmax() == 0


def test_points_that_are_not_certain_of_their_cluster_vote_less() -> None:
    points = np.array([[0.0], [0.1], [0.2], [0.3]], dtype=np.float32)
    labels = np.array([0, 0, 1, 1])
    sure = NeighborVote.of(points, labels, np.ones(4, dtype=np.float32), 2, 4)
    unsure = NeighborVote.of(points, labels, np.array([1, 1, 0.2, 0.2], dtype=np.float32), 2, 4)
    z = torch.tensor([[0.17]])
    assert sure(z).argmax() == 1
    assert unsure(z).argmax() == 0
    torch.testing.assert_close(unsure(z).exp().sum(), torch.tensor(1.002), atol=1e-4, rtol=0)
