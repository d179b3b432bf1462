"""Augmentation as batched tensor operations: one call for a whole batch, on the device of the batch."""

import torch
import torch.nn.functional as F
from torch import Tensor

from unveil.settings import Augment


def draw(x: Tensor, config: Augment, generator: torch.Generator) -> Tensor:
    """One random view of each image. x: uint8 (B, h, w, C); returns the same layout, uint8 or float in 0..255."""
    if config.shift or config.flip:
        x = shift_flip(x, config.shift, config.padding, config.flip, generator)
    if config.crop is not None:
        x = resized_crop(x, config.crop, generator)
    return recolored(x, config, generator)


def recolored(x: Tensor, config: Augment, generator: torch.Generator) -> Tensor:
    """Images of any size with other colors. x: (B, h, w, C) in 0..255; nothing to change: x itself."""
    if config.jitter:
        x = jitter(x, config.jitter, generator)
    if config.gray:
        x = gray(x, config.gray, generator)
    return x


def normalize(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(B, h, w, C) in 0..255 -> float (B, C, h, w) with channels last in memory."""
    batch, height, width, channels = x.shape
    # repeated for a whole row of pixels: long inner loops are faster
    scale, offset = (1 / (std * 255)).repeat(width), (-mean / std).repeat(width)
    rows = torch.addcmul(offset, x.reshape(batch, height, width * channels).float(), scale)
    return rows.view(batch, height, width, channels).permute(0, 3, 1, 2)


def shift_flip(x: Tensor, shift: int, padding: str, flip: bool, generator: torch.Generator) -> Tensor:
    """Translate each image by up to `shift` pixels in both directions and mirror a random half of them.

    Rows are moved first, then columns: two gathers along one dimension are far cheaper than indexing by three tensors.
    """
    batch, height, width, channels = x.shape
    dy, dx = torch.randint(-shift, shift + 1, (2, batch, 1), generator=generator, device=x.device)
    rows = torch.arange(height, device=x.device) + dy  # (B, h): where each output row comes from
    columns = torch.arange(width, device=x.device) + dx
    if flip:
        mirrored = torch.rand(batch, 1, generator=generator, device=x.device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    valid = None
    if padding == "zero":
        valid = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    rows, columns = _reflect(rows, height), _reflect(columns, width)
    first = torch.arange(0, batch * height, height, device=x.device)[:, None]  # (B, 1): an image's first row
    moved = x.reshape(batch * height, width * channels).index_select(0, (first + rows).flatten())
    values = columns[:, :, None] * channels + torch.arange(channels, device=x.device)  # (B, w, C)
    values = values.view(batch, 1, width * channels).expand(-1, height, -1)
    moved = moved.view(batch, height, width * channels).gather(2, values).view(x.shape)
    return moved if valid is None else moved * valid[..., None]


def resized_crop(x: Tensor, scale: tuple[float, float], generator: torch.Generator) -> Tensor:
    """Cut a square of a random share of the area out of each image and scale it back to full size."""
    batch = len(x)
    draws = torch.rand(3, batch, generator=generator, device=x.device)
    side = (scale[0] + (scale[1] - scale[0]) * draws[0]).sqrt()
    center = (2 * draws[1:] - 1) * (1 - side)
    theta = torch.zeros(batch, 2, 3, device=x.device)
    theta[:, 0, 0] = theta[:, 1, 1] = side
    theta[:, :, 2] = center.T
    images = x.permute(0, 3, 1, 2).float()
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False).permute(0, 2, 3, 1)


def jitter(x: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Change brightness, contrast and saturation by factors from 1 − strength to 1 + strength."""
    factors = 1 + strength * (2 * torch.rand(3, len(x), 1, 1, 1, generator=generator, device=x.device) - 1)
    x = x.float() * factors[0]
    mean = x.mean(dim=(1, 2, 3), keepdim=True)
    x = (x - mean) * factors[1] + mean
    uncolored = x.mean(dim=3, keepdim=True)
    return ((x - uncolored) * factors[2] + uncolored).clamp(0, 255)


def gray(x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Take the colors out of a random share of the images."""
    chosen = torch.rand(len(x), 1, 1, 1, generator=generator, device=x.device) < share
    return torch.where(chosen, x.float().mean(dim=3, keepdim=True), x.float())


def noisy(x: Tensor, strength: float | Tensor, generator: torch.Generator) -> Tensor:
    """Add Gaussian noise to normalized inputs; `strength` is in units of their spread, one value or one per feature."""
    return x + strength * torch.randn(x.shape, generator=generator, device=x.device)


def dropped(x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Set a random share of the features of each normalized item to their mean, 0."""
    return x * (torch.rand(x.shape, generator=generator, device=x.device) >= share)


def mixed(x: Tensor, largest_share: float, generator: torch.Generator) -> Tensor:
    """Move each item toward the nearest other item of the batch, by up to `largest_share` of the distance."""
    if len(x) < 2:
        return x
    distances = torch.cdist(x, x).fill_diagonal_(torch.inf)
    step = largest_share * torch.rand(len(x), 1, generator=generator, device=x.device)
    return torch.lerp(x, x[distances.argmin(dim=1)], step)


def _reflect(position: Tensor, size: int) -> Tensor:
    """Positions outside 0..size-1 mirrored back in, the edge itself not repeated."""
    position = position.abs()
    return ((size - 1) - ((size - 1) - position).abs()).clamp_min(0)
