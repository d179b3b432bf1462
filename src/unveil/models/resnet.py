"""Residual networks as a trunk (stem and all groups but the last) and a tail (the last group and the pooling).

Three forms share this file: the paper's ResNet-18 for 32x32 images, the ResNet-18 for ImageNet, and a compact one
for machines without an accelerator.
"""

import copy
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


class ConvBN(nn.Module):
    """A convolution and its BatchNorm, kept together so that a frozen trunk can fold one into the other."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(self.conv(x))
        return out


class PadShortcut(nn.Module):
    """A shortcut without parameters: average pooling, and zeros for the channels that the input lacks."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride, self.extra = stride, outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        if self.stride > 1:
            x = F.avg_pool2d(x, self.stride, ceil_mode=True)
        return F.pad(x, (0, 0, 0, 0, 0, self.extra)) if self.extra else x


class Block(nn.Module):
    """The basic residual block: two 3x3 convolutions."""

    def __init__(self, inputs: int, outputs: int, stride: int, shortcut: Literal["pad", "conv"]) -> None:
        super().__init__()
        self.first = ConvBN(inputs, outputs, 3, stride)
        self.second = ConvBN(outputs, outputs, 3)
        if stride == 1 and inputs == outputs:
            self.shortcut: nn.Module = nn.Identity()
        elif shortcut == "pad":
            self.shortcut = PadShortcut(inputs, outputs, stride)
        else:
            self.shortcut = ConvBN(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.second(F.relu_(self.first(x)))  # in place: no gradient needs what is overwritten
        return F.relu_(out.add_(self.shortcut(x)))


class Pool(nn.Module):
    """The mean over the image: (B, D, h, w) -> (B, D)."""

    def forward(self, x: Tensor) -> Tensor:
        return at_least_float32(x).mean(dim=(2, 3))


def at_least_float32(x: Tensor) -> Tensor:
    """bfloat16 and float16 become float32; float64 stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def channels_last(module: nn.Module) -> nn.Module:
    """The module with weights in the memory layout that is fastest on CPUs and tensor cores."""
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def stem(channels: int, width: int, kind: Literal["cifar", "imagenet"], space_to_depth: int = 1) -> nn.Sequential:
    """The first convolution; folding squares of pixels into channels first keeps every pixel at less cost."""
    fold = [nn.PixelUnshuffle(space_to_depth)] if space_to_depth > 1 else []
    channels *= space_to_depth**2
    if kind == "imagenet":
        return nn.Sequential(*fold, ConvBN(channels, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1))
    return nn.Sequential(*fold, ConvBN(channels, width, 3), nn.ReLU(inplace=True))


def groups(
    width: int, blocks: Sequence[int], strides: Sequence[int], shortcut: Literal["pad", "conv"]
) -> list[nn.Sequential]:
    """Groups of residual blocks; each group after the first doubles the channels."""
    built, inputs = [], width
    for index, (count, stride) in enumerate(zip(blocks, strides, strict=True)):
        outputs = width * 2**index
        later = [Block(outputs, outputs, 1, shortcut) for _ in range(count - 1)]
        built.append(nn.Sequential(Block(inputs, outputs, stride, shortcut), *later))
        inputs = outputs
    return built


def resnet(
    channels: int,
    *,
    width: int = 64,
    blocks: Sequence[int] = (2, 2, 2, 2),
    strides: Sequence[int] = (1, 2, 2, 2),
    kind: Literal["cifar", "imagenet"] = "cifar",
    space_to_depth: int = 1,
) -> tuple[nn.Sequential, nn.Sequential, int]:
    """(trunk, tail, dimension of the features)."""
    *lower, last = groups(width, blocks, strides, "conv" if kind == "imagenet" else "pad")
    trunk = nn.Sequential(stem(channels, width, kind, space_to_depth), *lower)
    return trunk, nn.Sequential(last, Pool()), width * 2 ** (len(blocks) - 1)


def frozen(trunk: nn.Module, precision: torch.dtype = torch.float32) -> nn.Module:
    """A copy of the trunk for inference alone, with its weights in `precision` once and for all."""
    trunk = copy.deepcopy(trunk).eval().requires_grad_(False)
    _fold(trunk)
    return channels_last(trunk.to(precision))


def _fold(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, ConvBN):
            setattr(module, name, fuse_conv_bn_eval(child.conv, child.norm))
        else:
            _fold(child)
    if isinstance(module, nn.Sequential):
        for index in range(len(module) - 1):
            linear, norm = module[index], module[index + 1]
            if isinstance(linear, nn.Linear) and isinstance(norm, nn.BatchNorm1d):
                module[index], module[index + 1] = fuse_linear_bn_eval(linear, norm), nn.Identity()
