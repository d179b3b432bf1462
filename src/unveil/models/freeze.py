"""A trunk that is really frozen: BatchNorm fixed and folded into the convolutions, no gradient."""

import copy

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from unveil.models.resnet import ConvBN, channels_last


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
