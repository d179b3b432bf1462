"""Views of image files: cropped and recolored by the settings, the same in every process."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from unveil.data.items import Items
from unveil.data.views import Draw, make_views
from unveil.settings import Augment, Data

ROWS = np.arange(6)


@pytest.fixture
def files(tmp_path: Path) -> Items:
    pixels = np.random.default_rng(0).integers(0, 255, (6, 20, 20, 3), dtype=np.uint8)
    paths = [tmp_path / f"{row}.png" for row in ROWS]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    return Items.of(paths)


def views(files: Items, draw: Draw, **options: float) -> tuple[torch.Tensor, ...]:
    config = Augment(size=8, crop=(0.5, 1.0), **options)  # type: ignore[arg-type]
    (found,) = make_views(files, Data(name="x"), config, torch.device("cpu"), 0).stream([draw])
    return found


@pytest.mark.parametrize("options", [{"jitter": 0.5}, {"gray": 0.5}, {"jitter": 0.5, "gray": 0.5}])
def test_colors_change_and_crops_do_not(files: Items, options: dict[str, float]) -> None:
    draw = Draw(ROWS, (None, 1, 2))
    plain, found = views(files, draw), views(files, draw, **options)
    assert torch.equal(found[0], plain[0])  # the clean view
    for old, new, again in zip(plain[1:], found[1:], views(files, draw, **options)[1:], strict=True):
        assert torch.equal(new, again)
        assert not torch.equal(old, new)
    gray = (found[1] == found[1][:, :1]).all(dim=(1, 2, 3))
    assert bool(gray.any()) == ("gray" in options)
    assert not bool(gray.all())


def test_the_first_view_is_clean_where_it_is_asked_for(files: Items) -> None:
    for config, clean in ((Augment(size=8), False), (Augment(size=8, first_view="clean"), True)):
        assert make_views(files, Data(name="x"), config, torch.device("cpu"), 0).first_view_clean == clean


def test_a_part_of_the_rows_has_the_views_of_the_whole(files: Items) -> None:
    whole = views(files, Draw(ROWS, (1, 2)), jitter=0.5, gray=0.5)
    part = views(files, Draw(ROWS, (1, 2), slice(2, 5)), jitter=0.5, gray=0.5)
    assert all(torch.equal(a[2:5], b) for a, b in zip(whole, part, strict=True))
