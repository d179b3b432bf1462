"""Checkpoints: one safetensors file with every tensor and number that a resumed run needs, never a pickle."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor, nn
from torch.optim import Optimizer

from unveil import checksums
from unveil.errors import UnveilError
from unveil.files import write

NAME = "checkpoint.safetensors"
UNREADABLE = (SafetensorError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, OSError, RecursionError)


def fresh() -> dict[str, Any]:
    """Progress of a stage that has not begun."""
    return {"epoch": 0, "step": 0, "sums": {}, "seconds": 0.0, "history": []}


def save(path: Path, module: nn.Module, optimizer: Optimizer, progress: dict[str, Any]) -> None:
    """Store the module's state (queues and positions too), the optimizer's and `progress` (JSON), with a checksum."""
    tensors = {f"module.{name}": value.contiguous() for name, value in module.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{name}"] = value.contiguous()
    _write(path, tensors, {"progress": json.dumps(progress)})


def restore(path: Path, module: nn.Module, optimizer: Optimizer, made_from: str = "") -> dict[str, Any] | None:
    """Bring module and optimizer to the stored state; returns `progress`, or None where nothing is stored.

    `made_from`: a hash of what is trained on. A checkpoint of anything else is an error.
    """
    if not path.exists():
        return None
    try:
        tensors, metadata = _read(path)
        progress: dict[str, Any] = json.loads(metadata["progress"])
        if progress.get("made_from", made_from) != made_from:
            raise ValueError("it belongs to other data, another pre-training or another machine.precision")
        module.load_state_dict({n.removeprefix("module."): t for n, t in tensors.items() if n.startswith("module.")})
    except UNREADABLE as error:
        problem = f"the checkpoint {path} cannot be used ({_reason(error)})"
        raise UnveilError(f"{problem}: delete it to start this stage over") from None
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
            parameter = parameters[int(index)]
            # fused updates need a buffer in the memory layout of its parameter; Adam's counter of steps is a scalar
            like = parameter if tensor.shape == parameter.shape else tensor
            buffer = torch.empty_like(like, device=parameter.device, requires_grad=False)
            optimizer.state[parameter][key] = buffer.copy_(tensor)
    return progress


def set_aside_damaged(path: Path) -> str:
    """Rename a file that `save` or `save_model` wrote and that cannot be read any more; returns a warning, or nothing.

    A file that belongs to another network or other data is not damaged and stays.
    """
    if not path.exists():
        return ""
    try:
        _read(path)
    except UNREADABLE as error:
        aside = checksums.set_aside(path)
        return f"{path} is damaged ({_reason(error)}): it was renamed to {aside.name}, and is made again"
    return ""


def set_aside_other_cache(path: Path, made_from: str) -> str:
    """Rename a checkpoint of the same discovery with another trunk cache; returns a warning, or nothing.

    What the cache holds depends on the room on the disk, and half a training with each would be the result of neither.
    """
    if not path.exists():
        return ""
    stored = str(json.loads(_read(path)[1].get("progress", "{}")).get("made_from", made_from))
    if stored == made_from or stored.partition(" ")[0] != made_from.partition(" ")[0]:
        return ""
    aside = checksums.set_aside(path)
    return (
        f"{path} was made with another trunk cache, when the disk had other room: it was renamed to {aside.name}, and "
        "this stage starts over"
    )


def save_model(path: Path, module: nn.Module) -> None:
    """Write the weights alone, with a checksum."""
    _write(path, {name: value.contiguous() for name, value in module.state_dict().items()}, {})


def load_model(path: Path, module: nn.Module) -> None:
    """Load weights that `save_model` wrote."""
    try:
        module.load_state_dict(_read(path)[0])
    except UNREADABLE as error:
        raise UnveilError(f"{path} cannot be used as weights ({_reason(error)}): delete it to train again") from None


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    write(path, checksums.sealed(serialize(tensors, metadata=metadata | checksums.METADATA)))


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file, whose checksum is verified."""
    checksums.check_sealed(path)
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 (no mapping)


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
