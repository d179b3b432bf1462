"""Features of items, and the inputs of the tail: without augmentation and without gradients.

Of processes that train together each encodes its part of the rows, and every one gets all of them.
"""

import torch
from torch import Tensor

from unveil import ranks
from unveil.data.loader import Rows, clean_draws
from unveil.data.views import Views
from unveil.models.model import Model

CHUNK = 500


@torch.no_grad()
def features(model: Model, views: Views, rows: Rows) -> Tensor:
    """Features (n, D) of rows without augmentation, with the model in evaluation mode."""
    model.eval()
    if len(rows) == 0:
        return torch.zeros(0, model.encoder.dim, device=model.device)
    together = ranks.current()
    own = rows[together.part(len(rows))]
    return together.gather(torch.cat([model.encode(x) for (x,) in views.stream(clean_draws(own, CHUNK))]), len(rows))


@torch.no_grad()
def trunk(model: Model, views: Views, rows: Rows) -> Tensor:
    """Trunk features (n, …) of rows without augmentation, with the model in evaluation mode."""
    model.eval()
    together = ranks.current()
    own = rows[together.part(len(rows))]
    return together.gather(torch.cat([model.trunk(x) for (x,) in views.stream(clean_draws(own, CHUNK))]), len(rows))


@torch.no_grad()
def inputs(model: Model, views: Views, rows: Rows) -> Tensor:
    """Inputs of the tail (n, …); for images, the mean over each channel."""
    model.eval()
    together = ranks.current()
    own = rows[together.part(len(rows))]
    parts = [model.trunk(x).float() for (x,) in views.stream(clean_draws(own, CHUNK))]
    flat = torch.cat([part.mean(dim=(2, 3)) if part.ndim == 4 else part for part in parts])
    return together.gather(flat, len(rows))
