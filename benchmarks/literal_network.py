"""The network of the published procedure: NCHW, frozen layers keep updating their BatchNorm."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Two 3x3 convolutions; the shortcut pools and appends channels of zeros."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.stride, self.inputs, self.outputs = stride, inputs, outputs

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            x = F.avg_pool2d(x, 2)
        if self.outputs > self.inputs:
            x = torch.cat([x, x.new_zeros(len(x), self.outputs - self.inputs, *x.shape[2:])], dim=1)
        return F.relu(out + x)


class ResNet(nn.Module):
    """The CIFAR ResNet-18 (at width 64) with its two heads, NCHW."""

    def __init__(self, known: int, novel: int, width: int = 64) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        for layer, stride in enumerate((1, 2, 2, 2), start=1):
            first, second = Block(sizes[layer - 1], sizes[layer], stride), Block(sizes[layer], sizes[layer], 1)
            self.add_module(f"layer{layer}", nn.Sequential(first, second))
        self.head1, self.head2 = nn.Linear(8 * width, known), nn.Linear(8 * width, novel)

    def trunk(self, x: Tensor) -> Tensor:
        """All but the last layer."""
        x = F.relu(self.bn1(self.conv1(x)))
        for layer in (1, 2, 3):
            x = self.get_submodule(f"layer{layer}")(x)
        return x

    def tail(self, x: Tensor) -> Tensor:
        """The last layer and the pooling: z."""
        return F.relu(F.avg_pool2d(self.get_submodule("layer4")(x), 4).flatten(1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = self.tail(self.trunk(x))
        return z, self.head1(z), self.head2(z)

    def freeze(self) -> None:
        """Only the last layer and the heads get gradients; BatchNorm goes on in training mode everywhere."""
        for name, parameter in self.named_parameters():
            parameter.requires_grad = "layer4" in name or "head" in name
