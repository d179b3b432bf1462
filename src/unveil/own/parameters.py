"""What people choose about their own data. Each option stands here once: its type and default, what it accepts, the
setting of a recipe that it stands for, and its help.

The command line takes its options from these classes (`cli/options.py`), the estimator its checks and documentation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from unveil.encoders.registry import help_text
from unveil.own.accepts import COLUMN, DIRECTORY, FLAG, Accepts, Option, matching, named, options_of, plain, whole

if TYPE_CHECKING:
    from unveil.data.sheets import Columns


def _methods() -> list[str]:
    from unveil.methods.catalog import names

    return ["auto", *names()]


@dataclass(frozen=True, kw_only=True)
class DiscoveryOptions:
    """What is discovered and how: `unveil discover` and the estimator."""

    n_novel: Annotated[
        int | str,
        Option(
            accepts=whole(1, or_word="auto"),
            help="The number of novel classes. auto: it is estimated.",
            cli="With --continue, auto is the number of clusters without a name.",
            python="The estimate is kept in `classes_estimate_`.",
            setting="data.n_novel",
            names=("--n-novel", "--classes"),
        ),
    ] = "auto"
    method: Annotated[
        str,
        Option(
            accepts=named("the name of a method, or 'auto'", among=_methods),
            help="neighbor-consensus (the default for vectors), ncl-hng, ncl, baseline, dtc, rs, uno, simgcd, kmeans, "
            "… auto: that of the recipe.",
            setting="discovery.method",
        ),
    ] = "auto"
    scaling: Annotated[
        Literal["auto", "unit", "standard", "none"],
        Option(
            accepts=matching("auto|unit|standard|none", "'auto', 'unit', 'standard' or 'none'"),
            help="How vectors are scaled: to unit length, each column to the same spread, or not at all. auto: as "
            "suits the known classes best.",
            setting="data.vector_scaling",
        ),
    ] = "auto"
    recipe: Annotated[
        str | None,
        Option(
            accepts=named("the name of a recipe, the path of a TOML file"),
            help="vectors (the default: vectors, tables, and images by a frozen encoder), images (train on augmented "
            "images from nothing: rotation, known classes, discovery), or a TOML file.",
        ),
    ] = None
    known_in_unlabeled: Annotated[
        bool,
        Option(
            accepts=FLAG,
            help="The new items may be of known classes too.",
            setting="data.known_in_unlabeled",
            names=("--known-in-unlabeled", "--known-in-unlabelled", "--may-contain-known"),
        ),
    ] = False
    rehearsals: Annotated[
        int | None,
        Option(
            accepts=whole(0),
            help="How often known classes are hidden and discovered again, to choose the method's settings and to "
            "forecast the accuracy. Default: as the recipe says, 3 for vectors.",
            setting="rehearsals",
        ),
    ] = None
    steps: Annotated[
        int | None,
        Option(
            accepts=whole(1),
            help="Training steps of the discovery stage. Default: as the recipe says, 1,000 where a layer is trained "
            "on vectors.",
            setting="discovery.steps",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class VectorOptions:
    """How items become vectors: every command for own data, and the estimator."""

    encoder: Annotated[
        str,
        Option(
            accepts=named("the name of an encoder, or 'auto'"),
            help=help_text(),
        ),
    ] = "auto"
    quick: Annotated[
        bool,
        Option(
            accepts=FLAG,
            help="Show images to the smaller one of the usual encoders, at fewer pixels: several times as fast, and "
            "less accurate.",
            setting="data.quick",
        ),
    ] = False
    text: Annotated[
        str | None,
        Option(
            accepts=COLUMN,
            help="The column of a table that holds texts.",
            cli="It is used alone, unless --columns names others.",
            python="The other columns are used beside it.",
        ),
    ] = None
    device: Annotated[
        str,
        Option(
            accepts=matching(r"auto|(cpu|cuda|mps)(:\d+)?", "'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'"),
            help="Device to compute on.",
            cli="auto, cpu, cuda, cuda:1, mps.",
            setting="machine.device",
        ),
    ] = "auto"
    store: Annotated[
        Path | None,
        Option(
            accepts=DIRECTORY,
            help="Directory of embeddings and finished stages, for reuse.",
            cli="Default: UNVEIL_STORE, or ~/.cache/unveil/stages.",
            python="None: nothing is stored.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FileOptions(VectorOptions):
    """How files are read and become vectors: `unveil discover`, `classes` and `forecast`."""

    label: Annotated[
        str | None, Option(accepts=COLUMN, help="The column of a table that holds the labels. Default: label or class.")
    ] = None
    id_: Annotated[
        str | None, Option(accepts=COLUMN, help="The column of a table that holds the ids. Default: id.")
    ] = None
    columns: Annotated[
        str | None,
        Option(
            accepts=COLUMN,
            help="The columns of a table to use, with commas between them. Default: all that look useful.",
        ),
    ] = None
    seed: Annotated[int, Option(accepts=whole(0), help="Equal seeds give equal results.", setting="seed")] = 0

    def named_columns(self) -> "Columns":
        """The columns that were named."""
        from unveil.data.sheets import Columns

        used = None if self.columns is None else tuple(name.strip() for name in self.columns.split(",") if name.strip())
        return Columns(label=self.label, id=self.id_, text=self.text, used=used)

    def stages(self) -> Path:
        """Where embeddings and finished stages are stored."""
        from unveil.storage import default_store

        return self.store or default_store()


@dataclass(frozen=True, kw_only=True)
class EstimatorOptions(VectorOptions, DiscoveryOptions):
    """The parameters of `NovelClassDiscovery`."""

    random_state: Annotated[
        Any,
        Option(
            accepts=Accepts(
                lambda value: value >= 0 if type(plain(value)) is int else hasattr(value, "randint"),
                "a whole number of 0 or more, a numpy RandomState",
            ),
            help="Equal numbers give equal results.",
        ),
    ] = None
    verbose: Annotated[
        bool | int,
        Option(
            accepts=Accepts(lambda value: type(plain(value)) in (bool, int) and value >= 0, FLAG.words),
            help="Print what is being done; otherwise the logger `unveil` is told.",
        ),
    ] = False


OPTIONS: Mapping[str, Option] = {**options_of(EstimatorOptions), **options_of(FileOptions)}


def changes(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were chosen, by `table.key` of a recipe. None, False and auto leave them to the recipe."""
    chosen = {name: plain(value) for name, value in values.items() if name in OPTIONS and value is not None}
    settings = {
        OPTIONS[name].setting: value for name, value in chosen.items() if value is not False and value != "auto"
    }
    return {key: value for key, value in settings.items() if key is not None}
