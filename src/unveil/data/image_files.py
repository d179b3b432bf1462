"""Read image files with Pillow. Needs no torch."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps

from unveil.errors import UnveilError

ImageFile.LOAD_TRUNCATED_IMAGES = False  # a cut-off file is an error, not a half grey picture


def read_image(path: Path, at_least: int = 0) -> Image.Image:
    """A file as RGB, upright. A JPEG is decoded at the smallest scale that keeps both sides `at_least` so long."""
    try:
        picture: Image.Image = Image.open(path)
        if at_least:
            picture.draft("RGB", (at_least * 2, at_least * 2))
        return as_rgb(ImageOps.exif_transpose(picture))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UnveilError(f"cannot read the image {path} ({error}): replace or remove the file") from None


def as_rgb(picture: Image.Image) -> Image.Image:
    """Any mode as RGB: what is transparent becomes white, 16-bit grey keeps its upper 8 bits."""
    if picture.mode.startswith("I"):
        wide = np.asarray(picture)
        shift = 8 if wide.max(initial=0) > 255 else 0
        return Image.fromarray((wide >> shift).astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return picture.convert("RGB")
