"""Discovery methods by name. Add a new method here."""

from unveil.errors import UnveilError, suggest
from unveil.methods.baseline import Baseline
from unveil.methods.dtc import DTC
from unveil.methods.kmeans import KMeans
from unveil.methods.method import Context, Method
from unveil.methods.ncl import NCL, NCLWithHNG
from unveil.methods.neighbor_consensus import NeighborConsensus
from unveil.methods.ranking import Ranking, RankingPlus
from unveil.methods.simgcd import SimGCD
from unveil.methods.similarity import KCL, MCL
from unveil.methods.uno import UNO
from unveil.models.model import Model
from unveil.settings import MethodSettings

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
    "uno": UNO,
    "simgcd": SimGCD,
    "neighbor-consensus": NeighborConsensus,
}


def method_class(name: str) -> type[Method]:
    """The method of this name, or an error that suggests the most similar name."""
    if name not in METHODS:
        raise UnveilError(f"discovery.method is '{name}'{suggest(name, METHODS)}")
    return METHODS[name]


def method_title(name: str) -> str:
    """The method of this name as a row of a table of scores."""
    return method_class(name).title or name


def settings_class(name: str) -> type[MethodSettings]:
    """The settings dataclass of the method of this name."""
    return method_class(name).Settings


def make_method(name: str, model: Model, context: Context) -> Method:
    """The objective of the discovery stage."""
    return method_class(name)(model, context)  # type: ignore[call-arg]
