"""Cross-entropy on the known classes (Eq. 1, without the factor 1/C_l)."""

import torch.nn.functional as F
from torch import Tensor, nn

from unveil.data.loader import Batch
from unveil.nn.model import Model


class Supervised(nn.Module):
    """High-level features from the labels of the known classes."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def trained(self) -> list[nn.Parameter]:
        return self.model.trained()

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        z = self.model.encode(batch.views[0])
        return {"ce": F.cross_entropy(self.model.known_head(z), batch.y)}

    def after_step(self) -> None:
        """Nothing is kept between steps."""
