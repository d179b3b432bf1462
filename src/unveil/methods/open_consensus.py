"""Neighbor consensus where unlabelled rows may be of known classes too.

Rows that were recognised as known keep their class, and consensus clusters the others. One vote of neighbors over
labelled and unlabelled rows then decides between all classes, known and novel.
"""

import numpy as np
import torch

from unveil import rng
from unveil.data.items import Rows
from unveil.data.task import UNLABELLED
from unveil.methods.neighbor_consensus import NeighborConsensus, clusters_and_certainty
from unveil.models.heads import NeighborVote


class OpenConsensus(NeighborConsensus):
    """Neighbor consensus, of the rows that are left over where some were recognised as known."""

    takes_recognised = True

    @torch.no_grad()
    def after_epoch(self) -> None:
        """Find the clusters, and let them vote."""
        context, config, labels = self.context, self.config, self.context.recognised
        if labels is None:
            super().after_epoch()
            return
        every, known = self.model.novel_head.out_features, self.model.known_head.out_features
        draw = rng.numpy(context.seed, "rows that vote")

        def sample(rows: Rows) -> Rows:
            return rows if len(rows) <= config.rows else np.sort(draw.permutation(rows)[: config.rows])

        given, left = sample(np.flatnonzero(labels != UNLABELLED)), sample(np.flatnonzero(labels == UNLABELLED))
        z_given, z = (context.features(rows).cpu().numpy() for rows in (given, left))
        clusters, certainty = np.zeros(0, dtype=np.int64), np.ones(0, dtype=np.float32)
        if len(left):
            clusters, certainty = clusters_and_certainty(z, z_given, labels[given], every - known, config, context.seed)
        points, voted = np.concatenate([z_given, z]), np.concatenate([labels[given], known + clusters])
        certainty = np.concatenate([np.ones(len(given), dtype=np.float32), certainty])
        head = NeighborVote.of(points, voted, certainty, every, config.vote)
        self.model.novel_head = head.to(self.model.device)
