"""`Model`: an encoder and its heads. A saved model contains its architecture."""

import contextlib
import hashlib
import json
from contextlib import AbstractContextManager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor, nn

from unveil import checksums, files, rng, settings
from unveil.errors import DamagedError, UnveilError
from unveil.models.encoder import Encoder, build_encoder
from unveil.models.heads import Head, Heads, describe_head, drawn
from unveil.models.resnet import at_least_float32, frozen
from unveil.tables import build

CHUNK = 16  # images that go through the frozen trunk at a time on a CPU: their activations stay in its cache
FORMAT = 1  # version of the file format; files of newer versions are refused
KEY = "unveil model"
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Model(nn.Module):
    """Encoder, known head, novel head and the heads that a method adds.

    After `freeze_trunk` a folded copy of the trunk does the work without a gradient; after `freeze_trunk_weights` the
    trunk itself does, with a BatchNorm that goes on as in training; after `skip_trunk` the inputs already are the
    trunk's outputs.
    """

    def __init__(self, encoder: Encoder, known_head: Head, novel_head: Head, precision: torch.dtype) -> None:
        super().__init__()
        self.encoder = encoder
        self.known_head: Head = known_head
        self.novel_head: Head = novel_head
        self.joint_head: Head | None = None  # over known and novel classes, where a method trains one
        self.further_heads = nn.ModuleDict()  # other heads that a method trains, by name
        self.comparable = False  # whether logits of known_head and novel_head are on one scale
        self.precision = precision
        self._inference_trunk: list[nn.Module] = []  # in a list, so that it is no part of the state
        self._trunk_weights_frozen = False

    def freeze_trunk(self) -> None:
        """Run the trunk folded and without gradient from now on."""
        self._inference_trunk = [frozen(self.encoder.trunk, self.precision)]

    def freeze_trunk_weights(self) -> None:
        """Run the trunk without gradient from now on; in training its BatchNorm takes the statistics of each batch, and
        its running statistics move."""
        self._inference_trunk, self._trunk_weights_frozen = [], True

    def skip_trunk(self) -> None:
        """Take the trunk's outputs as inputs from now on."""
        self._inference_trunk = [nn.Identity()]

    def trunk(self, x: Tensor) -> Tensor:
        """Trunk features of a batch."""
        if not self._inference_trunk:
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self._trunk_weights_frozen), self.autocast():
                return self.encoder.trunk(x)  # type: ignore[no-any-return]
        return in_chunks(self._inference_trunk[0], x.to(self.precision))

    def encode(self, x: Tensor) -> Tensor:
        """z (B, D), in float32 also where the encoder computes in less."""
        with self.autocast():
            return at_least_float32(self.encoder.tail(self.trunk(x)))

    def trained(self) -> list[nn.Parameter]:
        """The parameters that may change: all, or tail and heads once the trunk is frozen."""
        heads = [self.known_head, self.novel_head, self.joint_head, self.further_heads]
        frozen_trunk = bool(self._inference_trunk) or self._trunk_weights_frozen
        parts = [self.encoder.tail if frozen_trunk else self.encoder, *heads]
        return [parameter for part in parts if part is not None for parameter in part.parameters()]

    def joint(self, z: Tensor) -> Tensor | None:
        """Logits (B, known + novel) of all classes on one scale; None where the heads were trained separately."""
        if self.joint_head is not None:
            return self.joint_head(z)  # type: ignore[no-any-return]
        return torch.cat([self.known_head(z), self.novel_head(z)], dim=1) if self.comparable else None

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(chain(self.known_head.parameters(), self.known_head.buffers())).device

    def autocast(self) -> AbstractContextManager[object]:
        """Mixed precision where it was chosen."""
        if self.precision.itemsize >= 4:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.precision)

    def save(self, path: Path) -> None:
        """Weights and architecture in one safetensors file."""
        save_model(self, path)

    @staticmethod
    def load(path: Path) -> "Model":
        """What `save` wrote, on the CPU and in evaluation mode."""
        model = load_model(path)
        if not isinstance(model, Model):
            raise UnveilError(f"{path} holds heads without an encoder: nothing was trained in that fit")
        return model


