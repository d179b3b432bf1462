"""What a fit leaves behind and can be applied to any vectors: which class, how sure, and whether it is like any at all.

p(class | x) = p(known | x) · known head, or p(novel | x) · novel head. The heads were trained apart; the gate between
them is a logistic regression of labelled against unlabelled items on the same features.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from unveil import files, recipe, rng
from unveil.data.scaling import Reduction
from unveil.discovery.clusters import Matrix, squared_distances
from unveil.errors import UnveilError
from unveil.models import build_encoder
from unveil.models.heads import linear_head
from unveil.models.model import Model

PIECE = 8192
"""Rows that are looked at together, so that memory-mapped files need little memory."""
REFERENCE = 4000
"""Training items with which a new one is compared to see whether it is like any of them."""
GATE = 20_000
"""Training items that the gate is fitted to."""
NEIGHBOR = 5
"""The distance to this neighbour counts."""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Reduction, network, gate and the items that were seen."""

    reduction: Reduction
    mean: Matrix
    scale: float
    n_known: int
    n_novel: int
    inside: bool = False
    """The first clusters stand for the known classes, and the novel head knows them all."""
    model: Model | None = None
    """None where there were no known classes to train it with."""
    centers: Matrix | None = None
    """Centres of the clusters, where these are k-means'."""
    softness: float = 1.0
    """Squared distance by which k-means clusters turn into probabilities."""
    gate: Matrix | None = None
    """(features + 1,): weights and bias of the logistic regression; positive is known."""
    reference: Matrix | None = None
    distances: Matrix | None = None
    """How far items of the fit are from others, sorted."""

    def pieces(self, x: NDArray[np.floating], rows: NDArray[np.int64] | None = None) -> Iterator[Matrix]:
        """Reduced vectors of all or some rows, a piece at a time. Of items with several views the first is taken."""
        for start in range(0, len(x) if rows is None else len(rows), PIECE):
            part = x[start : start + PIECE] if rows is None else x[rows[start : start + PIECE]]
            yield self.reduction(part if part.ndim == 2 else part[:, 0])

    def features(self, x: NDArray[np.floating]) -> Matrix:
        """z (n, D): what the tail makes of the vectors; the reduced vectors themselves where nothing was trained."""
        return np.concatenate([self.tail(part) for part in self.pieces(x)])

    def probabilities(self, x: NDArray[np.floating]) -> Matrix:
        """(n, known + novel): nobody says which rows are of known classes."""
        return np.concatenate([self.joint(part) for part in self.pieces(x)])

    def strangeness(self, x: NDArray[np.floating]) -> Matrix:
        """The share of the fit's own items that are as near to others as each row is, or nearer: 1 is very strange."""
        if self.reference is None or self.distances is None:
            return np.zeros(len(x), dtype=np.float32)
        index = NearestNeighbors(n_neighbors=min(NEIGHBOR, len(self.reference))).fit(self.reference)
        far = np.concatenate([index.kneighbors(part)[0][:, -1] for part in self.pieces(x)])
        return (np.searchsorted(self.distances, far, side="left") / len(self.distances)).astype(np.float32)

    @torch.no_grad()
    def tail(self, part: Matrix) -> Matrix:
        """z of reduced vectors."""
        if self.model is None:
            return part
        device = self.model.device
        x = torch.from_numpy(((part - self.mean) / self.scale).astype(np.float32)).to(device)
        found: Matrix = self.model.encode(x).cpu().numpy()
        return found

    def novel(self, part: Matrix) -> tuple[Matrix, Matrix]:
        """Of reduced vectors that are taken to be novel: probabilities of the clusters, and how sure the largest is
        before calibration."""
        if self.centers is not None:
            apart = squared_distances(part, self.centers)
            near = np.sqrt(np.partition(apart, min(1, apart.shape[1] - 1), axis=1)[:, :2])
            sure = near[:, -1] / np.maximum(near.sum(axis=1), 1e-12) if apart.shape[1] > 1 else np.ones(len(part))
            return _softmax(-apart / self.softness), sure.astype(np.float32)
        if self.n_novel == 0 or self.model is None:
            return np.zeros((len(part), 1), dtype=np.float32), np.zeros(len(part), dtype=np.float32)
        p = self._head(self.model.novel_head, self.tail(part))
        return p, p.max(axis=1)

    def joint(self, part: Matrix) -> Matrix:
        """Of reduced vectors: probabilities of known classes and clusters together."""
        novel = self.novel(part)[0] if self.n_novel else np.zeros((len(part), 0), dtype=np.float32)
        if self.model is None or self.n_known == 0 or self.inside:
            return novel
        z = self.tail(part)
        known = self._head(self.model.known_head, z)
        if self.n_novel == 0:
            return known
        assert self.gate is not None
        chance = 1 / (1 + np.exp(-np.clip(self._gate_inputs(part, z) @ self.gate[:-1] + self.gate[-1], -30, 30)))
        both: Matrix = np.concatenate([chance[:, None] * known, (1 - chance[:, None]) * novel], axis=1)
        return both.astype(np.float32)

    def _gate_inputs(self, part: Matrix, z: Matrix) -> Matrix:
        """The features that the clusters were read from."""
        return (part - self.mean) / self.scale if self.centers is not None else z

    @staticmethod
    @torch.no_grad()
    def _head(head: torch.nn.Module, z: Matrix) -> Matrix:
        p: Matrix = head(torch.from_numpy(z).to(next(head.parameters()).device)).softmax(dim=1).cpu().numpy()
        return p

    def with_gate(
        self, x: NDArray[np.floating], rows: NDArray[np.int64], known: NDArray[np.bool_], seed: int
    ) -> "Learned":
        """The same with a gate, fitted to `rows` of x, which are of known classes or not."""
        if self.model is None or self.n_novel == 0 or self.inside or known.all() or not known.any():
            return self
        some = np.sort(rng.numpy(seed, "gate").permutation(len(rows))[:GATE])
        if len(np.unique(known[some])) < 2:
            some = np.arange(len(rows))
        inputs = np.concatenate([self._gate_inputs(part, self.tail(part)) for part in self.pieces(x, rows[some])])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # good enough for a gate
            fitted = LogisticRegression(class_weight="balanced", C=0.1, max_iter=200).fit(inputs, known[some])
        return replace(self, gate=np.concatenate([fitted.coef_[0], fitted.intercept_]).astype(np.float32))

    def with_reference(self, x: NDArray[np.floating], rows: NDArray[np.int64], seed: int) -> "Learned":
        """The same with items to compare new ones with. How strange those are is measured on other items."""
        order = rows[rng.numpy(seed, "reference").permutation(len(rows))]
        kept = max(1, min(REFERENCE, len(rows) * 4 // 5))
        reference = np.concatenate(list(self.pieces(x, np.sort(order[:kept]))))
        others = order[kept : kept + REFERENCE]
        if len(others) < 20:  # few items: each against all the others
            near = NearestNeighbors(n_neighbors=min(NEIGHBOR + 1, len(reference))).fit(reference)
            far = near.kneighbors(reference)[0][:, -1]
        else:
            near = NearestNeighbors(n_neighbors=min(NEIGHBOR, len(reference))).fit(reference)
            far = np.concatenate([near.kneighbors(part)[0][:, -1] for part in self.pieces(x, np.sort(others))])
        return replace(self, reference=reference, distances=np.sort(far).astype(np.float32))

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the arrays to `folder`; returns the rest, for a JSON file."""
        arrays: dict[str, NDArray[Any]] = {f"reduction.{k}": v for k, v in self.reduction.arrays().items()}
        for name in ("mean", "centers", "gate", "reference", "distances"):
            if (value := getattr(self, name)) is not None:
                arrays[name] = np.ascontiguousarray(value, dtype=np.float32)
        if self.model is not None:
            state = self.model.state_dict()
            arrays |= {f"model.{name}": value.detach().cpu().contiguous().numpy() for name, value in state.items()}
        with files.replacing(folder / "learned.safetensors") as temporary:
            save_file(arrays, temporary)
        kept = ("scale", "softness", "n_known", "n_novel", "inside")
        return {name: getattr(self, name) for name in kept}

    @staticmethod
    def load(folder: Path, rest: dict[str, Any]) -> "Learned":
        """What `save` wrote."""
        path = folder / "learned.safetensors"
        try:
            arrays = load_file(path)
        except (OSError, SafetensorError) as error:
            raise UnveilError(f"{path} cannot be read ({error}): run discover again") from None

        def under(prefix: str) -> dict[str, NDArray[Any]]:
            return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

        names = ("centers", "gate", "reference", "distances")
        parts: dict[str, Any] = {name: arrays[name] for name in names if name in arrays}
        mean, weights = arrays["mean"], under("model.")
        clusters = rest["n_novel"] + (rest["n_known"] if rest["inside"] else 0)
        return Learned(
            reduction=Reduction.from_arrays(under("reduction.")),
            mean=mean,
            model=_model(weights, len(mean), rest["n_known"], max(1, clusters)) if weights else None,
            **parts,
            **rest,
        )


def _model(weights: dict[str, NDArray[Any]], inputs: int, known: int, novel: int) -> Model:
    config = recipe.load("vectors").encoder
    drawn = rng.generator(0, "loaded")  # overwritten below
    encoder = build_encoder(config, (inputs,), drawn)
    heads = linear_head(encoder.dim, known, drawn), linear_head(encoder.dim, novel, drawn)
    model = Model(encoder, *heads, torch.float32)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    model.freeze_trunk()
    return model.eval()


def _softmax(scores: Matrix) -> Matrix:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    p: Matrix = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return p
