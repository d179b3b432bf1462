"""The published procedure, step by step as it is described: the slow side of every ratio.

Images are augmented one at a time with Pillow, the two views go through the network in two passes, BatchNorm of the
frozen layers stays in training mode, neighbors come from full sorts, and hard negatives and supervised targets from
Python loops over the samples.
"""

import random

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from benchmarks.literal_network import ResNet
from unveil.losses import sigmoid_rampup

Pictures = NDArray[np.uint8]
"""(n, height, width, 3)"""
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def translate(picture: Image.Image, dx: int, dy: int, border: int = 4) -> Image.Image:
    """Move a picture; what it uncovers is filled with the picture mirrored at its edge."""
    width, height = picture.size
    canvas = Image.new(picture.mode, (width + 2 * border, height + 2 * border))
    canvas.paste(picture, (border, border))
    left, right = (1, 0, border + 1, height), (width - 1 - border, 0, width - 1, height)
    top, bottom = (0, border + 1, canvas.width, 2 * border + 1), (0, height - 1, canvas.width, height - 1 + border)
    for strip, x in ((left, 0), (right, border + width)):
        canvas.paste(picture.crop(strip).transpose(Image.Transpose.FLIP_LEFT_RIGHT), (x, border))
    for strip, y in ((top, 0), (bottom, border + height)):
        canvas.paste(canvas.crop(strip).transpose(Image.Transpose.FLIP_TOP_BOTTOM), (0, y))
    return canvas.crop((border + dx, border + dy, border + dx + width, border + dy + height))


def augment(picture: Image.Image, draw: random.Random, shift: int = 4) -> Image.Image:
    """Translate by up to `shift` pixels in both directions, mirror every second time."""
    picture = translate(picture, draw.randint(-shift, shift), draw.randint(-shift, shift), shift)
    return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else picture


def to_tensor(picture: Image.Image) -> Tensor:
    """(3, h, w), normalized."""
    x = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous().float().div(255)
    return x.sub(torch.tensor(MEAN).view(-1, 1, 1)).div(torch.tensor(STD).view(-1, 1, 1))


def views(pictures: Pictures, draw: random.Random, count: int = 2) -> tuple[Tensor, ...]:
    """`count` augmented views of each picture, (n, 3, h, w) each."""
    drawn = [[to_tensor(augment(Image.fromarray(one), draw)) for _ in range(count)] for one in pictures]
    return tuple(torch.stack([one[view] for one in drawn]) for view in range(count))


def unit(x: Tensor) -> Tensor:
    """Rows of length 1."""
    return x / x.pow(2).sum(dim=1, keepdim=True).sqrt()


def hard_negatives(
    z: Tensor,
    queue_u: Tensor,
    queue_l: Tensor,
    *,
    k_easy: int = 400,
    k_hard: int = 400,
    rounds: int = 5,
    easy: Tensor | None = None,
    drawn: Tensor | None = None,
) -> Tensor:
    """Cosines (B, k_hard) to the hardest mixtures: sample by sample, every mixed vector built and normalized.

    z and the queues are normalized. `easy` (B, k) and `drawn` (B, rounds, k) replace sort and draw in tests.
    """
    found = []
    for i in range(len(z)):
        order = (z[i].detach() @ queue_u.T).sort().indices[:k_easy] if easy is None else easy[i]
        negatives, mixed = queue_u[order], []
        for turn in range(rounds):
            chosen = torch.randperm(len(queue_l), device=z.device)[: len(order)] if drawn is None else drawn[i, turn]
            labeled = queue_l[chosen]
            mixed += [(negatives + 2 * labeled) / 3, (2 * negatives + labeled) / 3]
        cosines = z[i] @ unit(torch.cat(mixed)).T
        found.append(cosines.sort(descending=True).values[:k_hard])
    return torch.stack(found)


