"""Sentences to vectors, by models that lie on this machine."""

from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from unveil.data.items import Items
from unveil.encoders.stored import Embedding
from unveil.encoders.text import text_encoder
from unveil.errors import UnveilError

CPU = torch.device("cpu")
SENTENCES = ["my card was stolen", "somebody took my credit card", "what is the weather like tomorrow"]


def test_minilm_knows_what_sentences_mean(tmp_path: Path) -> None:
    embedding = Embedding(
        name="minilm", size=0, device=CPU, precision=torch.float32, folder=tmp_path, console=Console(quiet=True)
    )
    x = embedding(Items.of_texts(SENTENCES))
    assert x.shape == (3, 384)
    assert x[0] @ x[1] > 2 * abs(x[0] @ x[2])
    stored = list(tmp_path.rglob("embeddings.npy"))
    assert len(stored) == 1
    np.testing.assert_array_equal(embedding(Items.of_texts(SENTENCES)), x)
    embedding(Items.of_texts(SENTENCES[:2]))
    assert len(list(tmp_path.rglob("embeddings.npy"))) == 2  # other texts are stored beside them


def test_a_model_of_transformers_in_a_folder(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "my", "card", "was", "stolen"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    BertModel(config).save_pretrained(tmp_path)
    encode = text_encoder(f"transformers:{tmp_path}", CPU)
    x = encode(["my card", "my card was stolen"])
    assert x.shape == (2, 16)
    np.testing.assert_allclose(encode(["my card"])[0], x[0], atol=1e-5)  # padding does not count


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("efficientnet-lite0", "there is minilm, multilingual, wordllama, tfidf, sentence-transformers:NAME"),
        ("sentence-transformers:", "pip install 'unveil.text.'"),
        ("transformers:/nowhere/at/all", "could not be created"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        text_encoder(name, CPU)
