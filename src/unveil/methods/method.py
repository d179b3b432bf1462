"""What every method is to the training loop."""

from torch import Tensor, nn

from unveil.data.loader import Batch
from unveil.nn.model import Model


class Method(nn.Module):
    """Losses of a batch, and four moments at which a method may do something of its own."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def trained(self) -> list[nn.Parameter]:
        """The parameters that the stage changes."""
        return self.model.trained()

    def before_epoch(self, epoch: int) -> None:
        """For instance: new targets from a pass over the data."""

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """The weighted terms of the loss; their sum is minimised."""
        raise NotImplementedError

    def after_step(self) -> None:
        """The weights have been updated; for instance: features enter the queues."""

    def after_epoch(self) -> None:
        """Leave the model's novel head such that its argmax is the method's prediction."""
