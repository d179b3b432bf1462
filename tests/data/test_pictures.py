"""Image files as pictures."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unveil.data.pictures import center, crop, read_image
from unveil.errors import UnveilError
from unveil.settings import Augment


def test_pictures_are_upright_opaque_and_of_eight_bits(tmp_path: Path) -> None:
    picture = Image.new("RGB", (40, 20), "black")
    turned = Image.Exif()
    turned[0x0112] = 6  # to be turned by a quarter
    picture.save(tmp_path / "turned.jpg", exif=turned)
    assert read_image(tmp_path / "turned.jpg").size == (20, 40)
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert read_image(tmp_path / "clear.png").getpixel((0, 0)) == (255, 255, 255)
    Image.fromarray(np.full((4, 4), 0x8000, dtype=np.uint16)).save(tmp_path / "deep.png")
    assert read_image(tmp_path / "deep.png").getpixel((0, 0)) == (128, 128, 128)
    Image.new("P", (4, 4), 3).save(tmp_path / "palette.png")
    assert read_image(tmp_path / "palette.png").mode == "RGB"


def test_a_file_that_is_no_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"nothing")
    with pytest.raises(UnveilError, match=r"cannot read the image .*bad\.png"):
        read_image(tmp_path / "bad.png")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.png")
    for path, reason in (
        (tmp_path / "x.png", "no regular file"),
        (tmp_path, "no regular"),
        (tmp_path / "y", "no such"),
    ):
        with pytest.raises(UnveilError, match=reason):
            read_image(path)


def test_formats_that_start_other_programs_are_not_opened(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.eps")
    (tmp_path / "a.eps").rename(tmp_path / "a.png")
    Image.open(tmp_path / "a.png").close()  # Pillow would
    with pytest.raises(UnveilError, match=r"a\.png"):
        read_image(tmp_path / "a.png")


@pytest.mark.filterwarnings("ignore")  # Pillow's, of what it skips
@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "bmp", "tiff", "gif", "avif"])
def test_damaged_pictures_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    path = tmp_path / "picture.jpg"
    try:
        Image.fromarray(pixels).save(path, format=kind)
    except (KeyError, OSError):
        pytest.skip(f"this Pillow does not write {kind}")
    whole, draw = path.read_bytes(), np.random.default_rng(1)
    for _ in range(60):
        content = bytearray(whole)
        for place in draw.integers(0, len(content), int(draw.integers(1, 8))):
            content[place] = int(draw.integers(256))
        path.write_bytes(content[: len(content) if draw.random() < 0.6 else int(draw.integers(len(content)))])
        try:
            read_image(path, at_least=4)
        except UnveilError:
            continue


def test_crops_have_the_size_of_a_view() -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8))
    config = Augment(size=16, crop=(0.3, 1.0), flip=True)
    views = [crop(picture, config, np.random.default_rng(seed)) for seed in range(4)]
    assert {view.shape for view in (*views, center(picture, config))} == {(16, 16, 3)}
    assert len({view.tobytes() for view in views}) == 4
