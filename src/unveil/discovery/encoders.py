"""What people hand over, as vectors: float matrices as they are, images and image files through an encoder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from sklearn.utils.validation import validate_data

from unveil import hardware
from unveil.data.arrays import checked_items
from unveil.data.dataset import Files, Items
from unveil.discovery.scratch import Scratch, train_scratch
from unveil.errors import UnveilError
from unveil.models import pretrained as backbones
from unveil.models.embedding import PIXELS, Embedding, images_of, pictures
from unveil.settings import Machine
from unveil.storage import default_store

SMALL, LARGE = 96, 192
"""Side at which a pretrained encoder sees images: of up to 64 pixels, and larger ones."""
ENOUGH = 5000
"""Images from which an encoder can be trained from scratch."""


class Source(Protocol):
    """Turns items into vectors, the same way each time."""

    @property
    def name(self) -> str: ...

    def __call__(self, given: Items, console: Console) -> NDArray[np.float32]: ...


@dataclass(frozen=True)
class Pixels:
    """Pixels as they are, scaled to 32x32 where they are more."""

    name: str = "pixels"

    def __call__(self, given: Items, console: Console) -> NDArray[np.float32]:
        if not isinstance(given, tuple) and max(given.shape[1:3]) <= PIXELS:
            return (given.reshape(len(given), -1) / np.float32(255)).astype(np.float32)
        parts = []
        for start in range(0, len(given), 512):
            x, read = pictures(given[start : start + 512], PIXELS, skip_unreadable=True)
            if not isinstance(given, tuple) and given.shape[-1] == 1:
                x = x[:, :1]
            found = x.flatten(1).numpy()
            found[~read] = np.nan
            parts.append(found)
        return np.concatenate(parts)


@dataclass(frozen=True)
class Embedded:
    """A pretrained encoder."""

    name: str
    size: int
    store: Path
    device: str

    def __call__(self, given: Items, console: Console) -> NDArray[np.float32]:
        device = hardware.pick_device(self.device)
        precision = hardware.pick_precision(Machine(), device)
        embedding = Embedding(
            name=self.name,
            size=self.size,
            device=device,
            precision=precision,
            folder=self.store,
            console=console,
        )
        return embedding(given, skip_unreadable=True)


def choose_source(
    given: Items,
    encoder: str,
    labels: NDArray[np.int64],
    *,
    store: Path | None,
    device: str,
    seed: int,
    console: Console,
) -> Source:
    """The encoder that was asked for; `auto`: a pretrained one where it is installed, else one trained here where there
    are enough images, else pixels."""
    small = not isinstance(given, tuple) and max(given.shape[1:3]) <= 64
    if encoder == "auto":
        enough = len(given) >= ENOUGH and (labels >= 0).any()
        encoder = (
            "efficientnet-lite0" if backbones.installed("efficientnet-lite0") else "compact" if enough else "pixels"
        )
        console.print(f"encoder: {encoder}")
    if encoder == "pixels":
        return Pixels()
    if encoder == "compact":
        return train_scratch(
            images_of(given), labels, store=store or default_store(), device=device, seed=seed, console=console
        )
    backbones.pretrained(encoder, torch.device("cpu"))  # an error now rather than after the images are read
    return Embedded(encoder, SMALL if small else LARGE, Path(store or default_store()), device)


def items_of(X: Any) -> Items | None:
    """Images or image files, or None where X is a matrix of numbers."""
    if isinstance(X, np.ndarray) and X.dtype == np.uint8 and X.ndim in (3, 4):
        images = checked_items(X, "X")
        return images if images.shape[-1] in (1, 3) else None
    if isinstance(X, list | tuple) and X and all(isinstance(path, str | Path) for path in X):
        return _existing(tuple(map(Path, X)))
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "UO" and all(isinstance(p, str | Path) for p in X):
        return _existing(tuple(map(Path, X.tolist())))
    return None


def _existing(paths: Files) -> Files:
    if missing := [path for path in paths if not path.is_file()]:
        raise UnveilError(f"{len(missing)} of {len(paths)} image files are not there, the first is {missing[0]}")
    return paths


def matrix(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.floating]:
    """X (n, d) or (n, views, d), checked; a memory-mapped file is not loaded."""
    if isinstance(X, np.memmap) and X.dtype.kind == "f" and X.ndim == 2:
        _finite(X)
        if reset:
            estimator.n_features_in_ = X.shape[1]
        elif estimator.n_features_in_ != X.shape[1]:
            raise UnveilError(f"X has {X.shape[1]} features, but the fit had {estimator.n_features_in_}: give the same")
        return X
    if isinstance(X, np.ndarray) and X.ndim == 3:
        n, views, d = X.shape
        if views == 0:
            raise UnveilError(f"X has shape {X.shape}: give at least one view of each item")
        flat: NDArray[np.floating] = validate_data(estimator, X.reshape(n * views, d), reset=reset, dtype=np.float32)
        return flat.reshape(n, views, d) if views > 1 else flat
    least = 2 if reset else 1
    found: NDArray[np.floating] = validate_data(
        estimator, X, reset=reset, dtype=[np.float32, np.float64], ensure_min_samples=least
    )
    with np.errstate(over="ignore"):
        small = found.astype(np.float32, copy=False)
    if not np.isfinite(small).all():
        raise UnveilError("X has numbers too large for float32: scale them down")
    return small


def _finite(X: NDArray[np.floating]) -> None:
    for start in range(0, len(X), 65_536):
        if not np.isfinite(X[start : start + 65_536]).all():
            raise UnveilError(f"X has NaN or infinite numbers from row {start} on: remove or repair such rows")


def check_rows(vectors: NDArray[np.floating], given: Items) -> None:
    """Files that were no images have become NaN."""
    if isinstance(given, tuple) and (bad := np.flatnonzero(np.isnan(vectors[:, 0]))).size:
        raise UnveilError(
            f"{len(bad)} files cannot be read as images, the first is {given[bad[0]]}: take them out of X"
        )


def save_source(source: Source | None, folder: Path) -> dict[str, Any] | None:
    """What a JSON file needs to say of it."""
    if source is None:
        return None
    if isinstance(source, Embedded):
        return {"name": source.name, "size": source.size}
    if isinstance(source, Scratch):
        source.save(folder)
    return {"name": source.name}


def load_source(stored: dict[str, Any] | None, folder: Path) -> Source | None:
    """What `save_source` described."""
    if stored is None:
        return None
    if stored["name"] == "pixels":
        return Pixels()
    if stored["name"] == "compact":
        return Scratch.load(folder)
    return Embedded(stored["name"], stored["size"], default_store(), "auto")
