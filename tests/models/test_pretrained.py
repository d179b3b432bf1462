"""Encoders of other packages, which need not be there: what is asked of them, and what people are told."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from unveil.errors import UnveilError
from unveil.models import pretrained as backbones

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
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "pip install --no-deps efficientnet-lite-pytorch"),
    ],
)
def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, name: str, package: str, how: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnveilError, match=how):
        backbones.pretrained(name, CPU)
    assert not backbones.installed(name)


def test_a_model_that_cannot_be_fetched_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str, **_: object) -> nn.Module:
        raise RuntimeError("no route to host")

    module(monkeypatch, "timm", create_model=fails)
    with pytest.raises(UnveilError, match=r"timm:x could not be created \(no route to host"):
        backbones.pretrained("timm:x", CPU)


@pytest.mark.parametrize("name", ["best", "timm:", "keras:x"])
def test_other_names(name: str) -> None:
    with pytest.raises(UnveilError, match="there is efficientnet-lite0"):
        backbones.pretrained(name, CPU)
