"""Published ResNet-18 checkpoints (AutoNovel, NCL) as weights for `encoder.weights`.

    unveil import-checkpoint resnet_cifar10.pth start.safetensors
    unveil run cifar10 --set encoder.weights=start.safetensors --set rotation.epochs=0 --set supervised.epochs=0

Their names are `conv1`, `bn1`, `layer1.0.conv1`, …, `head1` (known classes) and `head2` (novel classes). Files are read
by torch's restricted loader, which executes nothing.
"""

import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save as serialize
from torch import Tensor

from unveil import files, rng, settings
from unveil.errors import UnveilError
from unveil.models.encoder import build_encoder

WRAPPERS = ("state_dict", "model_state_dict", "model", "net")
"""Keys under which some files keep the weights, beside other things."""
RULES = (
    (r"^conv1\.", "trunk.0.0.conv."),
    (r"^bn1\.", "trunk.0.0.norm."),
    (r"^layer([123])\.", r"trunk.\1."),
    (r"^layer4\.", "tail.0."),
    (r"\.conv1\.", ".first.conv."),
    (r"\.bn1\.", ".first.norm."),
    (r"\.conv2\.", ".second.conv."),
    (r"\.bn2\.", ".second.norm."),
    (r"\.downsample\.0\.", ".shortcut.conv."),
    (r"\.downsample\.1\.", ".shortcut.norm."),
    (r"^head1\.", "known_head."),
    (r"^head2\.", "novel_head."),
)
HEADS = ("known_head.", "novel_head.")


@dataclass(frozen=True)
class Imported:
    """What was in a file."""

    encoder: str  # the encoder it fits: resnet18 or resnet18-imagenet
    heads: dict[str, int]  # classes of each head that was kept, by name
    ignored: tuple[str, ...]  # names that belong to neither encoder nor heads


def import_checkpoint(source: Path, target: Path, *, heads: bool = True) -> Imported:
    """Write the weights of a published checkpoint as a safetensors file for `encoder.weights`."""
    tensors = {name: value for name, value in _read(source).items() if isinstance(value, Tensor)}
    state = {ours(name): value.contiguous().float() for name, value in tensors.items() if value.is_floating_point()}
    first = state.get("trunk.0.0.conv.weight")
    if first is None or first.ndim != 4:
        raise UnveilError(f"{source} has no first convolution 'conv1': give a ResNet-18 of AutoNovel or NCL")
    name: Literal["resnet18", "resnet18-imagenet"] = "resnet18-imagenet" if first.shape[-1] == 7 else "resnet18"
    encoder = build_encoder(settings.Encoder(name=name), (first.shape[1], 32, 32), rng.generator(0, "import"))
    wanted = encoder.state_dict()
    counters = {key: value for key, value in wanted.items() if key.endswith("num_batches_tracked")}
    found = counters | {key: state[key].to(value.dtype) for key, value in wanted.items() if key in state}
    if missing := [key for key in wanted if key not in found]:
        raise UnveilError(f"{source} lacks {len(missing)} weights of {name}, such as {missing[0]}: give a ResNet-18")
    if wrong := [key for key, value in wanted.items() if found[key].shape != value.shape]:
        shapes = f"{tuple(found[wrong[0]].shape)} and not {tuple(wanted[wrong[0]].shape)}"
        raise UnveilError(f"{source} does not fit {name}: {wrong[0]} is {shapes}; give a ResNet-18 of the usual width")
    kept = {key: value for key, value in state.items() if heads and key.startswith(HEADS)}
    files.write(target, serialize({key: value.contiguous() for key, value in (found | kept).items()}))
    classes = {key.partition(".")[0]: len(value) for key, value in kept.items() if key.endswith(".weight")}
    return Imported(name, classes, tuple(key for key in state if key not in wanted and not key.startswith(HEADS)))


def ours(name: str) -> str:
    """The name that a weight of a published file has here."""
    name = name.removeprefix("module.")
    for pattern, replacement in RULES:
        name = re.sub(pattern, replacement, name)
    return name


def _read(source: Path) -> Mapping[str, Any]:
    if not source.is_file():
        raise UnveilError(f"there is no file {source}: check the path")
    try:
        content = torch.load(source, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UnveilError(
            f"{source} holds more than tensors and is not loaded, because that could execute code: "
            "save its state_dict() alone, with torch.save"
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnveilError(f"{source} cannot be read ({reason}): give a file that torch.save wrote") from None
    for key in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise UnveilError(f"{source} holds no weights by name: save the state_dict() of a model, with torch.save")
    return content
