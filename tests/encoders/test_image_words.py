"""Words for images: a stand-in for CLIP, whose vectors say which word they are."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from unveil.encoders import image_words as module
from unveil.encoders.image_words import WORDS, image_words


class Clip(torch.nn.Module):
    """Its captions are directions of their own; its images have one more number, which the projection takes away."""

    def visual_projection(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 1:]

    def get_text_features(self, captions: torch.Tensor) -> torch.Tensor:
        return captions


@pytest.fixture
def clip(monkeypatch: pytest.MonkeyPatch) -> None:
    def tokens(captions: list[str], **options: Any) -> dict[str, torch.Tensor]:
        assert captions[0] == "a photo of a cat"
        return {"captions": torch.eye(len(captions))}

    loads = {"AutoModel": Clip(), "AutoTokenizer": tokens}
    package = SimpleNamespace(
        **{name: SimpleNamespace(from_pretrained=lambda _, made=made: made) for name, made in loads.items()}
    )
    monkeypatch.setattr(module, "package", lambda *_: package)


def test_the_words_nearest_to_each_image(clip: None) -> None:
    count = len(dict.fromkeys(["cat", *WORDS]))
    vectors = np.zeros((2, 1 + count), dtype=np.float32)
    vectors[0, 1], vectors[1, 3] = 1, 1
    vectors[:, 5] = 0.5
    found = image_words("transformers:some/clip", vectors, ["cat"])
    words = list(dict.fromkeys(["cat", *WORDS]))
    assert [line.split()[:2] for line in found] == [["cat", words[4]], [words[2], words[4]]]


def test_other_encoders_read_no_words(clip: None) -> None:
    assert image_words("efficientnet-lite0", np.ones((2, 3), dtype=np.float32)) == []
    assert image_words(None, np.ones((2, 3), dtype=np.float32)) == []
    assert image_words("transformers:some/clip", np.ones((2, 3), dtype=np.float32), ["cat"]) == []  # another space


def test_words_are_single_and_different() -> None:
    assert len(set(WORDS)) == len(WORDS) > 300
    assert all(word == word.strip().lower() for word in WORDS)
