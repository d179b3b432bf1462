"""What is trained and stored: an encoder and two heads."""

import contextlib
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from unveil.nn.encoder import Encoder
from unveil.nn.freeze import frozen


class Model(nn.Module):
    """Encoder, known head and novel head, and how they are run.

    After `freeze_trunk` a folded copy of the trunk does the work without a gradient; after `skip_trunk` the inputs
    already are the trunk's outputs.
    """

    def __init__(self, encoder: Encoder, known_head: nn.Linear, novel_head: nn.Linear, precision: torch.dtype) -> None:
        super().__init__()
        self.encoder, self.known_head, self.novel_head = encoder, known_head, novel_head
        self.precision = precision
        self._inference_trunk: list[nn.Module] = []  # in a list, so that it is no part of the state

    def freeze_trunk(self) -> None:
        """Run the trunk folded and without gradient from now on."""
        self._inference_trunk = [frozen(self.encoder.trunk)]

    def skip_trunk(self) -> None:
        """Take the trunk's outputs as inputs from now on."""
        self._inference_trunk = [nn.Identity()]

    def trunk(self, x: Tensor) -> Tensor:
        """Trunk features of a batch."""
        with self.autocast():
            if not self._inference_trunk:
                return self.encoder.trunk(x)  # type: ignore[no-any-return]
            with torch.no_grad():
                return self._inference_trunk[0](x)  # type: ignore[no-any-return]

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
