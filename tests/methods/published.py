"""The published training procedure, step by step: one row and one pair at a time, in double precision.

It is written from a description of the published code, not of this package: ResNet with the shortcuts of CIFAR, two
forward passes, BatchNorm in training mode everywhere, memories that start with random vectors, hard negatives built as
vectors, SGD by hand. It shares nothing with `unveil` but the numbers that it is given: weights, batches and draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

MOMENTUM_OF_BATCHNORM, EPSILON = 0.1, 1e-5
Permutation = Callable[[int, int, int, int], list[int]]
"""(epoch, step, row among the unlabeled ones, round) -> all positions of the labeled memory in random order."""


@dataclass
class Memory:
    """A ring of features."""

    features: Tensor
    labels: list[int] = field(init=False)
    position: int = 0

    def __post_init__(self) -> None:
        self.labels = [-1] * len(self.features)

    def store(self, rows: list[Tensor], labels: list[int]) -> None:
        for row, label in zip(rows, labels, strict=True):
            self.features[self.position] = row
            self.labels[self.position] = label
            self.position = (self.position + 1) % len(self.features)


@dataclass
class Options:
    gamma: float
    rampup: float
    step_size: int
    k1: int
    num_neg: int
    num_hard: int = 400
    hard_iter: int = 5
    hard_negative_start: int = 3
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    threshold: float = 0.95
    alpha: float = 0.2
    temperature: float = 0.05
    w_ncl_ulb: float = 1.0
    w_ncl_la: float = 0.1


class Published:
    """Weights and running statistics by the names of the published files, two memories, and `step`."""

    def __init__(
        self, state: dict[str, Tensor], memory_u: Tensor, memory_l: Tensor, options: Options, permutation: Permutation
    ) -> None:
        self.state = {name: value.clone() for name, value in state.items()}
        self.memory_u, self.memory_l = Memory(memory_u.clone()), Memory(memory_l.clone())
        self.options, self.permutation = options, permutation
        statistics = ("running_mean", "running_var")
        self.trained = [
            name
            for name in self.state
            if ("head" in name or "layer4" in name) and not name.endswith(statistics)  # buffers are no parameters
        ]
        self.velocity: dict[str, Tensor] = {}

    def step(self, epoch: int, step: int, views: tuple[Tensor, Tensor], labels: list[int]) -> dict[str, float]:
        """One step; `labels` are -1 for unlabeled rows. Returns the weighted terms of the loss."""
        for name in self.trained:
            self.state[name] = self.state[name].detach().requires_grad_()
        z_q, known_q, novel_q = self.forward(views[0])
        z_k, known_k, novel_k = self.forward(views[1])
        labeled = [i for i, y in enumerate(labels) if y >= 0]
        unlabeled = [i for i, y in enumerate(labels) if y < 0]
        q = [z / (z**2).sum().sqrt() for z in z_q]
        k = [(z / (z**2).sum().sqrt()).detach() for z in z_k]
        o = self.options
        terms = {
            "ce": sum(-known_q[i].log_softmax(0)[labels[i]] for i in labeled) / len(labeled),
            "bce": self.binary_cross_entropy(q, novel_q.softmax(1), novel_k.softmax(1), unlabeled),
            "consistency": o.gamma
            * rampup(epoch, o.rampup)
            * (
                mean_square(known_q.softmax(1), known_k.softmax(1))
                + mean_square(novel_q.softmax(1), novel_k.softmax(1))
            ),
        }
        contrastive = [self.neighborhood(q[i], k[i], epoch, step, position) for position, i in enumerate(unlabeled)]
        if epoch > 0:
            terms["ncl"] = o.w_ncl_ulb * sum(contrastive) / len(unlabeled)
        terms["scl"] = o.w_ncl_la * sum(self.supervised(q[i], k[i], labels[i]) for i in labeled) / len(labeled)
        gradients = torch.autograd.grad(sum(terms.values()), [self.state[name] for name in self.trained])
        self.memory_u.store([q[i].detach() for i in unlabeled], [-1] * len(unlabeled))
        self.memory_l.store([q[i].detach() for i in labeled], [labels[i] for i in labeled])
        rate = o.lr * 0.1 ** ((epoch + 1) // o.step_size)  # the schedule is stepped at the start of an epoch
        with torch.no_grad():
            for name, gradient in zip(self.trained, gradients, strict=True):
                change = gradient + o.weight_decay * self.state[name]
                if name in self.velocity:
                    change = o.momentum * self.velocity[name] + change
                self.velocity[name] = change
                self.state[name] = self.state[name] - rate * change
        return {name: float(value.detach()) for name, value in terms.items()}

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """z and the logits of both heads."""
        x = F.relu(self.batchnorm("bn1", self.convolution("conv1", x)))
        for layer in (1, 2, 3, 4):
            block = 0
            while f"layer{layer}.{block}.conv1.weight" in self.state:
                stride = 2 if layer > 1 and block == 0 else 1
                x = self.block(f"layer{layer}.{block}", x, stride)
                block += 1
        z = F.relu(x.mean(dim=(2, 3)))
        return (
            z,
            z @ self.state["head1.weight"].T + self.state["head1.bias"],
            z @ self.state["head2.weight"].T + self.state["head2.bias"],
        )

    def block(self, name: str, x: Tensor, stride: int) -> Tensor:
        out = F.relu(self.batchnorm(f"{name}.bn1", self.convolution(f"{name}.conv1", x, stride)))
        out = self.batchnorm(f"{name}.bn2", self.convolution(f"{name}.conv2", out))
        if stride > 1:
            x = F.avg_pool2d(x, 2)
            missing = out.shape[1] - x.shape[1]
            x = torch.cat([x, x.new_zeros(len(x), missing, *x.shape[2:])], dim=1)
        return F.relu(out + x)

    def convolution(self, name: str, x: Tensor, stride: int = 1) -> Tensor:
        return F.conv2d(x, self.state[f"{name}.weight"], stride=stride, padding=1)

    def batchnorm(self, name: str, x: Tensor) -> Tensor:
        """In training mode, whatever is frozen."""
        count = x.numel() // x.shape[1]
        mean = x.mean(dim=(0, 2, 3))
        centered = x - mean[:, None, None]
        variance = (centered**2).mean(dim=(0, 2, 3))
        moved = {"running_mean": mean, "running_var": variance * count / (count - 1)}
        for key, value in moved.items():
            old = self.state[f"{name}.{key}"]
            self.state[f"{name}.{key}"] = (1 - MOMENTUM_OF_BATCHNORM) * old + MOMENTUM_OF_BATCHNORM * value.detach()
        scaled = centered / (variance + EPSILON).sqrt()[:, None, None]
        return scaled * self.state[f"{name}.weight"][:, None, None] + self.state[f"{name}.bias"][:, None, None]

    def binary_cross_entropy(self, q: list[Tensor], p_q: Tensor, p_k: Tensor, rows: list[int]) -> Tensor:
        n, total = len(rows), p_q.new_zeros(())
        for r in range(n * n):
            first, second = rows[r % n], rows[r // n]
            similar = float((q[first].detach() * q[second].detach()).sum()) > self.options.threshold
            product = (p_q[first] * p_k[second]).sum()
            total = total - torch.log((product if similar else 1 - product) + 1e-7)
        return total / n**2

    def neighborhood(self, q: Tensor, k: Tensor, epoch: int, step: int, position: int) -> Tensor:
        o = self.options
        logits = [(q * k).sum() / o.temperature, *(self.memory_u.features.clone() @ q / o.temperature)]
        target = [0.0] * len(logits)
        for index in sorted(range(len(logits)), key=lambda j: -float(logits[j].detach()))[: o.k1]:
            target[index] = (1 - o.alpha) / o.k1
        target[0] = o.alpha
        if epoch >= o.hard_negative_start:
            logits += self.hard_negatives(q, epoch, step, position)
            target += [0.0] * (len(logits) - len(target))
        return -(torch.tensor(target, dtype=q.dtype) * torch.stack(logits).log_softmax(0)).sum()

    def hard_negatives(self, q: Tensor, epoch: int, step: int, position: int) -> list[Tensor]:
        o, memory = self.options, self.memory_u.features
        products = (memory @ q.detach()).tolist()
        easiest = sorted(range(len(memory)), key=lambda j: products[j])[: o.num_neg]
        mixed = []
        for number in range(o.hard_iter):
            order = self.permutation(epoch, step, position, number)[: o.num_neg]
            for u, l in zip(easiest, order, strict=True):  # noqa: E741
                mixed.append((1 * memory[u] + 2 * self.memory_l.features[l]) / 3)
                mixed.append((2 * memory[u] + 1 * self.memory_l.features[l]) / 3)
        similarities = [(q * (row / (row**2).sum().sqrt())).sum() for row in mixed]
        hardest = sorted(similarities, key=lambda s: -float(s.detach()))[: o.num_hard]
        return [s / o.temperature for s in hardest]

    def supervised(self, q: Tensor, k: Tensor, label: int) -> Tensor:
        logits = [(q * k).sum() / self.options.temperature]
        logits += [*(self.memory_l.features.clone() @ q / self.options.temperature)]
        positive = [0] + [1 + j for j, stored in enumerate(self.memory_l.labels) if stored == label]
        shares = torch.stack(logits).log_softmax(0)
        return -sum((shares[j] for j in positive), q.new_zeros(())) / len(positive)


def mean_square(p: Tensor, q: Tensor) -> Tensor:
    return sum(((a - b) ** 2).sum() for a, b in zip(p, q, strict=True)) / p.numel()  # type: ignore[return-value]


def rampup(epoch: int, length: float) -> float:
    return math.exp(-5 * (1 - min(max(epoch, 0), length) / length) ** 2)
