"""A saved model carries its own architecture: it loads without a recipe, and damage is told."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from unveil import settings
from unveil.errors import UnveilError
from unveil.methods.catalog import METHODS, make_method
from unveil.methods.method import Context
from unveil.methods.similarity import Similarity
from unveil.models import Encoder, build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import KEY, Model

COMPACT = settings.Encoder(name="compact", width=4, space_to_depth=1, blocks=(1, 1, 1, 2))
ENCODERS = [(settings.Encoder(name="mlp", width=8), (6,)), (settings.Encoder(name="tail", width=5), (6,))]


def fresh(config: settings.Encoder, shape: tuple[int, ...], precision: torch.dtype = torch.float32) -> Model:
    generator = torch.Generator().manual_seed(0)
    encoder = build_encoder(config, shape, generator)
    heads = linear_head(encoder.dim, 3, generator), linear_head(encoder.dim, 2, generator)
    return Model(encoder, *heads, precision)


def same(first: Model, second: Model, x: Tensor) -> None:
    first.eval()
    z = first.encode(x)
    assert torch.equal(z, second.encode(x))
    for a, b in ((first.known_head, second.known_head), (first.novel_head, second.novel_head)):
        assert torch.equal(a(z), b(z))
    joint, again = first.joint(z), second.joint(z)
    assert (joint is None) == (again is None)
    assert joint is None or again is None or torch.equal(joint, again)
    assert first.state_dict().keys() == second.state_dict().keys()


@pytest.mark.parametrize(
    ("config", "shape"), [*ENCODERS, (COMPACT, (1, 8, 8))], ids=lambda one: getattr(one, "name", "")
)
def test_a_model_comes_back_as_it_was(tmp_path: Path, config: settings.Encoder, shape: tuple[int, ...]) -> None:
    model = fresh(config, shape)
    model.save(tmp_path / "model.safetensors")
    loaded = Model.load(tmp_path / "model.safetensors")
    assert loaded.encoder.config == config
    assert loaded.encoder.shape == shape
    assert not loaded.training
    same(model, loaded, torch.randn(4, *shape))


@pytest.mark.parametrize("name", METHODS)
def test_the_heads_of_every_method_come_back(tmp_path: Path, name: str) -> None:
    model = fresh(*ENCODERS[0])
    labels = np.repeat([0, 1, 2, -1], 5)
    context = Context(
        settings=METHODS[name].Settings(),
        seed=0,
        labels=labels,
        features=lambda rows: torch.randn(len(rows), 8, generator=torch.Generator().manual_seed(1)),
        similarity=Similarity(nn.Identity(), 8) if METHODS[name].needs_similarity else None,
    )
    method = make_method(name, model, context)
    method.before_epoch(0)
    method.eval()
    method.after_epoch()
    model.save(tmp_path / "model.safetensors")
    same(model, Model.load(tmp_path / "model.safetensors"), torch.randn(4, 6))
    assert (model.joint(torch.zeros(1, 8)) is not None) == (name in ("rs+", "uno", "simgcd"))


def test_precision_is_kept_and_the_global_random_stream_is_left_alone(tmp_path: Path) -> None:
    fresh(*ENCODERS[0], precision=torch.bfloat16).save(tmp_path / "m")
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    assert Model.load(tmp_path / "m").precision == torch.bfloat16
    assert torch.equal(torch.rand(1), expected)


def test_the_weights_file_of_the_encoder_is_not_needed_again(tmp_path: Path) -> None:
    encoder = fresh(*ENCODERS[0]).encoder
    save_file(encoder.state_dict(), tmp_path / "start.safetensors")
    model = fresh(settings.Encoder(name="mlp", width=8, weights=str(tmp_path / "start.safetensors")), (6,))
    model.save(tmp_path / "model.safetensors")
    (tmp_path / "start.safetensors").unlink()
    same(model, Model.load(tmp_path / "model.safetensors"), torch.randn(4, 6))


def error(path: Path) -> str:
    with pytest.raises(UnveilError) as caught:
        Model.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_that_are_no_model_are_told(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    assert "there is no model at" in error(path)
    path.write_bytes(b"hello")
    assert "cannot be read" in error(path)
    save_file({"x": torch.zeros(1)}, path)
    assert "without an architecture" in error(path)


def test_damage_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    fresh(*ENCODERS[0]).save(path)
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    assert "is damaged" in error(path)
    flipped = bytearray(content)
    flipped[-5] ^= 1
    path.write_bytes(flipped)
    assert "is damaged (its content has changed): copy it again, or train again" in error(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 99}, "written by a newer unveil"),
        ({"heads": {}}, "is damaged"),
        ({"encoder": {"name": "nonsense"}}, "is damaged"),
        ({"encoder": {"name": "mlp", "width": 3}}, "is damaged"),
        ({"precision": "float3"}, "is damaged"),
        ({"heads": {"known": {"kind": "odd", "inputs": 8, "classes": 3}}}, "unknown kind of head 'odd'"),
    ],
)
def test_an_architecture_that_does_not_fit_is_told(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = tmp_path / "model.safetensors"
    fresh(*ENCODERS[0]).save(path)
    with safe_open(path, framework="pt") as file:
        description = json.loads(file.metadata()[KEY])
    save_file(load_file(path), path, metadata={KEY: json.dumps({**description, **change})})
    assert said in error(path)


def test_parts_made_by_hand_cannot_be_saved(tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(0)
    by_hand = Encoder(nn.Identity(), nn.Identity(), 4)
    model = Model(by_hand, linear_head(4, 2, draw), linear_head(4, 2, draw), torch.float32)
    with pytest.raises(UnveilError, match="build_encoder"):
        model.save(tmp_path / "m")
    model = fresh(*ENCODERS[0])
    model.further_heads["odd"] = nn.Identity()
    with pytest.raises(UnveilError, match="Identity cannot be saved"):
        model.save(tmp_path / "m")
