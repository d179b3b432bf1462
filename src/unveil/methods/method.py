"""The interface of methods, as the training loop, evaluation and the fit on own data use it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from unveil.data.loader import Batch, Rows
from unveil.data.task import UNLABELED
from unveil.models.model import Model
from unveil.settings import MethodSettings

S = TypeVar("S", bound=MethodSettings)


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a discovery method may use besides its batches."""

    settings: MethodSettings = field(default_factory=MethodSettings)  # an instance of the method's `Settings`
    seed: int
    labels: NDArray[np.int64]  # (n,): the known class of each row, or -1
    features: Callable[[Rows], Tensor]
    """Features of rows, without augmentation, by the current model, which is left in evaluation mode."""
    similarity: nn.Module | None = None
    """A network that says whether two items share a class, for methods with `needs_similarity`."""

    @property
    def labeled(self) -> Rows:
        return np.flatnonzero(self.labels != UNLABELED)

    @property
    def unlabeled(self) -> Rows:
        return np.flatnonzero(self.labels == UNLABELED)

    def settings_as(self, kind: type[S]) -> S:
        """The settings, checked to be of this class."""
        if not isinstance(self.settings, kind):
            raise TypeError(f"settings are {type(self.settings).__name__}, expected {kind.__name__}")
        return self.settings


@dataclass(frozen=True)
class Variation:
    """Other settings of a method that are worth a rehearsal on own data."""

    name: str
    settings: Mapping[str, Any]  # keys of the method's `Settings`
    description: str  # text that follows "training by METHOD" in messages


class Method(nn.Module):
    """A discovery method: the losses of a batch, and hooks that a method may override.

    A method that needs more heads than `known_head` and `novel_head` gives them to the model in its constructor, as
    `model.joint_head` or in `model.further_heads`: there they are trained, saved and loaded with the model.
    """

    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    """Its settings dataclass: the table `[method]` of a recipe."""
    unlabeled_only: ClassVar[bool] = False
    """Its batches hold no labeled rows."""
    needs_similarity: ClassVar[bool] = False
    """A similarity network is trained on the labeled items first and passed in the context."""
    starts_from_clusters: ClassVar[bool] = True
    """The method starts from the novel head that `discovery.novel_head` sets up."""
    title: ClassVar[str] = ""
    """Its row in a table of scores, where its name would not say enough."""
    variations: ClassVar[tuple[Variation, ...]] = ()
    """Other settings that rehearsals of a fit on own data compare with the given ones."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def trained(self) -> list[nn.Parameter]:
        """The parameters that the stage trains."""
        return self.model.trained()

    def before_epoch(self, epoch: int) -> None:
        """Called before each epoch, for example to compute new targets."""

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """The weighted terms of the loss; their sum is minimized."""
        raise NotImplementedError

    def after_step(self) -> None:
        """Called after the weights are updated, for example to push features to queues."""

    def after_epoch(self) -> None:
        """Called after each epoch: the argmax of the model's novel head must then be the method's prediction."""

    def positive_pairs(self, z_u: Tensor, z_l: Tensor, y: Tensor, h_u: Callable[[], Tensor]) -> Tensor | None:
        """(B, B) bool: the pairs of unlabeled rows that the method assumes to share a class; None without such a rule.

        z_u: (B, D) unlabeled features; z_l, y: some labeled ones; h_u: computes what the trunk gives for the
        unlabeled rows. Diagnostics compare the pairs with the truth.
        """
        return None

    def neighbors(self, stored: int) -> int:
        """How many of `stored` features count as neighbors of a query. Diagnostics measure their purity."""
        return max(1, stored // self.model.novel_head.out_features // 2)

    def advice_on_pairs(self) -> list[str]:
        """Settings to try where `positive_pairs` finds almost none."""
        return []

    @classmethod
    def for_unbalanced(cls, settings: MethodSettings, share: float) -> dict[str, float]:
        """Settings to change for unbalanced clusters. `share`: the smallest size relative to equal sizes."""
        return {}
