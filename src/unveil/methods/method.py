"""What every method is to the training loop."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil.data.loader import Batch, Rows
from unveil.data.task import UNLABELLED
from unveil.models.model import Model
from unveil.settings import Discovery


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a discovery method may know beside its batches."""

    config: Discovery
    seed: int
    labels: NDArray[np.int64]
    """(n,): the known class of each row, or -1."""
    features: Callable[[Rows], Tensor]
    """Clean features of some rows by the model as it is now; leaves it in evaluation mode."""
    similarity: nn.Module | None = None
    """Tells pairs of one class from pairs of two, for the methods that ask for it."""

    @property
    def labelled(self) -> Rows:
        return np.flatnonzero(self.labels != UNLABELLED)

    @property
    def unlabelled(self) -> Rows:
        return np.flatnonzero(self.labels == UNLABELLED)


class Method(nn.Module):
    """Losses of a batch, and four moments at which a method may do something of its own."""

    unlabelled_only = False
    """Its batches hold no labelled rows."""
    trains = True
    """False: it has no losses, and all happens in `after_epoch`, once."""

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
