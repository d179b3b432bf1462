"""What a machine can do at best: the rate of a large matrix product, and of a network's convolutions alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

Call = Callable[[], object]
CHUNK = 32  # images of a convolution that is measured in pieces as well as in one: small pieces stay in the cache


@dataclass(frozen=True)
class Layer:
    """A convolution alone: its rate forward (FLOP/s), and its time for a batch."""

    name: str
    rate: float
    seconds: float


def matrix_rate(size: int, device: torch.device, dtype: torch.dtype, repeats: int) -> float:
    """FLOP/s of the product of two square matrices."""
    a, b = torch.randn(2, size, size, device=device).to(dtype)
    return 2 * size**3 / min(times(lambda: a @ b, device, repeats))


def convolutions(part: nn.Module, x: Tensor, dtype: torch.dtype, repeats: int, *, backward: bool) -> list[Layer]:
    """Every convolution of a part of a network alone, with inputs of the shape that it gets there.

    With `backward` the gradients count too: of the weights, and of the input of every layer but the first.
    """
    seen: list[tuple[nn.Conv2d, torch.Size]] = []
    found = [module for module in part.modules() if isinstance(module, nn.Conv2d)]
    hooks = [one.register_forward_pre_hook(lambda conv, given: seen.append((conv, given[0].shape))) for one in found]
    with torch.no_grad():
        part(x[:2].float())
    for hook in hooks:
        hook.remove()
    layers = []
    for conv, shape in seen:
        given = torch.randn(len(x), *shape[1:], device=x.device).relu_().to(dtype)
        layers.append(_convolution(conv, given, repeats, backward=backward, first=conv is seen[0][0]))
    return layers


def _convolution(conv: nn.Conv2d, x: Tensor, repeats: int, *, backward: bool, first: bool) -> Layer:
    """On channels-last tensors; forward in one piece or in chunks, whichever is faster."""
    x = x.contiguous(memory_format=torch.channels_last)
    weight = conv.weight.detach().to(x.dtype).contiguous(memory_format=torch.channels_last)

    def run(x: Tensor) -> Tensor:
        return F.conv2d(x, weight, None, conv.stride, conv.padding)

    pieces = [x[i : i + CHUNK] for i in range(0, len(x), CHUNK)]
    in_pieces = times(lambda: [run(piece) for piece in pieces], x.device, repeats)
    forward = min(*times(lambda: run(x), x.device, repeats), *in_pieces)
    name = f"convolution {conv.in_channels}-{conv.out_channels}, {x.shape[2]}x{x.shape[3]}, stride {conv.stride[0]}"
    rate = flops(lambda: run(x)) / forward
    if not backward:
        return Layer(name, rate, forward)
    wanted = [weight.requires_grad_()] if first else [weight.requires_grad_(), x.requires_grad_()]
    ones = torch.ones_like(run(x))
    return Layer(name, rate, min(times(lambda: torch.autograd.grad(run(x), wanted, ones), x.device, repeats)))


def flops(call: Call) -> float:
    """Floating-point operations of the matrix products and convolutions of a call."""
    with FlopCounterMode(display=False) as counter:
        call()
    return float(counter.get_total_flops())


def times(call: Call, device: torch.device, repeats: int) -> list[float]:
    """Seconds of each of `repeats` calls, after one that does not count."""
    seconds = []
    for _ in range(repeats + 1):
        synchronize(device)
        begun = time.perf_counter()
        call()
        synchronize(device)
        seconds.append(time.perf_counter() - begun)
    return seconds[1:]


def synchronize(device: torch.device) -> None:
    """Wait for the device, whose calls return before they are done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
