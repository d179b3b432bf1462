"""The encoder: input -> trunk -> tail -> z."""

import math
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from unveil import settings
from unveil.errors import UnveilError
from unveil.models.resnet import channels_last, resnet


class Encoder(nn.Module):
    """A trunk that is frozen in discovery and a tail that trains."""

    config: settings.Encoder | None = None
    """The settings it was built from; None for an encoder that was not made by `build_encoder`."""
    shape: tuple[int, ...] = ()  # shape of an input item

    def __init__(self, trunk: nn.Module, tail: nn.Module, dim: int) -> None:
        super().__init__()
        self.trunk, self.tail, self.dim = trunk, tail, dim

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.tail(self.trunk(x))
        return z


def build_encoder(config: settings.Encoder, shape: tuple[int, ...], generator: torch.Generator) -> Encoder:
    """The encoder of a recipe for items of `shape`, (channels, height, width) or (features,), freshly drawn."""
    if config.name not in ("mlp", "tail", "identity") and len(shape) == 1:
        raise UnveilError(f"the encoder '{config.name}' takes images, not vectors: set encoder.name=mlp")
    with torch.random.fork_rng(devices=[]):  # layers draw from the global stream when they are built
        torch.manual_seed(generator.initial_seed())
        encoder = Encoder(*_parts(config, shape))
    encoder.config, encoder.shape = config, tuple(shape)
    if config.weights is not None:
        _load(encoder, Path(config.weights))
    channels_last(encoder)
    return encoder


def _parts(config: settings.Encoder, shape: tuple[int, ...]) -> tuple[nn.Module, nn.Module, int]:
    match config.name:
        case "resnet18":
            return resnet(shape[0])
        case "resnet18-imagenet":
            return resnet(shape[0], kind="imagenet")
        case "compact":
            side, blocks, strides = config.space_to_depth, config.blocks, config.strides
            if shape[1] % side or shape[2] % side:
                raise UnveilError(
                    f"images of {shape[1]}x{shape[2]} do not divide into squares of {side}: "
                    "set encoder.space_to_depth=1, or for image files another augment.size"
                )
            return resnet(shape[0], width=config.width, blocks=blocks, strides=strides, space_to_depth=side)
        case "mlp":
            trunk = nn.Sequential(nn.Flatten(), *_dense(math.prod(shape), config.width))
            return trunk, nn.Sequential(*_dense(config.width, config.width)), config.width
        case "identity":
            return nn.Flatten(), nn.Identity(), math.prod(shape)
        case "tail":
            return nn.Flatten(), nn.Sequential(*_dense(math.prod(shape), config.width)), config.width


def _dense(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]


def load_head(head: nn.Module, config: settings.Encoder, name: str) -> bool:
    """Set a head to that of the file `encoder.weights`, by its name there; returns whether the file has one."""
    if config.weights is None:
        return False
    weights, prefix = _read(Path(config.weights)), f"{name}."
    state = {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
    if not state:
        return False
    try:
        head.load_state_dict(state)
    except RuntimeError:
        there, here = (tuple(one["weight"].shape) for one in (state, head.state_dict()))
        raise UnveilError(
            f"encoder.weights: the {name} of {config.weights} is {there}, and {here} is needed: choose the classes "
            "that it was trained on, or import the checkpoint again with --no-heads"
        ) from None
    return True


def _load(encoder: Encoder, path: Path) -> None:
    try:
        encoder.load_state_dict({name: value for name, value in _read(path).items() if "_head." not in name})
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise UnveilError(f"encoder.weights: {path} does not fit the encoder ({reason})") from None


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise UnveilError(f"encoder.weights: no file at {path}")
    try:
        return load_file(path)
    except SafetensorError as error:
        reason = str(error).splitlines()[0]
        raise UnveilError(f"encoder.weights: {path} does not fit the encoder ({reason})") from None
