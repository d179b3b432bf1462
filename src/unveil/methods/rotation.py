"""Self-supervision by rotation: the network predicts the number of quarter turns of an image."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil import rng
from unveil.data.loader import Batch
from unveil.methods.method import Method
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.settings import Rotation as RotationSettings


class Rotation(Method):
    """Four-way classification of the turn; optionally the known classes at the same time."""

    def __init__(self, model: Model, config: RotationSettings) -> None:
        super().__init__(model)
        self.config = config
        self.rotation_head = linear_head(model.encoder.dim, 4, rng.generator(config.seed, "rotation head"))

    def trained(self) -> list[nn.Parameter]:
        return [*self.model.encoder.parameters(), *self.model.known_head.parameters(), *self.rotation_head.parameters()]

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        x, turns = self._turned(batch)
        z = batch.whole(self.model.encode(x), copies=4 if self.config.rotations == "all" else 1)
        losses = {"rotation": F.cross_entropy(self.rotation_head(z), turns)}
        if self.config.known_weight and batch.labelled:
            # the labelled rows come first; with all four turns of each image these are the upright copies
            known = F.cross_entropy(self.model.known_head(z[: batch.labelled]), batch.y)
            losses["known"] = self.config.known_weight * known
        return losses

    def _turned(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The turned images of this process, and the turns of the whole batch."""
        x = batch.views[0]
        if self.config.rotations == "all":
            copies = torch.cat([torch.rot90(x, turn, (2, 3)) for turn in range(4)])  # (4 B, C, h, w)
            turns = torch.arange(4, device=x.device).repeat_interleave(batch.size)
            return _channels_last(copies), turns
        generator = rng.generator(self.config.seed, "rotation", batch.epoch, batch.step, device=x.device)
        turns = torch.randint(4, (batch.size,), generator=generator, device=x.device)
        return turned(x, turns[batch.part]), turns


def turned(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate each image by its number of quarter turns. x: (B, C, s, s) with channels last in memory."""
    batch, channels, side, _ = x.shape
    positions = torch.arange(side * side, device=x.device).view(side, side)
    sources = torch.stack([torch.rot90(positions, turn).flatten() for turn in range(4)])[turns]  # (B, s²)
    pixels = x.permute(0, 2, 3, 1).reshape(batch, side * side, channels)
    moved = pixels.gather(1, sources[:, :, None].expand(-1, -1, channels))
    return moved.view(batch, side, side, channels).permute(0, 3, 1, 2)


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)
