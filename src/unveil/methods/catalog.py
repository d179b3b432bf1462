"""Discovery methods by name."""

from unveil.errors import UnveilError
from unveil.methods.baseline import Baseline
from unveil.methods.method import Method
from unveil.methods.ncl import NCL
from unveil.nn.model import Model
from unveil.settings import Discovery

NAMES = ("baseline", "ncl", "ncl-hng")


def make_method(model: Model, config: Discovery, *, unlabelled: int, labelled: int, seed: int) -> Method:
    """The objective of the discovery stage."""
    match config.method:
        case "baseline":
            return Baseline(model, config)
        case "ncl" | "ncl-hng":
            hng = config.method == "ncl-hng"
            return NCL(model, config, unlabelled=unlabelled, labelled=labelled, seed=seed, hng=hng)
    raise UnveilError(f"discovery.method is '{config.method}': there are {', '.join(NAMES)}")
