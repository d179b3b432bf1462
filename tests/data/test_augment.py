"""Batched augmentation against a slow version that takes one image at a time."""

from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unveil.data import augment
from unveil.settings import Augment

thorough = settings(max_examples=40, deadline=None, derandomize=True)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(batch: int, height: int, width: int, channels: int = 3, seed: int = 0) -> torch.Tensor:
    size = (batch, height, width, channels)
    return torch.randint(1, 256, size, generator=generator(seed), dtype=torch.uint8)


def slow_shift_flip(
    x: NDArray[np.uint8], shift: int, padding: Literal["reflect", "zero"], flip: bool, seed: int
) -> NDArray[np.uint8]:
    """Pad each image, cut the moved window out of it, mirror it."""
    draws = generator(seed)
    dy, dx = torch.randint(-shift, shift + 1, (2, len(x), 1), generator=draws).squeeze(2).tolist()
    mirrored = (torch.rand(len(x), 1, generator=draws) < 0.5).squeeze(1).tolist() if flip else [False] * len(x)
    views = []
    for image, down, right, mirror in zip(x, dy, dx, mirrored, strict=True):
        margin = ((shift, shift), (shift, shift), (0, 0))
        padded = np.pad(image, margin, mode="reflect") if padding == "reflect" else np.pad(image, margin)
        top, left = shift + down, shift + right
        window = padded[top : top + image.shape[0], left : left + image.shape[1]]
        views.append(window[:, ::-1] if mirror else window)
    return np.stack(views)


@pytest.mark.parametrize("padding", ["reflect", "zero"])
@given(
    batch=st.integers(1, 6),
    height=st.integers(5, 9),
    width=st.integers(5, 9),
    channels=st.sampled_from([1, 3]),
    shift=st.integers(0, 4),
    flip=st.booleans(),
    seed=st.integers(0, 10**6),
)
@thorough
def test_shift_flip_is_pad_and_crop(
    padding: Literal["reflect", "zero"],
    batch: int,
    height: int,
    width: int,
    channels: int,
    shift: int,
    flip: bool,
    seed: int,
) -> None:
    x = images(batch, height, width, channels, seed)
    found = augment.shift_flip(x, shift, padding, flip, generator(seed))
    assert found.dtype == torch.uint8
    np.testing.assert_array_equal(found.numpy(), slow_shift_flip(x.numpy(), shift, padding, flip, seed))


def test_every_shift_and_both_sides_occur() -> None:
    x = torch.arange(1, 8, dtype=torch.uint8).repeat(2000, 7, 1)[..., None]  # a pixel names its column
    found = augment.shift_flip(x, 2, "zero", True, generator())[:, 3, :, 0].tolist()
    straight, mirrored = ([row for row in found if (row[2] < row[3]) == up] for up in (True, False))
    assert {row[3] for row in straight} == {row[3] for row in mirrored} == {2, 3, 4, 5, 6}
    assert 900 < len(mirrored) < 1100


def test_nothing_asked_for_is_nothing_done() -> None:
    x = images(4, 6, 6)
    assert torch.equal(augment.shift_flip(x, 0, "reflect", False, generator()), x)
    assert augment.draw(x, Augment(), generator()) is x


FULL = Augment(shift=2, flip=True, crop=(0.4, 0.9), jitter=0.3, gray=0.5)


@pytest.mark.parametrize(
    "config",
    [
        Augment(shift=2),
        Augment(flip=True),
        Augment(crop=(0.4, 0.9)),
        Augment(jitter=0.3),
        Augment(gray=0.5),
        FULL,
    ],
    ids=str,
)
def test_views_are_functions_of_the_generator(config: Augment) -> None:
    x = images(8, 12, 12)
    first, again, other = (augment.draw(x, config, generator(seed)) for seed in (1, 1, 2))
    assert first.shape == x.shape
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert float(first.min()) >= 0
    assert float(first.max()) <= 255
    assert torch.equal(x, images(8, 12, 12))  # the data set itself is not touched


def test_a_crop_of_everything_changes_nothing_and_a_smaller_one_magnifies() -> None:
    ramp = torch.linspace(0, 255, 32).to(torch.uint8).repeat(4, 32, 1)[..., None].repeat(1, 1, 1, 3)
    whole = augment.resized_crop(ramp, (1.0, 1.0), generator())
    torch.testing.assert_close(whole, ramp.float(), atol=0.01, rtol=0)
    quarter = augment.resized_crop(ramp, (0.25, 0.25), generator())
    slope = (quarter[:, :, -4] - quarter[:, :, 3]).mean() / (whole[:, :, -4] - whole[:, :, 3]).mean()
    assert float(slope) == pytest.approx(0.5, abs=0.02)


def test_jitter_keeps_gray_images_gray() -> None:
    x = images(6, 5, 5, channels=1).repeat(1, 1, 1, 3)
    found = augment.jitter(x, 0.4, generator())
    torch.testing.assert_close(found[..., 0], found[..., 2])
    means = found.mean(dim=(1, 2, 3)) / x.float().mean(dim=(1, 2, 3))
    assert float(means.std()) > 0.05
    torch.testing.assert_close(augment.jitter(x, 0.0, generator()), x.float())


def test_gray_takes_the_colors_of_a_share_and_leaves_the_others() -> None:
    x = images(200, 3, 3)
    found = augment.gray(x, 0.25, generator())
    without = (found == found[..., :1]).all(dim=(1, 2, 3))
    assert 0.15 < float(without.float().mean()) < 0.35
    torch.testing.assert_close(found[without].mean(dim=3), x[without].float().mean(dim=3))
    assert torch.equal(found[~without], x[~without].float())


def test_normalize() -> None:
    x = images(3, 4, 5)
    mean, std = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0.2, 0.3, 0.4])
    found = augment.normalize(x, mean, std)
    assert found.shape == (3, 3, 4, 5)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert float(found[1, 2, 3, 4]) == pytest.approx((float(x[1, 3, 4, 2]) / 255 - 0.9) / 0.4, abs=1e-5)
