"""Decode image files: upright, in RGB, cropped. Needs no torch."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps

from unveil.errors import UnveilError
from unveil.settings import Augment

ImageFile.LOAD_TRUNCATED_IMAGES = False  # a cut-off file is an error, not a half gray picture
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "BMP", "TIFF", "GIF", "AVIF")
"""Formats that are decoded, whatever a file is called. Pillow knows more, some by starting other programs."""
THUMBNAIL_SIDE = 224  # pixels of a side of the thumbnails that a run keeps: they are square, cropped in the middle
KeepPicture = Callable[[Path, Image.Image], None]  # what is given each file as it was decoded, to keep something of it
if most_pixels := os.environ.get("UNVEIL_MOST_PIXELS", ""):
    Image.MAX_IMAGE_PIXELS = int(most_pixels) // 2 if most_pixels.isdecimal() else Image.MAX_IMAGE_PIXELS


def open_image(path: Path) -> Image.Image:
    """An image file, whose pixels are read later. Images of more than 179 million pixels (UNVEIL_MOST_PIXELS) and what
    is no regular file (a pipe would wait for ever) are errors, as is anything that Pillow raises."""
    try:
        if not path.is_file():
            raise UnveilError("it is no regular file" if path.exists() else "there is no such file")
        return Image.open(path, formats=_formats())
    except Exception as error:  # a damaged file can raise nearly anything
        raise _unreadable(path, error) from None


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _unreadable(path: Path, error: Exception) -> UnveilError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return UnveilError(f"cannot read the image {path} ({reason}): replace or remove the file")


def read_image(path: Path, at_least: int = 0) -> Image.Image:
    """A file as RGB, upright. A JPEG is decoded at the smallest scale at which both sides have `at_least` pixels."""
    picture = open_image(path)
    try:
        if at_least:
            picture.draft("RGB", (at_least * 2, at_least * 2))
        return as_rgb(ImageOps.exif_transpose(picture))
    except Exception as error:  # a damaged file can raise nearly anything
        raise _unreadable(path, error) from None


def as_rgb(picture: Image.Image) -> Image.Image:
    """Convert any mode to RGB: transparent pixels become white, 16-bit gray keeps its upper 8 bits."""
    if picture.mode.startswith("I"):
        wide = np.asarray(picture)
        shift = 8 if wide.max(initial=0) > 255 else 0
        return Image.fromarray((wide >> shift).astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return picture.convert("RGB")


def crop(picture: Image.Image, config: Augment, generator: np.random.Generator) -> NDArray[np.uint8]:
    """A random resized crop (share of the area, ratio of sides from 3/4 to 4/3), mirrored half of the time."""
    assert config.size is not None
    low, high = config.crop or (1.0, 1.0)
    area = picture.width * picture.height * generator.uniform(low, high)
    ratio = np.exp(generator.uniform(np.log(3 / 4), np.log(4 / 3)))
    width, height = min(np.sqrt(area * ratio), picture.width), min(np.sqrt(area / ratio), picture.height)
    left, top = generator.uniform(0, picture.width - width), generator.uniform(0, picture.height - height)
    size = (config.size, config.size)
    view = picture.resize(size, Image.Resampling.BILINEAR, box=(left, top, left + width, top + height))
    if config.flip and generator.random() < 0.5:
        view = view.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(view)


def center(picture: Image.Image, config: Augment) -> NDArray[np.uint8]:
    """The clean view: the middle 7/8 of the short side, as a square."""
    assert config.size is not None
    side = min(picture.size) * 7 / 8
    left, top = (picture.width - side) / 2, (picture.height - side) / 2
    size = (config.size, config.size)
    return np.asarray(picture.resize(size, Image.Resampling.BILINEAR, box=(left, top, left + side, top + side)))
