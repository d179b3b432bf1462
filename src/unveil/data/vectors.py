"""What is done to vectors before anything is learned from them: unit length, principal components."""

from dataclasses import replace

import numpy as np
from sklearn.decomposition import PCA

from unveil.data.dataset import Dataset, Split, Vectors
from unveil.errors import UnveilError
from unveil.settings import Data

SAMPLE = 20_000  # rows from which the components are found


def reduced(dataset: Dataset, config: Data) -> Dataset:
    """The data set with its vectors at unit length and on fewer axes, as the settings ask."""
    if not config.unit and config.pca is None:
        return dataset
    if dataset.kind != "vectors":
        raise UnveilError(f"data.unit and data.pca are for vectors, and {dataset.name} has images: leave them out")
    splits = [part for part in (dataset.train, dataset.test) if part is not None]
    items = [_unit(part.items) if config.unit else np.asarray(part.items) for part in splits]  # type: ignore[arg-type]
    if config.pca is not None:
        step = max(1, len(items[0]) // SAMPLE)
        sample = items[0][::step]
        fitted = PCA(min(config.pca, *sample.shape), random_state=0).fit(sample)
        items = [fitted.transform(part).astype(np.float32) for part in items]
    parts: list[Split] = [replace(part, items=found) for part, found in zip(splits, items, strict=True)]
    return replace(dataset, train=parts[0], test=parts[1] if len(parts) > 1 else None)


def _unit(items: Vectors) -> Vectors:
    length = np.linalg.norm(items, axis=1, keepdims=True)
    unit: Vectors = (items / np.maximum(length, 1e-12)).astype(np.float32)
    return unit
