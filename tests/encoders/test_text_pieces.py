"""Texts that are longer than what an encoder reads at once."""

import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rich.console import Console

from unveil.data.items import Items
from unveil.encoders.stored import Embedding
from unveil.encoders.text import text_encoder
from unveil.encoders.text_pieces import MARGIN, InPieces, in_pieces

MOST = 10
CPU = torch.device("cpu")


def spans(texts: Sequence[str]) -> list[list[tuple[int, int]]]:
    return [[match.span() for match in re.finditer(r"\S+", text)] for text in texts]


def directions(texts: Sequence[str]) -> NDArray[np.float32]:
    """How often the words a and b occur, at length 2."""
    assert all(len(text.split()) <= MOST for text in texts)
    counts = np.array([[text.split().count("a"), text.split().count("b")] for text in texts], dtype=np.float32)
    return 2 * counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_the_mean_of_the_pieces_counts() -> None:
    encode = InPieces(directions, spans, MOST)
    short, long = "a " * MOST, "a " * 12 + "b " * 6
    x = encode([short, long, "b a"])
    assert encode.longer == 1
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 2, rtol=1e-6)
    np.testing.assert_array_equal(x[[0, 2]], directions([short, "b a"]))
    pieces = ["a " * 6, "a " * 6, "b " * 6]  # of about equal length, each below the limit
    assert len(pieces) == -(-18 // (MOST - MARGIN))
    expected = directions(pieces).mean(axis=0)
    np.testing.assert_allclose(x[1], 2 * expected / np.linalg.norm(expected), rtol=1e-6)


def test_no_token_is_lost_or_read_twice() -> None:
    seen: list[str] = []

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        seen.extend(texts)
        return np.ones((len(texts), 1), dtype=np.float32)

    text = " ".join(f"w{number}" for number in range(101))
    assert InPieces(encode, spans, MOST)([text]).tolist() == [[1]]
    assert "".join(seen) == text
    assert max(len(piece.split()) for piece in seen) <= MOST - MARGIN + 1


def test_a_tokenizer_that_does_not_say_where_its_tokens_are_is_left_alone() -> None:
    assert in_pieces(directions, object(), 8) is directions
    assert in_pieces(directions, None, None) is directions


def test_what_minilm_would_cut_off_counts(tmp_path: Path) -> None:
    start = "my card was stolen " * 80  # more than the 256 tokens that it reads
    endings = ["", "what is the weather like tomorrow " * 40, "please play some music " * 50]
    text = io.StringIO()
    embedding = Embedding(
        name="minilm", size=0, device=CPU, precision=torch.float32, folder=None, console=Console(file=text, width=300)
    )
    x = embedding(Items.of_texts([start + ending for ending in endings] + ["what is the weather like tomorrow"]))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, atol=1e-5)
    assert "3 of 4 texts are longer than the 254 tokens" in text.getvalue()
    assert x[1] @ x[3] > x[0] @ x[3] + 0.2  # without its ending it is the text before it
    assert x[1] @ x[2] < 0.9


def test_the_multilingual_encoder_knows_the_same_sentence_in_two_languages() -> None:
    x = text_encoder("multilingual", CPU)(
        ["my card was stolen", "meine Karte wurde gestohlen", "what is the weather like tomorrow", ""]
    )
    assert x.shape == (4, 512)
    assert x[0] @ x[1] > 0.6 > 2 * abs(x[0] @ x[2])


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the files of wordllama: four words."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    folder = tmp_path / "wordllama"
    for name in ("tokenizers", "weights"):
        (folder / name).mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "card": 1, "stolen": 2, "rain": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    table = np.array([[0, 0], [3, 0], [0, 4], [0, -1]], dtype=np.float16)
    save_file({"embedding.weight": table}, folder / "weights" / "l2_supercat_256.safetensors")
    monkeypatch.syspath_prepend(tmp_path)


def test_static_vectors_of_words(words: None) -> None:
    x = text_encoder("wordllama", CPU)(["card stolen", "rain", ""])
    np.testing.assert_allclose(x, [[0.6, 0.8], [0, -1], [0, 0]], atol=1e-6)
