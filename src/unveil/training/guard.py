"""A guard against collapse (`discovery.guard`): it acts where clusters are about to die or features to be the same.

The paper has no such thing, and its recipes leave it off. It looks at the unlabeled items after every epoch but the
last. What it does depends on the weights, the seed and the metrics so far alone, so that a resumed run does the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans
from torch import Tensor, nn

from unveil import ranks
from unveil.models.heads import start_from_clusters
from unveil.models.model import Model

RARE = 0.05  # a cluster is about to die when it has less than this part of an equal share of the items
ALIKE = 0.98  # features are about to be one point when the mean cosine of two items is above this
MOST = 3  # how often the guard acts in one training: what goes wrong again and again is no accident
CLUSTERS, FEATURES = "clusters", "features"
MESSAGES = {
    CLUSTERS: "clusters were about to die: the novel head started again from k-means of the features",
    FEATURES: "features were about to become the same: tail and novel head started again, at half the learning rate",
}


class Guard:
    """Watches the training of a model with a linear novel head."""

    def __init__(self, model: Model, features: Callable[[], Tensor], seed: int, tell: Callable[[str], None]) -> None:
        """`features`: those of the unlabeled items, by the current model; `tell` prints a warning."""
        self.model, self.features, self.seed, self.tell = model, features, seed, tell
        self.start = {name: value.clone() for name, value in model.encoder.tail.state_dict().items()}
        self.alike_from_the_start = self._alike(features())

    def act(self, history: list[dict[str, Any]], optimizer: torch.optim.Optimizer) -> dict[str, str]:
        """Look at the model, and set it right where that is needed; returns what was wrong, for the metrics."""
        acted = [metrics["guard"] for metrics in history if "guard" in metrics]
        head = self.model.novel_head
        if len(acted) >= MOST or not isinstance(head, nn.Linear):
            return {}
        z = self.features()
        with torch.no_grad():
            sizes = torch.bincount(head(z).argmax(dim=1), minlength=head.out_features)
        alike = self._alike(z) and not self.alike_from_the_start
        if not alike and int(sizes.min()) >= RARE * len(z) / head.out_features:
            return {}
        problem = FEATURES if alike else CLUSTERS
        changed = list(head.parameters())
        if problem == FEATURES:
            self.model.encoder.tail.load_state_dict(self.start)
            changed += self.model.encoder.tail.parameters()
            z = self.features()
        points = F.normalize(z, dim=1).cpu().numpy()
        algorithm = KMeans(min(head.out_features, len(points)), n_init=10, random_state=self.seed)
        labels = ranks.current().from_first(lambda: algorithm.fit(points).labels_.astype(np.int64))
        start_from_clusters(head, z, torch.from_numpy(labels).to(z.device))
        for parameter in changed:  # their momentum is that of weights that are gone
            for value in optimizer.state[parameter].values():
                if isinstance(value, Tensor):
                    value.zero_()
        self.tell(MESSAGES[problem])
        return {"guard": problem}

    @staticmethod
    def rate(history: list[dict[str, Any]]) -> float:
        """The factor of the learning rate after what was done so far."""
        return float(0.5 ** sum(metrics.get("guard") == FEATURES for metrics in history))

    @staticmethod
    def _alike(z: Tensor) -> bool:
        mean = F.normalize(z, dim=1).mean(dim=0)
        return float(mean.square().sum()) > ALIKE  # the mean cosine of all pairs