def save_model(model: "Model | Heads", path: Path) -> None:
    """Weights and architecture in one safetensors file."""
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    description = json.dumps({**_architecture(model), "digest": _digest(state)})
    files.write(path, checksums.sealed(serialize(state, metadata={KEY: description, **checksums.METADATA})))


def load_model(path: Path) -> "Model | Heads":
    """What `save_model` wrote, on the CPU and in evaluation mode."""
    if not path.is_file():
        raise UnveilError(f"there is no model at {path}: check the path")
    try:
        checksums.check_sealed(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError, AttributeError, RecursionError) as error:
        what = "is damaged" if isinstance(error, DamagedError) else "cannot be read"
        reason = str(error).splitlines()[0]
        raise UnveilError(f"{path} {what} ({reason}): copy it again, or train again") from None
    if KEY not in metadata:
        raise UnveilError(f"{path} holds weights without an architecture: give a file that Model.save wrote")
    newer = False
    try:
        description = json.loads(metadata[KEY])
        if newer := description["format"] > FORMAT:
            raise ValueError("its format is newer")
        model = _built(description)
        model.load_state_dict(state)
        if description["digest"] != _digest(state):
            raise ValueError("its content has changed")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if newer:
            raise UnveilError(f"{path} was written by a newer unveil: update unveil to load it") from None
        reason = str(error).splitlines()[0]
        raise UnveilError(f"{path} is damaged ({reason}): copy it again, or train again") from None
    return model.eval()


def _architecture(model: Model | Heads) -> dict[str, Any]:
    if isinstance(model, Heads):
        heads = {"known": describe_head(model.known_head), "novel": describe_head(model.novel_head)}
        return {"format": FORMAT, "heads": heads}
    encoder = model.encoder
    if encoder.config is None:
        raise UnveilError("an encoder that was not made by build_encoder cannot be saved: make it with build_encoder")
    every: dict[str, Head | None] = {"known": model.known_head, "novel": model.novel_head, "joint": model.joint_head}
    return {
        "format": FORMAT,
        "encoder": {key: value for key, value in asdict(encoder.config).items() if key != "weights"},
        "shape": list(encoder.shape),
        "heads": {name: describe_head(head) for name, head in every.items() if head is not None},
        "further_heads": {name: describe_head(head) for name, head in model.further_heads.items()},
        "comparable": model.comparable,
        "precision": str(model.precision).removeprefix("torch."),
    }


def _built(description: dict[str, Any]) -> Model | Heads:
    """A model of this architecture; its weights are still those of a fresh one."""
    heads = {name: drawn(0, head) for name, head in description["heads"].items()}
    if "encoder" not in description:
        return Heads(heads["known"], heads["novel"])
    config = build(settings.Encoder, description["encoder"], "encoder.")
    encoder = build_encoder(config, tuple(description["shape"]), rng.generator(0, "loaded"))
    model = Model(encoder, heads["known"], heads["novel"], PRECISIONS[description["precision"]])
    model.joint_head = heads.get("joint")
    model.further_heads.update({name: drawn(0, head) for name, head in description["further_heads"].items()})
    model.comparable = bool(description["comparable"])
    return model


def _digest(state: dict[str, Tensor]) -> str:
    """A hash of the weights, which reveals a damaged file."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(state.items()):
        digest.update(name.encode())
        digest.update(value.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


@torch.no_grad()
def in_chunks(trunk: nn.Module, x: Tensor) -> Tensor:
    """A frozen trunk on a batch; on a CPU a few images at a time."""
    if x.device.type != "cpu" or x.ndim < 4 or len(x) <= CHUNK or isinstance(trunk, nn.Identity):
        return trunk(x)  # type: ignore[no-any-return]
    first: Tensor = trunk(x[:CHUNK])
    form = torch.channels_last if first.ndim == 4 else torch.contiguous_format
    out = torch.empty((len(x), *first.shape[1:]), dtype=first.dtype, memory_format=form)
    out[:CHUNK] = first
    for start in range(CHUNK, len(x), CHUNK):
        out[start : start + CHUNK] = trunk(x[start : start + CHUNK])
    return out
