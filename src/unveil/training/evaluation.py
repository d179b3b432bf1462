"""Evaluation of a model: scores against the hidden truth, and diagnostics."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from unveil import rng
from unveil.data.items import Rows
from unveil.data.task import Task, Truth
from unveil.methods.method import Method
from unveil.metrics import clustering_scores, open_accuracy
from unveil.models.heads import Heads
from unveil.models.model import Model
from unveil.settings import Discovery

QUERIES, STORED, TRIALS = 500, 2000, 8  # sample sizes of the diagnostics
MEANS = 5000  # labeled items from which the mean features of known classes come


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Evaluates a model on the unlabeled training items and on the test split."""

    task: Task
    truth: Truth | None  # none where it is unknown: then only diagnostics are computed
    features: Callable[[Rows], Tensor]  # features of training rows, by the current model
    test_features: Callable[[], Tensor] | None  # features of the test split; None where there is none
    trunk: Callable[[Rows], Tensor] | None = None
    """What the trunk gives for training rows, for pair rules that look there."""
    config: Discovery
    seed: int

    def discovery(self, model: Model | Heads, method: Method | None = None) -> dict[str, Any]:
        """Scores of the novel head, accuracy of the known head, diagnostics; `method`: the one that was trained."""
        z, z_test = self.features(self.task.unlabeled), self._test_features()
        with torch.no_grad():
            p = model.novel_head(z).softmax(dim=1)
        clusters = p.argmax(dim=1).cpu().numpy()
        sizes = np.bincount(clusters, minlength=p.shape[1])
        sample = rng.numpy(self.seed, "labelled sample").permutation(self.task.labeled)[:QUERIES]
        return {
            **({} if self.truth is None else clustering_scores(self.truth.unlabeled, clusters)),
            **({} if z_test is None else self.test(model, z_test)),
            **({} if z_test is None else self.open_test(model, z_test, z, clusters)),
            **self.diagnostics(method, z, self.features(sample), self.task.labels[sample], p.shape[1]),
            "confidence": float(p.amax(dim=1).mean()),
            "clusters_used": int((sizes > 0.01 * len(clusters) / len(sizes)).sum()),
            "cluster_sizes": sizes.tolist(),
        }

    def _test_features(self) -> Tensor | None:
        """Features of the test split; None where there is no test split or its classes are unknown."""
        return None if self.truth is None or self.test_features is None else self.test_features()

    @torch.no_grad()
    def test(self, model: Model | Heads, z: Tensor) -> dict[str, float]:
        """Scores of the test split: novel classes by clustering, known classes by their head."""
        assert self.truth is not None
        novel = self.truth.test >= len(self.task.known)
        mask = torch.from_numpy(novel).to(z.device)
        scores: dict[str, float] = {}
        if novel.any():
            clusters = model.novel_head(z[mask]).argmax(dim=1).cpu().numpy()
            scores = {f"test_{k}": v for k, v in clustering_scores(self.truth.test[novel], clusters).items()}
        if not novel.all():
            predicted = model.known_head(z[~mask]).argmax(dim=1).cpu().numpy()
            scores["known_acc"] = float((predicted == self.truth.test[~novel]).mean())
        return scores

    @torch.no_grad()
    def open_test(self, model: Model | Heads, z: Tensor, z_u: Tensor, clusters: NDArray[np.int64]) -> dict[str, float]:
        """Scores of the test split where any item may be of a known or a novel class.

        Predictions are the argmax over all classes where the method trains logits on one scale. Otherwise the logits of
        the two heads cannot be compared, and an item is assigned to the class or cluster whose mean direction is
        nearest.
        """
        assert self.truth is not None
        if len(np.unique(self.truth.test)) < 2:
            return {}
        known = len(self.task.known)
        joint = model.joint(z)
        if joint is not None:
            predicted = joint.argmax(dim=1)
        else:
            sample = rng.numpy(self.seed, "means").permutation(self.task.labeled)[:MEANS]
            labels = np.concatenate([self.task.labels[sample], known + clusters])
            z_all = F.normalize(torch.cat([self.features(sample), z_u]), dim=1)
            means = torch.zeros(known + model.novel_head.out_features, z_all.shape[1], device=z.device)
            means.index_add_(0, torch.from_numpy(labels).to(z.device), z_all)
            predicted = (F.normalize(z, dim=1) @ F.normalize(means, dim=1).T).argmax(dim=1)
        scores = open_accuracy(self.truth.test, predicted.cpu().numpy(), known)
        return {f"open_{part}": value for part, value in scores.items()}

    def supervised(self, model: Model) -> dict[str, float]:
        """After the supervised stage: the known head on test items."""
        z = self._test_features()
        return {} if z is None else {k: v for k, v in self.test(model, z).items() if k == "known_acc"}

    def diagnostics(
        self, method: Method | None, z: Tensor, z_l: Tensor, y_l: NDArray[np.int64], clusters: int
    ) -> dict[str, float]:
        """Purity of neighbors, density and precision of pairs, and the mean cosine, which reveals collapsed features.

        z: all unlabeled features; z_l, y_l: a sample of labeled ones, which a calibrated pair rule needs.
        """
        y = None if self.truth is None else torch.from_numpy(self.truth.unlabeled).to(z.device)
        order = torch.from_numpy(rng.numpy(self.seed, "diagnostics").permutation(len(z))).to(z.device)
        stored = order[: min(STORED, max(1, len(z) * 3 // 4))]
        queries = order[len(stored) :][:QUERIES]
        cosines = F.normalize(z[queries], dim=1) @ F.normalize(z[stored], dim=1).T
        metrics = {"mean_cosine": float(cosines.mean())}
        if y is not None:
            neighbors = len(stored) // clusters // 2 if method is None else method.neighbors(len(stored))
            k = min(max(1, neighbors), len(stored))
            nearest = cosines.topk(k, dim=1).indices
            metrics["neighbor_purity"] = float((y[stored][nearest] == y[queries][:, None]).float().mean())
        if method is None or self.trunk is None:
            return metrics
        correct = positives = pairs = 0.0
        known = torch.from_numpy(y_l).to(z.device)
        config = self.config
        share, each = round(config.batch * len(z) / len(self.task)), config.labeled_per_batch
        for rows in torch.split(order, max(2, share if each is None else config.batch - each))[:TRIALS]:
            drawn = self.task.unlabeled[rows.cpu().numpy()]
            same = method.positive_pairs(z[rows], z_l, known, partial(self.trunk, drawn))
            if same is None:  # the method has no rule for pairs
                return metrics
            same &= ~torch.eye(len(same), dtype=torch.bool, device=same.device)
            if y is not None:
                correct += float((same & (y[rows][:, None] == y[rows])).sum())
            positives += float(same.sum())
            pairs += len(rows) * (len(rows) - 1)
        metrics["pair_density"] = positives / max(pairs, 1.0)
        if y is not None:
            metrics["pair_precision"] = correct / positives if positives else 0.0
        return metrics


def warnings(metrics: dict[str, Any], n_novel: int, config: Discovery, method: Method) -> list[str]:
    """Warnings of dead clusters, collapsed features or missing pairs, with settings to try. They need no truth."""
    random_head = config.novel_head == "random" and method.starts_from_clusters
    head = ["discovery.novel_head=kmeans"] if random_head else []
    guard = [] if config.guard else ["discovery.guard=true"]
    pairs = method.advice_on_pairs()
    batch = [f"more unlabeled items in a batch (discovery.batch={2 * config.batch})"]
    advice: dict[str, list[str]] = {}
    if (used := metrics.get("clusters_used", n_novel)) < n_novel:
        advice[f"dead clusters: {int(used)} of {n_novel} clusters are in use"] = [*head, *guard, *pairs, *batch]
    if metrics.get("mean_cosine", 0.0) > 0.98:
        collapsed = "collapsed features: unlabeled items have almost the same feature"
        advice[collapsed] = [*guard, "a smaller learning rate", "a larger temperature", "another seed"]
    if metrics.get("pair_density", 1.0) < 1e-3:
        no_pairs = "no positive pairs: the pair rule finds next to none, so the novel head learns nothing"
        advice[no_pairs] = [*pairs, *batch]
    return [f"{problem}; try {' or '.join(tries)}" for problem, tries in advice.items()]
