"""Everything that can be set, as frozen dataclasses. A recipe is a TOML file with these tables and keys.

Numbers of the paper are in the recipes with their source; the defaults here are the paper's CIFAR values.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from unveil.errors import UnveilError


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which items, and which of their classes are known."""

    name: str
    """A name of `unveil data list`, or a path to a folder or an array file."""
    known: int | tuple[str, ...] | str = 0
    """The known classes: the first n, a list of names, a pattern such as `Greek/*`, or a text file with a name a line
    (`package:NAME` for a list that ships with unveil; `not FILE` for all classes but those)."""
    novel: int | tuple[str, ...] | str | None = None
    """The novel classes, in the same forms (an int: the next n, with a minus the last n). Default: all the others."""
    n_novel: int | None = None
    """The number of novel classes where nobody knows them (own data); none: estimated."""
    known_in_unlabeled: bool = False
    """Unlabeled items may be of known classes too (own data)."""
    per_class: int | None = None
    """Keep at most so many training items of each class."""
    imbalance: float = 1.0
    """How many times more items the first class has than the last, among the known classes and among the novel ones;
    the sizes between fall evenly on a logarithmic scale."""
    encoder: str | None = None
    """Replace images by their vectors from this frozen encoder (efficientnet-lite, timm:NAME, …, or pixels)."""
    encoder_size: int | None = None
    """Side in pixels at which that encoder sees them; none: as suits it for small or for large images."""
    quick: bool = False
    """Show images to the usual encoder's quicker form, at fewer pixels."""
    unit: bool = False
    """Vectors: scale each to length 1 first."""
    pca: int | None = None
    """Vectors: then keep so many principal components of the training items."""
    scaling: Literal["feature", "common", "auto", "metric"] = "feature"
    """Vectors: divide each feature by its own spread, or all by one number, which keeps their proportions; auto: first
    bring the vectors to unit length or standardize their columns, whichever suits the known classes better; metric:
    scaling and whitening in which neighbors of hidden known classes are purest."""
    vector_scaling: Literal["auto", "unit", "standard", "none"] = "auto"
    """With scaling auto or metric: bring vectors to unit length, standardize their columns, or leave them as they are;
    auto: whichever suits the known classes best."""
    mean: tuple[float, ...] = (0.5,)
    """Subtracted from each channel after scaling pixels to [0, 1]."""
    std: tuple[float, ...] = (0.25,)
    """Divides each channel."""

    def __post_init__(self) -> None:
        at_least(self, per_class=1, imbalance=1, encoder_size=32, n_novel=1, pca=1)
        expect(all(value > 0 for value in self.std), f"std is {list(self.std)}: give positive numbers")


