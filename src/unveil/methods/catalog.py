"""Trained methods by name; `algorithm` finds clusterers too. Add a new method here."""

from unveil.clustering.catalog import CLUSTERERS
from unveil.clustering.clusterer import Clusterer
from unveil.errors import UnveilError, suggest
from unveil.methods.baseline import Baseline
from unveil.methods.dtc import DTC
from unveil.methods.method import Context, Method
from unveil.methods.ncl import NCL, NCLWithHNG
from unveil.methods.ranking import Ranking, RankingPlus
from unveil.methods.simgcd import SimGCD
from unveil.methods.similarity import KCL, MCL
from unveil.methods.uno import UNO
from unveil.models.model import Model
from unveil.settings import MethodSettings

METHODS: dict[str, type[Method]] = {
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
}


def names() -> list[str]:
    """What `discovery.method` may be: clusterers, then trained methods."""
    return [*CLUSTERERS, *METHODS]


def algorithm(name: str) -> type[Method] | type[Clusterer]:
    """The method or clusterer of this name, or an error that suggests the most similar name."""
    if name in CLUSTERERS:
        return CLUSTERERS[name]
    if name not in METHODS:
        raise UnveilError(f"discovery.method is '{name}'{suggest(name, names())}")
    return METHODS[name]


def method_class(name: str) -> type[Method] | None:
    """The trained method of this name; None for a clusterer."""
    found = algorithm(name)
    return found if issubclass(found, Method) else None


def make_clusterer(name: str, settings: MethodSettings) -> Clusterer | None:
    """The clusterer of this name; None for a trained method."""
    found = algorithm(name)
    return found(settings) if issubclass(found, Clusterer) else None


def method_title(name: str) -> str:
    """The method of this name as a row of a table of scores."""
    return algorithm(name).title or name


def settings_class(name: str) -> type[MethodSettings]:
    """The settings dataclass of the method or clusterer of this name."""
    return algorithm(name).Settings


def make_method(name: str, model: Model, context: Context) -> Method:
    """The objective of the discovery stage."""
    return METHODS[name](model, context)  # type: ignore[call-arg]
