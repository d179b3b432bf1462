"""The predictor of a fit: class probabilities of new items, and how unlike the items of the fit they are.

p(class | x) = p(known | x) · known head, or p(novel | x) · novel head. The heads are trained separately; the gate
between them is a logistic regression of labeled against unlabeled items on the same features.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialize

from unveil import checksums, files, recipe, rng
from unveil.data.items import PIECE, Items, Rows
from unveil.data.views import make_views
from unveil.encoders.preparation import Preparation
from unveil.encoders.scaling import Reduction
from unveil.encoders.tfidf import Tfidf
from unveil.errors import UnveilError
from unveil.hardware import pick_device
from unveil.models.heads import Heads
from unveil.models.inference import features
from unveil.models.model import Model, load_model, save_model
from unveil.numerics import Matrix, softmax, squared_distances
from unveil.settings import Augment, Data
from unveil.tables import build

FORMAT = 1
REFERENCE_ROWS = 4000
"""Training items with which new items are compared."""
GATE_ROWS = 20_000
"""Most training items to which the gate is fitted."""
NEIGHBOR = 5
"""Rank of the neighbor to which distances are measured."""


@dataclass(frozen=True, kw_only=True)
class Predictor:
    """Preparation, network, gate, and a sample of the items it was fitted on.

    Items are first mapped to a *space*: prepared vectors, or the network's features of images. In that space new items
    are compared with those of the fit, and k-means clusters have their centers.
    """

    preparation: Preparation
    data: Data
    augment: Augment
    n_known: int
    n_novel: int
    known_in_unlabeled: bool = False
    """The known classes are the first clusters, and the novel head predicts known and novel ones."""
    model: Model | Heads | None = None
    """The network, or the heads on vectors; None where there were no known classes."""
    mean: Matrix | None = None
    scale: Matrix | None = None
    """Vectors: mean and scale by which the inputs of the network are normalized; None for images."""
    centers: Matrix | None = None
    """Centers of the clusters, where k-means was chosen."""
    softness: float = 1.0
    """Temperature, as a squared distance, of the softmax over k-means clusters."""
    gate: Matrix | None = None
    """(features + 1,): weights and bias of the logistic regression; positive means known."""
    reference: Matrix | None = None
    """(r, d): items of the fit in the space, with which new items are compared."""
    distances: Matrix | None = None
    """(m,): distances of other items of the fit to the reference, sorted."""

    @property
    def n_inputs(self) -> int:
        """The number of features of a vector that it takes; 1 for images."""
        reduction = self.preparation.reduction
        if reduction is not None:
            return reduction.n_inputs
        return 1 if self.mean is None else len(self.mean)

    def spaces(self, encoded: Items, rows: Rows | None = None) -> Iterator[Matrix]:
        """Encoded items (all, or the given rows) mapped to the space, a piece at a time."""
        for start in range(0, len(encoded) if rows is None else len(rows), PIECE):
            here = slice(start, start + PIECE)
            yield self._space(encoded.take(here if rows is None else rows[here]))

    def _space(self, items: Items) -> Matrix:
        if items.are_vectors:
            x = items.array if items.array.ndim == 2 else items.array[:, 0]
            return x if self.preparation.reduction is None else self.preparation.reduction(x)
        assert isinstance(self.model, Model)
        device = self.model.device
        views = make_views(items, self.data, self.augment, device, workers=0)
        z: Matrix = features(self.model, views, np.arange(len(items))).cpu().numpy()
        return z

    @torch.no_grad()
    def features(self, space: Matrix) -> Matrix:
        """z (n, D): features of points of the space; the points themselves where they are features already."""
        if self.model is None or self.mean is None or self.scale is None:
            return space
        x = torch.from_numpy(((space - self.mean) / self.scale).astype(np.float32))
        z: Matrix = self.model.encode(x.to(self.model.device)).cpu().numpy()
        return z

    def novel(self, space: Matrix) -> tuple[Matrix, Matrix]:
        """Probabilities (n, clusters) of items that are assumed to be novel, and the confidence (n,) of the largest one
        before calibration."""
        if self.centers is not None:
            distances = squared_distances(space, self.centers)
            nearest = np.sqrt(np.partition(distances, min(1, distances.shape[1] - 1), axis=1)[:, :2])
            confidence = np.ones(len(space))
            if distances.shape[1] > 1:
                confidence = nearest[:, -1] / np.maximum(nearest.sum(axis=1), 1e-12)
            return softmax(-distances / self.softness), confidence.astype(np.float32)
        if self.n_novel == 0 or self.model is None:
            return np.zeros((len(space), 1), dtype=np.float32), np.zeros(len(space), dtype=np.float32)
        p = self._head(self.model.novel_head, self.features(space))
        return p, p.max(axis=1)

    def probabilities(self, space: Matrix) -> Matrix:
        """(n, known + novel): class probabilities of rows that may be of any class."""
        novel = self.novel(space)[0] if self.n_novel else np.zeros((len(space), 0), dtype=np.float32)
        if self.model is None or self.n_known == 0 or self.known_in_unlabeled:
            return novel
        z = self.features(space)
        if self.centers is None and self.n_novel and (joint := self._joint(z)) is not None:
            return joint
        known = self._head(self.model.known_head, z)
        if self.n_novel == 0 or self.gate is None:
            return known if self.n_novel == 0 else np.concatenate([np.zeros_like(known), novel], axis=1)
        p_known = 1 / (1 + np.exp(-np.clip(self._gate_inputs(space, z) @ self.gate[:-1] + self.gate[-1], -30, 30)))
        both: Matrix = np.concatenate([p_known[:, None] * known, (1 - p_known[:, None]) * novel], axis=1)
        return both.astype(np.float32)

    def unlikeness(self, space: Matrix) -> Matrix:
        """(n,): the share of the fit's items that are nearer to the reference than the row; 1: unlike all of them."""
        if self.reference is None or self.distances is None:
            return np.zeros(len(space), dtype=np.float32)
        distance = _neighbor_distance(self.reference, space, NEIGHBOR)
        return (np.searchsorted(self.distances, distance, side="left") / len(self.distances)).astype(np.float32)

    def _gate_inputs(self, space: Matrix, z: Matrix) -> Matrix:
        """(n, d): the inputs of the gate: the features in which the clusters were found."""
        if self.centers is None or self.mean is None or self.scale is None:
            return z
        return (space - self.mean) / self.scale

    @torch.no_grad()
    def _head(self, head: Any, z: Matrix) -> Matrix:
        assert self.model is not None
        p: Matrix = head(torch.from_numpy(z).to(self.model.device)).softmax(dim=1).cpu().numpy()
        return p

    @torch.no_grad()
    def _joint(self, z: Matrix) -> Matrix | None:
        """Probabilities of all classes where the method trains logits on one scale; otherwise None."""
        assert self.model is not None
        logits = self.model.joint(torch.from_numpy(z).to(self.model.device))
        return None if logits is None else logits.softmax(dim=1).cpu().numpy()

    def with_gate(self, space: Matrix, known: NDArray[np.bool_]) -> "Predictor":
        """A copy with a gate, fitted to these rows; `known` marks those of known classes."""
        if self.model is None or self.n_novel == 0 or self.known_in_unlabeled or known.all() or not known.any():
            return self
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        inputs = self._gate_inputs(space, self.features(space))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # good enough for a gate
            fitted = LogisticRegression(class_weight="balanced", C=0.1, max_iter=200).fit(inputs, known)
        return replace(self, gate=np.concatenate([fitted.coef_[0], fitted.intercept_]).astype(np.float32))

    def with_reference(self, reference: Matrix, others: Matrix) -> "Predictor":
        """A copy with reference items; usual distances to them are measured on `others`."""
        if len(others) < 20:  # few items: each against all the others
            distances = _neighbor_distance(reference, reference, NEIGHBOR + 1)
        else:
            distances = _neighbor_distance(reference, others, NEIGHBOR)
        return replace(self, reference=reference, distances=np.sort(distances).astype(np.float32))

    def completed(self, space_of: Callable[[Rows], Matrix], known: NDArray[np.bool_], seed: int) -> "Predictor":
        """A copy with gate and reference. `space_of` maps rows to the space; `known` marks rows of known classes."""
        gated, rows = self, len(known)
        if known.any() and not known.all():
            sample = np.sort(rng.numpy(seed, "gate").permutation(rows)[:GATE_ROWS])
            if len(np.unique(known[sample])) < 2:
                sample = np.arange(rows)
            gated = self.with_gate(space_of(sample), known[sample])
        order = rng.numpy(seed, "reference").permutation(rows)
        count = max(1, min(REFERENCE_ROWS, rows * 4 // 5))
        others = order[count : count + REFERENCE_ROWS]
        empty = np.zeros((0, 1), dtype=np.float32)
        return gated.with_reference(
            space_of(np.sort(order[:count])), space_of(np.sort(others)) if len(others) else empty
        )

    def encoded(self, items: Items, console: Console, given: str = "X") -> tuple[Items, NDArray[np.bool_]]:
        """New items after the encoder, and a mask (n,) of those that could be read."""
        self.preparation.check_kind(items, given)
        if self.preparation.encoder is None and self.preparation.side is None and self.mean is None:
            self._check_images(items, given)
        encoded, readable = self.preparation.encoded(items, console)
        if encoded.are_vectors and 1 < self.n_inputs != encoded.array.shape[-1]:
            raise UnveilError(
                f"the fit was on vectors of {self.n_inputs} numbers, and {given} holds vectors of "
                f"{encoded.array.shape[-1]}: give the same columns"
            )
        return encoded, readable

    def _check_images(self, items: Items, given: str) -> None:
        """Images that go into the network as they are must have the size of those of the fit."""
        if not isinstance(self.model, Model) or self.augment.size is not None:
            return
        channels, height, width = self.model.encoder.shape
        expected = f"uint8 images (n, {height}, {width}, {channels})"
        if items.are_images and (items.pixels is None or items.pixels.shape[1:] != (height, width, channels)):
            what = "image files" if items.pixels is None else f"images {items.pixels.shape[1:]}"
            raise UnveilError(f"the fit was on {expected}, and {given} holds {what}: give images of that size")
        if items.are_vectors:
            raise UnveilError(f"the fit was on images, and {given} holds vectors {items.array.shape}: give {expected}")

    def save(self, folder: Path) -> None:
        """Write predictor.safetensors and, where there is a model, model.safetensors."""
        reduction = self.preparation.reduction
        arrays: dict[str, Any] = {}
        for part, values in (("reduction", reduction), ("tfidf", self.preparation.tfidf)):
            arrays |= {} if values is None else {f"{part}.{key}": array for key, array in values.arrays().items()}
        for name in ("mean", "scale", "centers", "gate", "reference", "distances"):
            if (value := getattr(self, name)) is not None:
                arrays[name] = np.ascontiguousarray(value, dtype=np.float32)
        description = {
            "format": FORMAT,
            "preparation": self.preparation.to_json(),
            "data": recipe.to_table(self.data),
            "augment": recipe.to_table(self.augment),
            **{key: getattr(self, key) for key in ("n_known", "n_novel", "known_in_unlabeled", "softness")},
        }
        arrays["format"] = np.array([FORMAT], dtype=np.float32)  # safetensors wants at least one array
        metadata = {"predictor": json.dumps(description), **checksums.METADATA}
        files.write(folder / "predictor.safetensors", checksums.sealed(serialize(arrays, metadata=metadata)))
        if self.model is not None:
            save_model(self.model, folder / "model.safetensors")

    @staticmethod
    def load(folder: Path, *, device: str = "auto", embeddings: Path | None = None) -> "Predictor":
        """Load what `save` wrote; `embeddings`: the directory of stored embeddings."""
        path = folder / "predictor.safetensors"
        try:
            checksums.check_sealed(path)
            with safe_open(path, framework="numpy") as file:
                values = json.loads(file.metadata()["predictor"])
                arrays: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = str(error).splitlines()[0]
            raise UnveilError(f"{path} cannot be read ({reason}): make the run again") from None
        if values.pop("format") != FORMAT:
            raise UnveilError(f"{path} was written by another version of unveil: make the run again")
        arrays.pop("format")
        parts, words = _taken(arrays, "reduction."), _taken(arrays, "tfidf.")
        preparation = Preparation.from_json(
            values.pop("preparation"),
            reduction=Reduction.from_arrays(parts) if parts else None,
            tfidf=Tfidf.from_arrays(words) if words else None,
            device=device,
            folder=embeddings,
        )
        data = build(Data, values.pop("data"), "data.")
        augment = build(Augment, values.pop("augment"), "augment.")
        weights = folder / "model.safetensors"
        model = load_model(weights) if weights.exists() else None
        if model is not None:
            model = model.to(pick_device(device))
        if isinstance(model, Model):
            model.freeze_trunk()
        return Predictor(preparation=preparation, data=data, augment=augment, model=model, **arrays, **values)


def summed(p: Matrix, class_of: Rows) -> Matrix:
    """Probabilities (n, clusters) as those of classes: `class_of` names the class of each cluster."""
    return np.asarray(p @ np.eye(int(class_of.max()) + 1, dtype=np.float32)[class_of], dtype=np.float32)


def _taken(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Take the arrays with a prefix out, under their names without it."""
    return {key.removeprefix(prefix): arrays.pop(key) for key in list(arrays) if key.startswith(prefix)}


def _neighbor_distance(reference: Matrix, points: Matrix, neighbor: int) -> Matrix:
    """(n,): the distance of each point to its `neighbor`-th nearest reference item."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=min(neighbor, len(reference))).fit(reference)
    pieces = [points[start : start + PIECE] for start in range(0, len(points), PIECE)]
    return np.concatenate([index.kneighbors(piece)[0][:, -1] for piece in pieces])
