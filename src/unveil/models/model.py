"""What is trained and stored: an encoder and two heads."""

import contextlib
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from unveil.models.encoder import Encoder
from unveil.models.freeze import frozen

CHUNK = 16
"""Images that go through the frozen trunk at a time on a CPU: their activations stay in its cache."""


class Model(nn.Module):
    """Encoder, known head and novel head, and how they are run.

    After `freeze_trunk` a folded copy of the trunk does the work without a gradient; after `skip_trunk` the inputs
    already are the trunk's outputs.
    """

    def __init__(self, encoder: Encoder, known_head: nn.Linear, novel_head: nn.Linear, precision: torch.dtype) -> None:
        super().__init__()
        self.encoder, self.known_head, self.novel_head = encoder, known_head, novel_head
        self.joint_head: nn.Linear | None = None  # over known and novel classes, where a method trains one
        self.precision = precision
        self._inference_trunk: list[nn.Module] = []  # in a list, so that it is no part of the state

    def freeze_trunk(self) -> None:
        """Run the trunk folded and without gradient from now on."""
        self._inference_trunk = [frozen(self.encoder.trunk, self.precision)]

    def skip_trunk(self) -> None:
        """Take the trunk's outputs as inputs from now on."""
        self._inference_trunk = [nn.Identity()]

    def trunk(self, x: Tensor) -> Tensor:
        """Trunk features of a batch."""
        if not self._inference_trunk:
            with self.autocast():
                return self.encoder.trunk(x)  # type: ignore[no-any-return]
        return in_chunks(self._inference_trunk[0], x.to(self.precision))

    def encode(self, x: Tensor) -> Tensor:
        """z (B, D) in float32."""
        with self.autocast():
            return self.encoder.tail(self.trunk(x)).float()  # type: ignore[no-any-return]

    def trained(self) -> list[nn.Parameter]:
        """The parameters that may change: all, or tail and heads once the trunk is frozen."""
        parts = [self.encoder.tail if self._inference_trunk else self.encoder, self.known_head, self.novel_head]
        return [parameter for part in parts for parameter in part.parameters()]

    def autocast(self) -> AbstractContextManager[object]:
        """Mixed precision where it was chosen."""
        if self.precision == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.known_head.weight.device.type, self.precision)


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
