"""Self-supervision by rotation: the network predicts the number of quarter turns of an image."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unveil import rng
from unveil.data.loader import Batch
from unveil.losses import batch_contrastive
from unveil.methods.method import Method
from unveil.models.heads import linear_head
from unveil.models.model import Model
from unveil.settings import Rotation as RotationSettings


class Rotation(Method):
    """Four-way classification of the turn; optionally the known classes, and views of one image, at the same time."""

    def __init__(self, model: Model, config: RotationSettings) -> None:
        super().__init__(model)
        self.config, dim = config, model.encoder.dim
        self.rotation_head = linear_head(dim, 4, rng.generator(config.seed, "rotation head"))
        self.project: nn.Module = nn.Identity()
        if config.views_weight:
            draw, half = rng.generator(config.seed, "projection of views"), max(1, dim // 2)
            self.project = nn.Sequential(linear_head(dim, dim, draw), nn.ReLU(), linear_head(dim, half, draw))

    @property
    def n_views(self) -> int:
        """Views of each image in a batch."""
        return 2 if self.config.views_weight else 1

    def trained(self) -> list[nn.Parameter]:
        turn = [] if self.config.rotations == "upright" else [self.rotation_head]
        parts = [self.model.encoder, self.model.known_head, *turn, self.project]
        return [parameter for part in parts for parameter in part.parameters()]

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        x, turns = self._turned(batch)
        z = batch.whole(self.model.encode(x), copies=len(turns) // batch.size)
        losses = {} if config.rotations == "upright" else {"rotation": F.cross_entropy(self.rotation_head(z), turns)}
        if config.known_weight and batch.labeled:
            # the labeled rows come first; with all four turns of each image these are the upright copies
            known = F.cross_entropy(self.model.known_head(z[: batch.labeled]), batch.y)
            losses["known"] = config.known_weight * known
        if config.views_weight:
            items = torch.arange(batch.size, device=z.device).repeat(2)
            apart = batch_contrastive(self.project(z), items[:, None] == items, temperature=config.views_temperature)
            losses["views"] = config.views_weight * apart
        return losses

    def _turned(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The turned images of this process, and the turns of the whole batch. Views of one image have one turn."""
        x = batch.views[0]
        if self.config.rotations == "all":
            copies = torch.cat([torch.rot90(x, turn, (2, 3)) for turn in range(4)])  # (4 B, C, h, w)
            turns = torch.arange(4, device=x.device).repeat_interleave(batch.size)
            return _channels_last(copies), turns
        if self.config.rotations == "upright":
            return _channels_last(torch.cat(batch.views)), torch.zeros(batch.size * 2, device=x.device)
        generator = rng.generator(self.config.seed, "rotation", batch.epoch, batch.step, device=x.device)
        turns = torch.randint(4, (batch.size,), generator=generator, device=x.device)
        views = [turned(view, turns[batch.part]) for view in batch.views]
        return _channels_last(torch.cat(views)) if len(views) > 1 else views[0], turns.repeat(len(views))


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
