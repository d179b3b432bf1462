"""Neighborhood contrastive learning with hard negatives (Zhong et al., CVPR 2021), everything in view.

    python examples/methods/ncl.py [STEPS]

Digits 0-4 have labels, 5-9 are to be discovered. A plain loop over `unveil.losses`; half a minute on one core.
"""

import sys

import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from torch import nn

from unveil.losses import (
    consistency,
    hard_negatives,
    nearest_pairs,
    neighborhood_contrastive,
    pairwise_bce,
    supervised_contrastive,
)
from unveil.metrics import clustering_accuracy
from unveil.models.heads import start_from_clusters

KNOWN, NOVEL, WIDTH, BATCH, QUEUE = 5, 5, 256, 64, 700
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 600
torch.manual_seed(0)

# Data: the labels of digits 5-9 are kept for the score alone
images, digits = load_digits(return_X_y=True)
x = (torch.from_numpy(images).float() / 16 - 0.3) / 0.35
y = torch.from_numpy(digits)
x_l, y_l, x_u = x[y < KNOWN], y[y < KNOWN], x[y >= KNOWN]


def batch(size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Labeled rows, their labels, unlabeled rows."""
    some, others = torch.randint(len(x_l), (size,)), torch.randint(len(x_u), (size,))
    return x_l[some], y_l[some], x_u[others]


def layer(inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU())


# Model: an encoder, a head for the known classes, a head for the novel ones
encoder = nn.Sequential(layer(64), layer(WIDTH))
known_head, novel_head = nn.Linear(WIDTH, KNOWN), nn.Linear(WIDTH, NOVEL)
model = nn.ModuleList([encoder, known_head, novel_head])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

# Stage 1: the known classes
for _ in range(60):
    images_l, labels, _ = batch(BATCH)
    loss = F.cross_entropy(known_head(encoder(images_l)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# Stage 2 starts from k-means clusters of the unlabeled images
encoder.eval()
clusters = torch.from_numpy(KMeans(NOVEL, n_init=10, random_state=0).fit(x_u.numpy()).labels_).long()
with torch.no_grad():
    start_from_clusters(novel_head, encoder(x_u), clusters)
queue_u, queue_l, queue_y = torch.zeros(0, WIDTH), torch.zeros(0, WIDTH), torch.zeros(0, dtype=torch.long)
k1 = QUEUE // NOVEL // 10  # pseudo-positives of a query

for step in range(STEPS):
    encoder.train()
    images_l, labels, images_u = batch(BATCH // 2)
    first = torch.cat([images_l, images_u])
    second = first + 0.5 * torch.randn(first.shape)  # the other view
    z, z_hat = encoder(torch.cat([first, second])).chunk(2)  # (B, D) each
    z_l, z_u, split = z[: len(labels)], z[len(labels) :], len(labels)
    p, p_hat = novel_head(z_u).softmax(dim=1), novel_head(z_hat[split:]).softmax(dim=1)
    q, q_hat = known_head(z_l), known_head(z_hat[:split])

    # The baseline: known classes, pairs of unlabeled rows, consistency of the two views (Eq. 5)
    loss = F.cross_entropy(q, labels) + pairwise_bce(p, p_hat, nearest_pairs(z_u, k=round(0.5 * len(z_u) / NOVEL)))
    loss = loss + 5 * (consistency(q.softmax(dim=1), q_hat.softmax(dim=1)) + consistency(p, p_hat))
    # Contrast with the neighbors in a queue of past features, and with mixtures of novel and known ones (Eq. 6-15)
    if len(queue_u) > 2 * k1:
        hard = hard_negatives(z_u, queue_u, queue_l, k_easy=min(100, len(queue_u) - k1), k_hard=200)
        loss = loss + neighborhood_contrastive(z_u, z_hat[split:], queue_u, k=k1, hard=hard)
        loss = loss + supervised_contrastive(z_l, z_hat[:split], labels, queue_l, queue_y)
    optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / STEPS)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue_u = torch.cat([F.normalize(z_u, dim=1).detach(), queue_u])[:QUEUE]
    queue_l = torch.cat([F.normalize(z_l, dim=1).detach(), queue_l])[:QUEUE]
    queue_y = torch.cat([labels, queue_y])[:QUEUE]

    if step % 100 == 99 or step == STEPS - 1:
        encoder.eval()
        with torch.no_grad():
            clusters = novel_head(encoder(x_u)).argmax(dim=1)
        score = clustering_accuracy(y[y >= KNOWN].numpy(), clusters.numpy())
        print(f"step {step + 1}: loss {loss.item():.3f}, accuracy on the novel digits {100 * score:.1f} %")
