"""UNO, a unified objective (Fini et al., ICCV 2021), everything in view.

    python examples/methods/uno.py [STEPS]

Digits 0-4 have labels, 5-9 are to be discovered. A plain loop over `unveil.losses`; about half a minute on one core.
"""

import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from unveil.losses import sinkhorn, swapped_prediction
from unveil.metrics import clustering_accuracy
from unveil.models.heads import ProjectedPrototypes, Prototypes

KNOWN, NOVEL, WIDTH, BATCH, HEADS, OVER, TEMPERATURE = 5, 5, 256, 128, 4, 3, 0.1
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 600
torch.manual_seed(0)

# Data: the labels of digits 5-9 are kept for the score alone
images, digits = load_digits(return_X_y=True)
x = (torch.from_numpy(images).float() / 16 - 0.3) / 0.35
y = torch.from_numpy(digits)
x_l, y_l, x_u = x[y < KNOWN], y[y < KNOWN], x[y >= KNOWN]


def batch(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Labeled rows, their labels, unlabeled rows."""
    some, others = torch.randint(len(x_l), (size,)), torch.randint(len(x_u), (size,))
    return x_l[some], y_l[some], x_u[others]


def layer(inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU())


def head(clusters: int) -> nn.Module:
    return ProjectedPrototypes(WIDTH, clusters, hidden=WIDTH, projection=WIDTH // 2, temperature=TEMPERATURE)


# Model: cosines to prototypes of the known classes, and several heads for the novel ones, half of them finer
encoder = nn.Sequential(layer(64), layer(WIDTH))
known_head = Prototypes(WIDTH, KNOWN, TEMPERATURE)
novel_heads = nn.ModuleList([*(head(NOVEL) for _ in range(HEADS)), *(head(OVER * NOVEL) for _ in range(HEADS))])
model = nn.ModuleList([encoder, known_head, novel_heads])
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)

# Stage 1: the known classes
for _ in range(60):
    images_l, labels, _ = batch(BATCH)
    loss = F.cross_entropy(known_head(encoder(images_l)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def targets(novel: Tensor, labels: Tensor) -> Tensor:
    """[known | novel]: the class of a labeled row, the pseudo-label of an unlabeled one."""
    known = F.pad(F.one_hot(labels, KNOWN).float(), (0, novel.shape[1]))
    pseudo = sinkhorn(novel[len(labels) :] * TEMPERATURE)  # clusters of equal size
    return torch.cat([known, F.pad(pseudo, (KNOWN, 0))])


# Stage 2: each view predicts the targets of the other; the head with the lowest mean loss is the one that predicts
losses = torch.zeros(2 * HEADS)
for step in range(STEPS):
    model.train()
    images_l, labels, images_u = batch(BATCH // 2)
    first = torch.cat([images_l, images_u])
    second = first + 0.5 * torch.randn(first.shape)
    z = encoder(torch.cat([first, second]))  # (2 B, D)
    each = []
    for novel_head in novel_heads:
        novel = novel_head(z)
        logits, logits_hat = torch.cat([known_head(z), novel], dim=1).chunk(2)  # (B, known + novel)
        pair = [targets(part, labels) for part in novel.detach().chunk(2)]
        each.append(swapped_prediction(logits, logits_hat, *pair))
    loss = torch.stack(each).mean()
    losses = 0.95 * losses + 0.05 * torch.stack(each).detach()
    optimizer.param_groups[0]["lr"] = 0.2 * (1 - step / STEPS)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if step % 100 == 99 or step == STEPS - 1:
        model.eval()
        with torch.no_grad():
            clusters = novel_heads[int(losses[:HEADS].argmin())](encoder(x_u)).argmax(dim=1)
        score = clustering_accuracy(y[y >= KNOWN].numpy(), clusters.numpy())
        print(f"step {step + 1}: loss {loss.item():.3f}, accuracy on the novel digits {100 * score:.1f} %")
