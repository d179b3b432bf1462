"""Vectors at unit length, for features of any size and precision."""

import torch
import torch.nn.functional as F
from torch import Tensor

LARGE = 1e15  # vectors with larger values are scaled down first: the squares of these would not fit float32


def at_least_float32(x: Tensor) -> Tensor:
    """The tensor in float32 where it is in half precision, in which sums and exponentials of the losses do not fit."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def unit(x: Tensor) -> Tensor:
    """The rows of x (n, d), each divided by its length, in float32 or float64.

    A row of zeros stays zeros and gets no gradient: it has no direction, and the limit of its gradient is infinite. In
    float16 the same holds of rows so short that their gradient would not fit.
    """
    shortest = 2.0**-10 if x.dtype == torch.float16 else 1e-12
    x = at_least_float32(x)
    if x.shape[1] == 0:
        return x
    largest = x.detach().abs().amax(dim=1, keepdim=True)  # (n, 1)
    x = x / largest.where(largest > LARGE, 1.0)  # by 1 for all but huge rows, which changes nothing
    return F.normalize(x.where(largest > shortest, 0.0), dim=1)


def scaled_down(*sets: Tensor) -> tuple[Tensor, ...]:
    """Huge vectors divided by the largest value in any of the sets, which changes no cosine; others as they are."""
    largest = torch.stack([x.abs().amax() for x in sets]).amax()
    size = largest.where(largest > LARGE, 1.0)
    return tuple(x / size for x in sets)