def logits_of(z: Tensor, z_hat: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """(B, 1 + M): cosines to the second view and to the queue, over the temperature. All normalized."""
    view = (z * z_hat.detach()).sum(dim=1, keepdim=True)
    return torch.cat([view, z @ queue.clone().detach().T], dim=1) / temperature


def neighborhood(
    z: Tensor, z_hat: Tensor, queue: Tensor, *, k: int, hard: Tensor | None = None, temperature: float = 0.05
) -> Tensor:
    """Targets from a full sort of all logits, then the second view's own overwritten. z, z_hat normalized."""
    alpha, logits = 0.2, logits_of(z, z_hat, queue, temperature)
    targets = torch.zeros_like(logits)
    targets.scatter_(1, logits.detach().sort(dim=1, descending=True).indices[:, :k], (1 - alpha) / k)
    targets[:, 0] = alpha
    if hard is not None:
        logits = torch.cat([logits, hard / temperature], dim=1)
        targets = torch.cat([targets, torch.zeros_like(hard)], dim=1)
    return -(targets * F.log_softmax(logits, dim=1)).sum(dim=1).mean()


def supervised(
    z: Tensor, z_hat: Tensor, y: Tensor, queue: Tensor, queue_y: Tensor, *, temperature: float = 0.05
) -> Tensor:
    """Targets row by row: the second view and the queue entries of the same class. z, z_hat normalized."""
    logits = logits_of(z, z_hat, queue, temperature)
    targets = torch.zeros_like(logits)
    for i in range(len(z)):
        same = (queue_y == y[i]).nonzero().flatten() + 1
        targets[i, 0] = 1
        targets[i, same] = 1
        targets[i] /= targets[i].sum()
    return -(targets * F.log_softmax(logits, dim=1)).sum(dim=1).mean()


def pair_bce(z: Tensor, p: Tensor, p_hat: Tensor, threshold: float = 0.95) -> Tensor:
    """All n² ordered pairs, laid out one below the other. z normalized."""
    n, cosines = len(p), z.detach() @ z.detach().T
    positive = (cosines > threshold).flatten()
    first, second = p.repeat(n, 1), p_hat.repeat(1, n).view(n * n, -1)
    agreement = (first * second).sum(dim=1)
    return -torch.log(torch.where(positive, agreement, 1 - agreement) + 1e-7).mean()


def sgd(net: nn.Module, lr: float, weight_decay: float, *, nesterov: bool = False) -> torch.optim.SGD:
    """The plain optimizer, one parameter after the other."""
    return torch.optim.SGD(
        net.parameters(), lr, 0.9, weight_decay=weight_decay, nesterov=nesterov, foreach=False, fused=False
    )


class Memory:
    """A queue that starts with random vectors of about length 1."""

    def __init__(self, size: int, dim: int, device: torch.device) -> None:
        spread = (dim / 3) ** -0.5
        self.features = torch.empty(size, dim, device=device).uniform_(-spread, spread)
        self.labels = torch.full((size,), -1, device=device)
        self.at = 0

    @torch.no_grad()
    def push(self, z: Tensor, y: Tensor | None = None) -> None:
        slots = torch.fmod(torch.arange(len(z), device=z.device) + self.at, len(self.features))
        self.features.index_copy_(0, slots, z)
        if y is not None:
            self.labels.index_copy_(0, slots, y)
        self.at = (self.at + len(z)) % len(self.features)


class Discovery:
    """The discovery stage with every term on."""

    def __init__(
        self, *, known: int, novel: int, width: int, queue: int, k_easy: int, device: torch.device, lr: float = 0.1
    ) -> None:
        self.net = ResNet(known, novel, width).to(device).train()
        self.net.freeze()
        self.optimizer = sgd(self.net, lr, weight_decay=1e-4)
        self.queue_u, self.queue_l = Memory(queue, 8 * width, device), Memory(queue, 8 * width, device)
        self.k1, self.k_easy, self.device, self.draw = int(queue / novel / 2), k_easy, device, random.Random(0)

    def step(self, pictures: Pictures, labels: Tensor) -> Tensor:
        """One step from pixels to weights; `labels` are -1 for unlabeled pictures."""
        x, x_hat = (view.to(self.device) for view in views(pictures, self.draw))
        z, known, novel = self.net(x)
        z_hat, known_hat, novel_hat = self.net(x_hat)
        loss = self.loss(z, z_hat, known, known_hat, novel, novel_hat, labels.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def loss(
        self, z: Tensor, z_hat: Tensor, known: Tensor, known_hat: Tensor, novel: Tensor, novel_hat: Tensor, y: Tensor
    ) -> Tensor:
        """All terms with the published weights, at the end of the ramp; the queues take up the first view."""
        labeled, z, z_hat = y >= 0, unit(z), unit(z_hat)
        p, p_hat, q, q_hat = (logits.softmax(dim=1) for logits in (novel, novel_hat, known, known_hat))
        u, l = z[~labeled], z[labeled]  # noqa: E741
        loss = F.cross_entropy(known[labeled], y[labeled]) + pair_bce(u, p[~labeled], p_hat[~labeled])
        loss = loss + 5.0 * sigmoid_rampup(50, 50) * (F.mse_loss(q, q_hat) + F.mse_loss(p, p_hat))
        hard = hard_negatives(u, self.queue_u.features, self.queue_l.features, k_easy=self.k_easy)
        loss = loss + neighborhood(u, z_hat[~labeled], self.queue_u.features, k=self.k1, hard=hard)
        loss = loss + 0.1 * supervised(l, z_hat[labeled], y[labeled], self.queue_l.features, self.queue_l.labels)
        self.queue_u.push(u)
        self.queue_l.push(l, y[labeled])
        return loss


class Rotation:
    """Pre-training: all four turns of every picture."""

    def __init__(self, *, width: int, device: torch.device, lr: float = 0.1) -> None:
        self.net = ResNet(4, 1, width).to(device).train()
        self.optimizer = sgd(self.net, lr, weight_decay=5e-4, nesterov=True)
        self.device, self.draw = device, random.Random(0)

    def step(self, pictures: Pictures) -> Tensor:
        (x,) = (view.to(self.device) for view in views(pictures, self.draw, count=1))
        turned = torch.cat([torch.rot90(x, turn, (2, 3)) for turn in range(4)]).contiguous()
        turns = torch.arange(4, device=self.device).repeat_interleave(len(x))
        loss = F.cross_entropy(self.net.head1(self.net.tail(self.net.trunk(turned))), turns)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()
