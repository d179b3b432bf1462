"""Features of items, and the inputs of the tail: without augmentation and without gradients.

Of processes that train together each encodes its part of the rows, and every one gets all of them.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from unveil import ranks
from unveil.data.loader import Rows, clean_draws
from unveil.data.views import Views
from unveil.models.model import Model

CHUNK = 500


def features(model: Model, views: Views, rows: Rows) -> Tensor:
    """Features (n, D) of rows without augmentation, with the model in evaluation mode."""
    if len(rows) == 0:
        model.eval()
        return torch.zeros(0, model.encoder.dim, device=model.device)
    return _encoded(model.encode, model, views, rows)


def trunk(model: Model, views: Views, rows: Rows) -> Tensor:
    """Inputs of the tail (n, …) as they are."""
    return _encoded(model.trunk, model, views, rows)


def inputs(model: Model, views: Views, rows: Rows) -> Tensor:
    """Inputs of the tail (n, …); for images, the mean over each channel."""

    def mean(x: Tensor) -> Tensor:
        h = model.trunk(x).float()
        return h.mean(dim=(2, 3)) if h.ndim == 4 else h

    return _encoded(mean, model, views, rows)


@torch.no_grad()
def _encoded(encode: Callable[[Tensor], Tensor], model: Model, views: Views, rows: Rows) -> Tensor:
    model.eval()
    together = ranks.current()
    own = rows[together.part(len(rows))]
    return together.gather(torch.cat([encode(x) for (x,) in views.stream(clean_draws(own, CHUNK))]), len(rows))