@dataclass(frozen=True, kw_only=True)
class Augment:
    """How a view is drawn."""

    shift: int = 0
    """Translate by up to so many pixels; image files are moved by their crop instead."""
    padding: Literal["reflect", "zero"] = "reflect"
    """What a translation uncovers."""
    flip: bool = False
    """Mirror half of the views."""
    crop: tuple[float, float] | None = None
    """Random resized crop: the range of the area that is kept."""
    jitter: float = 0.0
    """Strength of brightness, contrast and saturation changes."""
    gray: float = 0.0
    """Share of the views that lose their colors."""
    size: int | None = None
    """Side of a view in pixels; needed for image files."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise, in units of the inputs' spread; image files get none."""
    dropout: float = 0.0
    """Vectors: share of the features that are set to their mean."""
    mix: float = 0.0
    """Vectors: move up to this share of the way to the nearest item of the batch."""
    first_view: Literal["random", "clean"] = "random"
    """`clean`: of two views only the second is augmented. With vectors it always is so: perturbed features make poor
    neighbors."""
    pretraining: bool = True
    """Augment the one view of the rotation and supervised stages too."""

    def __post_init__(self) -> None:
        at_least(self, shift=0, size=1, jitter=0, noise=0)
        low, high = self.crop or (1.0, 1.0)
        expect(0 < low <= high <= 1, f"crop is [{low}, {high}]: give two rising shares of the area, such as [0.5, 1.0]")
        expect(0 <= self.gray <= 1, f"gray is {self.gray}: give a share from 0 to 1")
        for name, share in (("dropout", self.dropout), ("mix", self.mix)):
            expect(0 <= share < 1, f"{name} is {share}: give a share from 0 up to 1")


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """The network. In the supervised and discovery stages only its tail trains."""

    name: Literal["resnet18", "resnet18-imagenet", "compact", "mlp", "tail", "identity"] = "resnet18"
    """tail: one trained layer, for vectors that come from an encoder already; identity: none at all."""
    width: int = 64
    """Channels of the first block (compact), or units of a layer (mlp, tail)."""
    space_to_depth: int = 2
    """compact: fold squares of so many pixels into channels before the first convolution."""
    blocks: tuple[int, ...] = (1, 1, 1, 1)
    """compact: residual blocks of each of the four groups; the last group is the tail."""
    strides: tuple[int, ...] = (1, 2, 2, 2)
    """compact: stride of each group."""
    weights: str | None = None
    """A safetensors file to start from instead of random weights, such as `unveil import-checkpoint` writes; a known
    head in it is used too."""

    def __post_init__(self) -> None:
        at_least(self, width=1, space_to_depth=1)
        for name, values in (("blocks", self.blocks), ("strides", self.strides)):
            wanted = "four whole numbers of 1 or more, one for each group"
            expect(len(values) == 4 and min(values) >= 1, f"{name} is {list(values)}: give {wanted}")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What every training stage has."""

    table: ClassVar[str] = "stage"
    """Where its settings stand in a recipe."""
    epochs: int = 0
    """0 leaves the stage out."""
    passes: int = 1
    """How often an epoch goes through the items: more for few items, so that an epoch is worth its evaluation."""
    steps: int | None = None
    """About how many steps the stage has, at least one pass in an epoch: the passes follow from it. None: as `passes`
    says."""
    batch: int = 128
    optimizer: Literal["sgd", "adam"] = "sgd"
    """adam has no use for `momentum` and `nesterov`."""
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 1e-4
    schedule: Literal["step", "cosine", "constant"] = "step"
    milestones: tuple[int, ...] = ()
    """Epochs at whose start the learning rate is multiplied by `decay` (schedule `step`)."""
    decay: float = 0.1
    warmup: float = 0.0
    """Epochs over which the learning rate rises linearly from 0."""
    evaluate_every: int = 1
    """Epochs between evaluations; the last epoch is always evaluated."""

    def __post_init__(self) -> None:
        at_least(self, epochs=0, passes=1, steps=1, batch=1, weight_decay=0, warmup=0, evaluate_every=1)
        expect(0 < self.lr < float("inf"), f"lr is {self.lr}: give a positive learning rate")
        expect(0 <= self.momentum < 1, f"momentum is {self.momentum}: give a number from 0 to below 1")
        expect(self.momentum > 0 or not self.nesterov, "nesterov needs momentum: give one above 0, or nesterov=false")


@dataclass(frozen=True, kw_only=True)
class Rotation(Stage):
    """Self-supervision: which way up is the image? On all training data, without labels."""

    table: ClassVar[str] = "rotation"
    seed: int = 0
    """Its own seed, so that discovery seeds share one pre-training."""
    rotations: Literal["all", "one", "upright"] = "all"
    """All four rotations of each image of a batch, or one drawn for each; upright: images stay as they are, and the
    network learns from two views of each instead (`views_weight`)."""
    known_weight: float = 0.0
    """Weight of a cross-entropy on the known classes trained at the same time (0: pure self-supervision)."""
    views_weight: float = 0.0
    """Weight of a contrastive loss, on a projection of the features, that tells two views of one image from views of
    other images (0: rotations alone, as in the paper)."""
    views_temperature: float = 0.2
    """Divides the cosines of that loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, views_weight=0)
        positive(self, "views_temperature")
        expect(
            self.rotations != "all" or not self.views_weight,
            "views_weight compares images with one turn each: set rotations=one or rotations=upright",
        )
        expect(
            self.rotations != "upright" or self.views_weight > 0,
            "rotations is upright, so that nothing is learned from unlabeled images: set views_weight=1",
        )


@dataclass(frozen=True, kw_only=True)
class Supervised(Stage):
    """Cross-entropy on the known classes; trains the tail and the known head."""

    table: ClassVar[str] = "supervised"
    seed: int = 0
    train: Literal["tail", "all"] = "tail"
    """`all` also trains the trunk, where no rotation stage came before."""
    closed_form: bool = False
    """Compute the known head instead of training it, by class means or by a vote of neighbors, whichever recognizes
    known items better; for an encoder that does not train."""


