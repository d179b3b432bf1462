"""Self-supervision: the turn of each image, known classes, and two views of one image."""

from typing import Literal

import pytest
import torch
import torch.nn.functional as F

from unveil import settings
from unveil.data.loader import Batch
from unveil.errors import UnveilError
from unveil.methods.rotation import Rotation, turned
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model

B, LABELED = 6, 2
Turns = Literal["all", "one", "upright"]


def model() -> Model:
    generator = torch.Generator().manual_seed(0)
    config = settings.Encoder(name="compact", width=8, strides=(1, 2, 2, 1))
    encoder = build_encoder(config, (3, 8, 8), generator)
    heads = linear_head(encoder.dim, 3, generator), linear_head(encoder.dim, 2, generator)
    return Model(encoder, *heads, torch.float32).eval()


def batch(views: int) -> Batch:
    generator = torch.Generator().manual_seed(1)
    return Batch(
        views=tuple(torch.randn(B, 3, 8, 8, generator=generator) for _ in range(views)),
        y=torch.tensor([0, 2]),
        epoch=3,
        step=5,
    )


def rotation(views_weight: float = 0.0, known_weight: float = 0.0, rotations: Turns = "one") -> Rotation:
    config = settings.Rotation(rotations=rotations, views_weight=views_weight, known_weight=known_weight)
    return Rotation(model(), config).eval()


def test_each_image_is_turned_by_its_number_of_quarter_turns() -> None:
    x = torch.randn(4, 3, 5, 5)
    for image, result, turn in zip(x, turned(x, torch.arange(4)), range(4), strict=True):
        assert torch.equal(result, torch.rot90(image, turn, (1, 2)))


def test_two_views_are_compared_pair_by_pair() -> None:
    """Each view has one positive, the other view of its image, among all other views of the batch."""
    method, given = rotation(views_weight=0.5), batch(2)
    x, turns = method._turned(given)
    with torch.no_grad():
        p = F.normalize(method.project(method.model.encode(x)), dim=1).double()
        expected = 0.0
        for i in range(2 * B):
            other = (i + B) % (2 * B)
            cosines = [float(p[i] @ p[j]) / 0.2 for j in range(2 * B) if j != i]
            expected += torch.tensor(cosines).logsumexp(0).item() - float(p[i] @ p[other]) / 0.2
        losses = method.losses(given)
    assert losses["views"].item() == pytest.approx(0.5 * expected / (2 * B), rel=1e-5)
    assert torch.equal(turns[:B], turns[B:])  # both views of an image are turned alike


def test_the_known_classes_are_learned_from_the_first_view() -> None:
    method, given = rotation(views_weight=1.0, known_weight=2.0), batch(2)
    x, _ = method._turned(given)
    with torch.no_grad():
        z = method.model.encode(x[:LABELED])
        expected = 2.0 * F.cross_entropy(method.model.known_head(z), given.y)
        assert method.losses(given)["known"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_images_may_stay_upright() -> None:
    method, given = rotation(views_weight=1.0, known_weight=1.0, rotations="upright"), batch(2)
    x, _ = method._turned(given)
    assert torch.equal(x, torch.cat(given.views))
    assert set(method.losses(given)) == {"known", "views"}
    trained = {id(parameter) for parameter in method.trained()}
    assert not any(id(parameter) in trained for parameter in method.rotation_head.parameters())


def test_without_their_weight_views_cost_nothing() -> None:
    method = rotation()
    assert method.n_views == 1
    assert list(method.project.parameters()) == []
    assert set(method.losses(batch(1))) == {"rotation"}


def test_the_projection_is_trained() -> None:
    method = rotation(views_weight=1.0).train()
    sum(method.losses(batch(2)).values(), torch.zeros(())).backward()
    trained = {id(parameter) for parameter in method.trained()}
    for parameter in method.project.parameters():
        assert id(parameter) in trained
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"views_weight": 1.0}, "rotations=one"),
        ({"rotations": "upright"}, "views_weight=1"),
        ({"views_weight": -1.0, "rotations": "one"}, "views_weight"),
        ({"views_temperature": 0.0}, "views_temperature"),
        ({"epochs": -1}, "epochs"),
    ],
)
def test_impossible_settings_are_refused(values: dict[str, float | str], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        settings.Rotation(**values)  # type: ignore[arg-type]
