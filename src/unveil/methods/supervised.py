"""Cross-entropy on the known classes (Eq. 1, without the factor 1/C_l)."""

import torch.nn.functional as F
from torch import Tensor

from unveil.data.loader import Batch
from unveil.methods.method import Method


class Supervised(Method):
    """High-level features from the labels of the known classes."""

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        z = batch.whole(self.model.encode(batch.views[0]))
        return {"ce": F.cross_entropy(self.model.known_head(z), batch.y)}
