"""Pretrained encoders of other packages, which are optional and imported only here."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unveil.encoders import registry
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
    """An encoder of images by name."""
    encoder: Pretrained = registry.load(name, "images", device)
    return encoder


def ready(network: Any, device: torch.device) -> Any:
    """A network that is evaluated and not trained."""
    return network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)


def timm(model: str, device: torch.device) -> Pretrained:
    """A model of timm."""
    models = package("timm")
    network = made(f"timm:{model}", lambda: models.create_model(model, pretrained=True, num_classes=0))
    config = models.data.resolve_data_config({}, model=network)
    return Pretrained(
        f"timm:{model}",
        ready(network, device),
        network,
        tuple(config["mean"]),
        tuple(config["std"]),
        int(config["input_size"][-1]),
    )


def transformers(model: str, device: torch.device) -> Pretrained:
    """A model of transformers."""
    models = package("transformers")
    name = f"transformers:{model}"
    network = made(name, lambda: models.AutoModel.from_pretrained(model))
    network = getattr(network, "vision_model", network)  # the image encoder of models such as CLIP
    config = made(name, lambda: models.AutoImageProcessor.from_pretrained(model))

    def features(x: Tensor) -> Tensor:
        out = network(pixel_values=x)
        pooled = getattr(out, "pooler_output", None)
        vectors: Tensor = out.last_hidden_state[:, 0] if pooled is None else pooled.flatten(1)
        return vectors

    side = _side(getattr(config, "crop_size", None)) or _side(config.size) or 224
    return Pretrained(name, ready(network, device), features, tuple(config.image_mean), tuple(config.image_std), side)


def _side(size: Any) -> int | None:
    """The side in pixels in a size of transformers: a number, a dictionary, or an object with such fields."""
    if isinstance(size, int):
        return size
    for key in ("height", "shortest_edge"):
        value = size.get(key) if isinstance(size, dict) else getattr(size, key, None)
        if value:
            return int(value)
    return None


def torchvision(model: str, device: torch.device) -> Pretrained:
    """A model of torchvision."""
    models = package("torchvision.models")
    network = made(f"torchvision:{model}", lambda: models.get_model(model, weights="DEFAULT"))
    for head in ("fc", "classifier", "heads", "head"):
        if hasattr(network, head):
            setattr(network, head, nn.Identity())
            break
    return Pretrained(f"torchvision:{model}", ready(network, device), network, *IMAGENET, 224)


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


def package(module: str) -> Any:
    """Import a module of a package that is optional; the error says how to install it."""
    try:
        return importlib.import_module(module)
    except Exception as error:  # a package built for another torch may raise RuntimeError and others
        reason = " ".join(str(error).split())[:120]
        raise UnveilError(
            f"this encoder needs the package {module} ({reason}): {registry.how_to_install(module)}"
        ) from None


def folder_of(module: str) -> Path:
    """The folder of an optional package, which is not imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise UnveilError(f"this encoder needs the package {module}: {registry.how_to_install(module)}")
    return Path(spec.origin).parent
