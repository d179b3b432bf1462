"""Several encoders: the one that suits known classes, or all together."""

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from unveil import NovelClassDiscovery
from unveil.data.items import Items
from unveil.encoders.encode import encode_items, own_neighbors
from unveil.encoders.preparation import Preparation

KINDS = np.repeat(np.arange(4), 20)


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three encoders of texts: one that sees the class, one that sees half of it, one that sees nothing."""
    draw = np.random.default_rng(0)
    noise = {name: draw.normal(size=(len(KINDS), 4)).astype(np.float32) for name in ("good", "left", "right", "poor")}
    signal = {
        "good": np.eye(4)[KINDS],
        "left": np.eye(4)[KINDS // 2],
        "right": np.eye(4)[KINDS % 2],
        "poor": np.zeros((len(KINDS), 4)),
    }

    def vectors(self: Preparation, items: Items, console: Console, keep: object = None) -> np.ndarray:
        rows = [int(text) for text in items.texts]
        assert self.encoder is not None
        return (8 * signal[self.encoder] + noise[self.encoder])[rows].astype(np.float32)

    single = Preparation._vectors
    monkeypatch.setattr(
        Preparation,
        "_vectors",
        lambda self, items, console, keep=None: (single if "+" in self.encoder else vectors)(self, items, console),
    )


TEXTS = Items.of_texts([str(row) for row in range(len(KINDS))])


@pytest.mark.parametrize(
    ("named", "chosen"), [("poor+good", "good"), ("left+right", "left+right"), ("good+good", "good"), ("good", "good")]
)
def test_the_best_is_taken(encoders: None, named: str, chosen: str) -> None:
    labels = np.where(KINDS < 4, KINDS, -1)
    preparation, items, readable = encode_items(
        TEXTS, labels, Preparation(kind="texts", encoder=named), Console(quiet=True)
    )
    assert preparation.encoder == chosen
    assert readable.all()
    again, _ = preparation.encoded(TEXTS, Console(quiet=True))
    np.testing.assert_allclose(again.array, items.array, rtol=1e-6)


def test_without_two_classes_the_first_is_taken() -> None:
    assert own_neighbors(np.ones((4, 2)), np.array([0, 0, -1, -1])) == 0


def test_two_encoders_from_the_estimator(tmp_path: Path) -> None:
    words = ["bill pay due", "flight hotel trip", "song music play", "rain cloud storm"]
    texts = [f"{words[kind]} {row % 5}" for row, kind in enumerate(KINDS)]
    found = NovelClassDiscovery(2, encoder="tfidf+minilm", rehearsals=0, random_state=0)
    found.fit(texts, np.where(KINDS < 2, KINDS, -1))
    found.save(tmp_path / "run")
    again = NovelClassDiscovery.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(texts[:3]), found.predict(texts[:3]))
