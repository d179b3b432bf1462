"""Features of items, and the inputs of the tail: without augmentation and without gradients."""

import torch
from torch import Tensor

from unveil.data.loader import Rows, clean_draws
from unveil.data.views import Views
from unveil.models.model import Model

CHUNK = 500


@torch.no_grad()
def features(model: Model, views: Views, rows: Rows) -> Tensor:
    """Features (n, D) of rows without augmentation, with the model in evaluation mode."""
    model.eval()
    parts = [model.encode(x) for (x,) in views.stream(clean_draws(rows, CHUNK))]
    return torch.cat(parts) if parts else torch.zeros(0, model.encoder.dim, device=model.device)


@torch.no_grad()
def inputs(model: Model, views: Views, rows: Rows) -> Tensor:
    """Inputs of the tail (n, …); for images, the mean over each channel."""
    model.eval()
    parts = [model.trunk(x).float() for (x,) in views.stream(clean_draws(rows, CHUNK))]
    return torch.cat([part.mean(dim=(2, 3)) if part.ndim == 4 else part for part in parts])