@dataclass(frozen=True, kw_only=True)
class Discovery(Stage):
    """The stage that finds the novel classes. What its method can be told is in the table `[method]`."""

    table: ClassVar[str] = "discovery"
    method: str = "ncl-hng"
    """A name of `unveil.methods.catalog`."""
    labeled_per_batch: int | None = None
    """Labeled samples in each batch; None mixes both kinds at their natural ratio."""
    unlabeled_batch: int | None = None
    """Methods that use no labeled items (kcl, mcl, dtc): samples in a batch, and an epoch is one pass over the
    unlabeled items. None: the same unlabeled items in the same number of batches as other methods get."""
    novel_head: Literal["random", "kmeans", "inputs", "neighbors", "weights"] = "random"
    """How the novel head starts: at random (paper), from k-means clusters of the features, or of what goes into the
    part that trains, which is better where that part knows little yet; neighbors: from the clusters that the method
    neighbor-consensus finds in the features, for classes that are no round clouds; weights: as in the file
    `encoder.weights`."""
    trunk_batchnorm: Literal["fixed", "training"] = "fixed"
    """BatchNorm of the frozen trunk. fixed: it keeps the statistics of pre-training. training: it normalizes by each
    batch, and its running statistics move (published code)."""
    guard: bool = False
    """Act where clusters are about to die or all features to become the same: start the novel head again from k-means,
    or tail and head at half the learning rate. The paper does not."""

    def __post_init__(self) -> None:
        super().__post_init__()
        each, batch = self.labeled_per_batch, self.batch
        message = f"labeled_per_batch is {each} in batches of {batch}: give 1 to {batch - 1}"
        expect(each is None or 1 <= each < batch, message)
        at_least(self, unlabeled_batch=2)


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """What a method can be told. Each method has a subclass of its own beside it, as `METHOD.Settings`."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how it runs. None of this is part of a stored stage's identity, but a precision other than auto."""

    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 where the processor computes in it, else float32."""
    workers: int = 2
    """Processes that decode image files."""
    checkpoint_seconds: float = 120
    """At most so many seconds of work are lost to a crash."""
    sync_batchnorm: bool = False
    """Several GPUs: BatchNorm of the tail takes the statistics of the whole batch, not of each GPU's part."""
    cache_views: int = 0
    """Views of each image whose trunk output is kept on disk for the discovery stage; 0: compute them fresh."""
    cache_gb: float | None = None
    """The most that these may take; what does not fit is kept at a byte a value, then with fewer views."""

    def __post_init__(self) -> None:
        at_least(self, workers=0, cache_views=0)
        positive(self, "cache_gb")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A resolved recipe."""

    name: str
    data: Data
    augment: Augment = field(default_factory=Augment)
    encoder: Encoder = field(default_factory=Encoder)
    rotation: Rotation = field(default_factory=Rotation)
    supervised: Supervised = field(default_factory=Supervised)
    discovery: Discovery = field(default_factory=Discovery)
    method: MethodSettings = field(default_factory=MethodSettings)
    """Of the method that `discovery.method` names."""
    machine: Machine = field(default_factory=Machine)
    compare: bool = False
    """Own data: compare k-means and variants of the method by rehearsals, and take the best one."""
    rehearsals: int = 0
    """Own data: how often known classes are hidden and discovered again, to compare and to forecast the accuracy."""
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(self, rehearsals=0)
        expect(0 <= self.seed < 2**32, f"seed is {self.seed}: give a whole number from 0 to {2**32 - 1}")


def expect(condition: bool, message: str) -> None:
    """Raise the message as an error for people unless the condition holds."""
    if not condition:
        raise UnveilError(message)


def at_least(settings: object, **bounds: float) -> None:
    """Raise an error for a setting below its bound; None has none."""
    for name, least in bounds.items():
        value = getattr(settings, name)
        expect(value is None or value >= least, f"{name} is {value}: give {least} or more")


def positive(settings: object, *names: str) -> None:
    """Raise an error for a setting that is 0 or less; None is allowed."""
    for name in names:
        value = getattr(settings, name)
        expect(value is None or value > 0, f"{name} is {value}: give a positive number")
