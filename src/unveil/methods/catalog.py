"""Discovery methods by name."""

from unveil.errors import UnveilError
from unveil.methods.baseline import Baseline
from unveil.methods.dtc import DTC
from unveil.methods.kmeans import KMeans
from unveil.methods.method import Context, Method
from unveil.methods.ncl import NCL, NCLWithHNG
from unveil.methods.ranking import Ranking, RankingPlus
from unveil.methods.similarity import KCL, MCL
from unveil.models.model import Model

METHODS: dict[str, type[Method]] = {
    "kmeans": KMeans,
    "kcl": KCL,
    "mcl": MCL,
    "dtc": DTC,
    "rs": Ranking,
    "rs+": RankingPlus,
    "baseline": Baseline,
    "ncl": NCL,
    "ncl-hng": NCLWithHNG,
}
NAMES = tuple(METHODS)
BY_SIMILARITY = ("kcl", "mcl")
"""Those that need the similarity stage."""


def make_method(model: Model, context: Context) -> Method:
    """The objective of the discovery stage."""
    name = context.config.method
    if name not in METHODS:
        raise UnveilError(f"discovery.method is '{name}': there are {', '.join(NAMES)}")
    return METHODS[name](model, context)  # type: ignore[call-arg]
