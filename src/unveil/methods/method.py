"""What every method is to the training loop, to evaluation and to the fit on own data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil.data.loader import Batch, Rows
from unveil.data.task import UNLABELLED
from unveil.models.model import Model
from unveil.settings import MethodSettings

S = TypeVar("S", bound=MethodSettings)


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a discovery method may know beside its batches."""

    settings: MethodSettings = field(default_factory=MethodSettings)
    """An instance of the method's `Settings`."""
    seed: int
    labels: NDArray[np.int64]
    """(n,): the known class of each row, or -1."""
    features: Callable[[Rows], Tensor]
    """Clean features of some rows by the model as it is now; leaves it in evaluation mode."""
    similarity: nn.Module | None = None
    """Tells pairs of one class from pairs of two, for the methods with `needs_similarity`."""

    @property
    def labelled(self) -> Rows:
        return np.flatnonzero(self.labels != UNLABELLED)

    @property
    def unlabelled(self) -> Rows:
        return np.flatnonzero(self.labels == UNLABELLED)

    def settings_as(self, kind: type[S]) -> S:
        """The settings, which must be of this kind."""
        if not isinstance(self.settings, kind):
            raise TypeError(f"settings are {type(self.settings).__name__}, expected {kind.__name__}")
        return self.settings


@dataclass(frozen=True)
class Variation:
    """Other settings of a method that are worth a rehearsal on own data."""

    name: str
    settings: Mapping[str, Any]
    """Keys of the method's `Settings`."""
    description: str
    """For people, after "training by METHOD"."""


class Method(nn.Module):
    """Losses of a batch, and moments and questions at which a method may have an answer of its own.

    A method that needs more heads than `known_head` and `novel_head` gives them to the model in its constructor, as
    `model.joint_head` or in `model.further_heads`: there they are trained, saved and loaded with the rest.
    """

    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    """What it can be told: the table `[method]` of a recipe."""
    trains: ClassVar[bool] = True
    """False: it has no losses, and all happens in `after_epoch`, once."""
    unlabelled_only: ClassVar[bool] = False
    """Its batches hold no labelled rows."""
    needs_similarity: ClassVar[bool] = False
    """A network that tells pairs of one class from pairs of two is trained on the labelled items first."""
    starts_from_clusters: ClassVar[bool] = True
    """It begins with the novel head as `discovery.novel_head` has set it."""
    description: ClassVar[str] = ""
    """For people, where "training by NAME" would not describe it."""
    is_kmeans: ClassVar[bool] = False
    """It is k-means itself, with which a fit on own data compares the method."""
    variations: ClassVar[tuple[Variation, ...]] = ()
    """What a fit on own data compares with the usual settings, by rehearsals."""

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

    def positive_pairs(self, z_u: Tensor, z_l: Tensor, y: Tensor) -> Tensor | None:
        """(B, B) bool: the unlabelled rows that it takes to share a class; None where it has no such rule.

        z_u: (B, D) unlabelled features; z_l, y: some labelled ones. Diagnostics compare the pairs with the truth.
        """
        return None

    def neighbors(self, stored: int) -> int:
        """How many of so many stored features are neighbors of a query. Diagnostics measure how pure they are."""
        return max(1, stored // self.model.novel_head.out_features // 2)

    def advice_on_pairs(self) -> list[str]:
        """What to try where `positive_pairs` are next to none."""
        return []

    @classmethod
    def for_unbalanced(cls, settings: MethodSettings, share: float) -> dict[str, float]:
        """Settings to change where the smallest cluster has this share of an equal part of the items."""
        return {}
