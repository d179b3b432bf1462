"""Encoders, the folded trunk, heads and the model."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from torch import Tensor, nn

from unveil import settings
from unveil.errors import UnveilError
from unveil.models import Encoder, build_encoder, frozen
from unveil.models.heads import linear_head, start_from_clusters
from unveil.models.model import Model

IMAGE = (3, 32, 32)
SMALL: dict[str, Any] = {"name": "compact", "width": 8}
ENCODERS: list[tuple[dict[str, Any], tuple[int, ...], int]] = [
    ({"name": "resnet18"}, IMAGE, 512),
    ({"name": "resnet18-imagenet"}, (3, 64, 64), 512),
    (SMALL, IMAGE, 64),
    ({**SMALL, "space_to_depth": 1, "blocks": (1, 2, 1, 1), "strides": (2, 2, 1, 1)}, (1, 15, 15), 64),
    ({"name": "mlp", "width": 24}, (10,), 24),
    ({"name": "mlp", "width": 24}, (1, 8, 8), 24),
]
every = pytest.mark.parametrize(("options", "shape", "dim"), ENCODERS, ids=lambda value: str(value))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def build(options: dict[str, Any], shape: tuple[int, ...], seed: int = 0) -> Encoder:
    return build_encoder(settings.Encoder(**options), shape, generator(seed))


def lived_in(module: nn.Module) -> None:
    """BatchNorms as training leaves them: nothing is at its initial value."""
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            for values in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
                assert isinstance(values, Tensor)
                values.data.uniform_(0.5, 1.5, generator=generator(len(values)))


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@every
def test_shapes(options: dict[str, Any], shape: tuple[int, ...], dim: int) -> None:
    encoder = build(options, shape)
    z = encoder(torch.randn(2, *shape, generator=generator()))
    assert z.shape == (2, dim)
    assert encoder.dim == dim
    assert bool((z >= 0).all())  # features come out of a ReLU
    torch.testing.assert_close(z, encoder.tail(encoder.trunk(torch.randn(2, *shape, generator=generator()))))


@every
@torch.no_grad()
def test_the_frozen_trunk_computes_the_same(options: dict[str, Any], shape: tuple[int, ...], dim: int) -> None:
    trunk = build(options, shape).trunk
    lived_in(trunk)
    x = torch.randn(2, *shape, generator=generator())
    folded = frozen(trunk)
    expected = trunk.eval()(x)
    torch.testing.assert_close(folded(x), expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
    assert float(expected.std()) > 1e-3
    kinds = {type(module) for module in folded.modules()}
    assert not kinds & {nn.BatchNorm1d, nn.BatchNorm2d}
    assert not any(parameter.requires_grad for parameter in folded.parameters())
    assert all(parameter.requires_grad for parameter in trunk.parameters())  # the original is left as it was


def resnet18_parameters(stem: int, shortcuts: bool) -> int:
    """Counted by hand: 3x3 convolutions and two numbers a channel for each BatchNorm."""
    total, inputs = stem * 64 + 2 * 64, 64
    for width in (64, 128, 256, 512):
        total += 9 * inputs * width + 3 * 9 * width * width + 4 * 2 * width
        if shortcuts and inputs != width:
            total += inputs * width + 2 * width
        inputs = width
    return total


@pytest.mark.parametrize(
    ("name", "expected"),
    [("resnet18", resnet18_parameters(3 * 9, False)), ("resnet18-imagenet", resnet18_parameters(3 * 49, True))],
)
def test_resnet18_has_as_many_parameters_as_it_should(name: str, expected: int) -> None:
    encoder = build({"name": name}, IMAGE)
    assert parameters(encoder) == expected
    assert expected in (10_995_008, 11_176_512)  # the second is torchvision's without its classifier
    assert parameters(encoder.tail) == resnet18_tail(name)


def resnet18_tail(name: str) -> int:
    shortcut = 256 * 512 + 2 * 512 if name == "resnet18-imagenet" else 0
    return 9 * 256 * 512 + 3 * 9 * 512 * 512 + 4 * 2 * 512 + shortcut


@torch.no_grad()
def test_the_parameter_free_shortcut_averages_and_pads_with_zeros() -> None:
    block = build({"name": "resnet18"}, IMAGE).tail[0][0]  # type: ignore[index]
    x = torch.randn(2, 256, 8, 8, generator=generator())
    short = block.shortcut(x)
    assert short.shape == (2, 512, 4, 4)
    torch.testing.assert_close(short[:, :256, 1, 2], x[:, :, 2:4, 4:6].mean(dim=(2, 3)))
    assert not bool(short[:, 256:].any())


@every
def test_the_generator_decides_the_weights(options: dict[str, Any], shape: tuple[int, ...], dim: int) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = build(options, shape), build(options, shape), build(options, shape, seed=1)
    assert torch.equal(torch.rand(3), expected)  # the global stream is not touched
    vectors = [torch.cat([p.flatten() for p in encoder.parameters()]) for encoder in (first, again, other)]
    assert torch.equal(vectors[0], vectors[1])
    assert not torch.equal(vectors[0], vectors[2])


@pytest.mark.parametrize(
    ("options", "shape", "advice"),
    [
        ({"name": "resnet18"}, (10,), "encoder.name=mlp"),
        ({"name": "compact"}, (10,), "encoder.name=mlp"),
        ({"name": "compact", "space_to_depth": 2}, (1, 7, 7), "space_to_depth=1"),
        ({"name": "mlp", "weights": "missing.safetensors"}, (10,), "no file at missing.safetensors"),
    ],
)
def test_an_encoder_that_does_not_fit_is_an_error(options: dict[str, Any], shape: tuple[int, ...], advice: str) -> None:
    with pytest.raises(UnveilError, match=advice):
        build(options, shape)


def test_weights_from_a_file(tmp_path: Path) -> None:
    source, path = build(SMALL, IMAGE, seed=3), tmp_path / "weights.safetensors"
    save_file({name: value.contiguous() for name, value in source.state_dict().items()}, path)
    loaded = build({**SMALL, "weights": str(path)}, IMAGE)
    x = torch.randn(2, *IMAGE, generator=generator())
    torch.testing.assert_close(loaded.eval()(x), source.eval()(x))
    with pytest.raises(UnveilError, match="does not fit the encoder"):
        build({"name": "compact", "width": 16, "weights": str(path)}, IMAGE)
    path.write_bytes(b"no tensors")
    with pytest.raises(UnveilError, match="does not fit the encoder"):
        build({**SMALL, "weights": str(path)}, IMAGE)


def test_heads_are_drawn_from_their_generator() -> None:
    heads = [linear_head(16, 5, generator(seed)) for seed in (0, 0, 1)]
    assert torch.equal(heads[0].weight, heads[1].weight)
    assert torch.equal(heads[0].bias, heads[1].bias)
    assert not torch.equal(heads[0].weight, heads[2].weight)
    assert 0.2 < float(heads[0].weight.detach().abs().max()) <= 0.25


@pytest.mark.parametrize("length", [1.0, 7.0])
def test_a_head_from_kmeans_predicts_the_clusters(length: float) -> None:
    points, _ = make_blobs(600, 12, centers=6, cluster_std=[1, 2, 4, 8, 12, 16], random_state=0)
    unit = F.normalize(torch.from_numpy(points).float(), dim=1)
    head = linear_head(12, 6, generator())
    expected = KMeans(6, n_init=10, random_state=3).fit_predict(unit.numpy())
    start_from_clusters(head, length * unit, torch.from_numpy(expected))
    logits = head(length * unit).detach()
    assert len(set(expected)) == 6
    assert float((logits.argmax(dim=1).numpy() == expected).mean()) >= 0.95
    assert float((logits.amax(dim=1) - logits.amin(dim=1)).mean()) == pytest.approx(10, rel=1e-4)


def test_a_head_from_clusters_that_are_not_round_predicts_them() -> None:
    draws = torch.randn(2, 400, generator=generator())
    labels = torch.arange(400) % 2
    side = 2.0 * labels - 1
    z = torch.stack([side + 2 * draws[0], 0.3 * side + 0.05 * draws[1], torch.full((400,), 20.0)], dim=1)
    right = []
    for round_clusters in (True, False):
        head = linear_head(3, 2, generator())
        start_from_clusters(head, z, labels, round_clusters=round_clusters)
        right.append(float((head(z).argmax(dim=1) == labels).float().mean()))
    assert right[0] < 0.8
    assert right[1] > 0.98


def small_model() -> Model:
    encoder = build(SMALL, IMAGE)
    lived_in(encoder)
    return Model(encoder, linear_head(64, 3, generator()), linear_head(64, 2, generator()), torch.float32)


def test_a_frozen_trunk_learns_nothing_and_is_no_second_state() -> None:
    model, x = small_model(), torch.randn(4, *IMAGE, generator=generator())
    names = set(model.state_dict())
    free = sum(parameter.numel() for parameter in model.trained())
    expected = model.eval().encode(x).detach()
    model.freeze_trunk()
    torch.testing.assert_close(model.encode(x), expected, rtol=1e-4, atol=1e-4)
    assert set(model.state_dict()) == names
    assert sum(p.numel() for p in model.trained()) == free - parameters(model.encoder.trunk)
    before = {name: value.clone() for name, value in model.encoder.trunk.state_dict().items()}
    model.train().encode(x).sum().backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in model.encoder.trunk.parameters())
    assert all(parameter.grad is not None for parameter in model.encoder.tail.parameters())
    after = model.encoder.trunk.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())  # BatchNorm statistics too


@torch.no_grad()
def test_a_skipped_trunk_takes_its_outputs_as_inputs() -> None:
    model, x = small_model().eval(), torch.randn(4, *IMAGE, generator=generator())
    inner, expected = model.trunk(x), model.encode(x)
    model.skip_trunk()
    torch.testing.assert_close(model.encode(inner), expected)


@torch.no_grad()
def test_mixed_precision_ends_in_float32() -> None:
    model, x = small_model().eval(), torch.randn(4, *IMAGE, generator=generator())
    expected = model.encode(x)
    model.precision = torch.bfloat16
    assert model.trunk(x).dtype == torch.bfloat16
    z = model.encode(x)
    assert z.dtype == torch.float32
    assert float(F.cosine_similarity(z, expected).min()) > 0.999
