"""Checkpoints: one safetensors file with every tensor and number that a resumed run needs, never a pickle."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor, nn
from torch.optim import Optimizer

from unveil.errors import UnveilError
from unveil.files import write


def fresh() -> dict[str, Any]:
    """Progress of a stage that has not begun."""
    return {"epoch": 0, "step": 0, "sums": {}, "seconds": 0.0, "history": []}


def save(path: Path, module: nn.Module, optimizer: Optimizer, progress: dict[str, Any]) -> None:
    """Store the module's state (queues and positions too), the optimizer's and `progress` (JSON)."""
    tensors = {f"module.{name}": value.contiguous() for name, value in module.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{name}"] = value.contiguous()
    write(path, serialise(tensors, metadata={"progress": json.dumps(progress)}))


def restore(path: Path, module: nn.Module, optimizer: Optimizer) -> dict[str, Any] | None:
    """Bring module and optimizer to the stored state; returns `progress`, or None where nothing is stored."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            progress: dict[str, Any] = json.loads(file.metadata()["progress"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        module.load_state_dict({n.removeprefix("module."): t for n, t in tensors.items() if n.startswith("module.")})
    except (SafetensorError, RuntimeError, KeyError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise UnveilError(
            f"the checkpoint {path} cannot be used ({reason}): delete it to start this stage over"
        ) from None
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


def save_model(path: Path, module: nn.Module) -> None:
    """Write the weights alone."""
    write(path, serialise({name: value.contiguous() for name, value in module.state_dict().items()}))


def load_model(path: Path, module: nn.Module) -> None:
    """Load weights that `save_model` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            module.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except (SafetensorError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UnveilError(f"{path} cannot be used as weights ({reason}): delete it to train again") from None
