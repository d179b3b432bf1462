"""Settings of neighborhood contrastive learning and of hard negative generation, with the values of Sec. 4.1."""

from dataclasses import dataclass
from typing import Any, Literal

from unveil.methods.baseline import BaselineSettings
from unveil.settings import at_least, expect, positive


@dataclass(frozen=True, kw_only=True)
class NCLSettings(BaselineSettings):
    """The baseline loss ℓ_base and the contrastive losses with their queues. Symbols are those of the paper."""

    ncl_weight: float = 1.0
    """Weight of the neighborhood contrastive loss."""
    scl_weight: float = 1.0
    """Weight of the supervised contrastive loss."""
    queue: int = 2000
    """|M|: length of the unlabeled queue."""
    queue_labeled: int | None = None
    """Length of the labeled queue; None: |M|."""
    queue_start: Literal["empty", "random"] = "empty"
    """empty: slots that no feature has reached yet do not exist. random: they hold random vectors of about unit length,
    which count as negatives (published code)."""
    k1: int | None = None
    """Pseudo-positives of a query (0: the second view alone); None: k1_fraction · |M| / C_u."""
    k1_fraction: float = 0.5
    """Pseudo-positives as a share of the queue entries of a class."""
    alpha: float = 0.2
    """α: weight of the second view among the positives."""
    temperature: float = 0.05
    """τ: divides the cosines."""
    view_among_neighbors: bool = False
    """The second view competes for a place among the k1 neighbors, as in the published code."""
    ncl_start: int = 1
    """First epoch (from 0) with the neighborhood contrastive loss on unlabeled samples."""
    scl_start: int = 1
    """First epoch with the supervised contrastive loss on labeled samples."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(0 <= self.alpha <= 1, f"alpha is {self.alpha}: give a number from 0 to 1")
        positive(self, "temperature")
        at_least(self, queue=1, queue_labeled=1, k1=0)

    def neighbors(self, stored: int, n_novel: int) -> int:
        """k1 = |M| / C_u / 2 unless the recipe says otherwise (Sec. 4.1)."""
        return self.k1 if self.k1 is not None else max(1, int(self.k1_fraction * stored / n_novel))


@dataclass(frozen=True, kw_only=True)
class HNGSettings(NCLSettings):
    """The settings of NCL and of hard negative generation."""

    hng_start: int = 3
    """First epoch with hard negatives."""
    k_easy: int = 400
    """k2: number of easiest negatives that are mixed."""
    k_hard: int = 400
    """Number of hardest mixtures that are kept."""
    rounds: int = 5
    """N: how often each easy negative is mixed."""
    mixes: tuple[float, ...] = (1 / 3, 2 / 3)
    """μ: shares of the unlabeled feature in a mixture."""
    partners: Literal["any", "distinct"] = "any"
    """How the labeled features of a round are drawn. any: each from the whole queue. distinct: none twice in a round
    (published code)."""
    variant: Literal["", "v1", "v2", "v3", "v4", "v5", "v6"] = ""
    """A variant of hard negative generation that the paper compares with; "": the method of the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, k_easy=1, k_hard=1, rounds=1)
        between = len(self.mixes) > 0 and all(0 < mu < 1 for mu in self.mixes)
        expect(between, f"mixes is {list(self.mixes)}: give numbers between 0 and 1")

    def easy_negatives(self, stored: int, k1: int) -> int:
        """k2, reduced where it would include pseudo-positives."""
        return min(self.k_easy, stored - k1)

    def mixing(self, k_easy: int) -> dict[str, Any]:
        """What `losses.mixing` is told."""
        distinct = self.partners == "distinct"
        return {
            "k_easy": k_easy,
            "k_hard": self.k_hard,
            "rounds": self.rounds,
            "mixes": self.mixes,
            "distinct": distinct,
        }
