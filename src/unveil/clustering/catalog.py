"""Clusterers by name. Add a new one here."""

from unveil.clustering.clusterer import Clusterer
from unveil.clustering.kmeans import KMeansClusterer
from unveil.clustering.neighbor_consensus import NeighborConsensus

CLUSTERERS: dict[str, type[Clusterer]] = {"kmeans": KMeansClusterer, "neighbor-consensus": NeighborConsensus}
