"""`Items`: one type for images in memory, image files, vectors, texts and rows of a table."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from unveil.data.file_hashes import hash_files

if TYPE_CHECKING:
    from unveil.data.table import Table

Images = NDArray[np.uint8]
"""(n, height, width, channels) with 1 or 3 channels."""
Vectors = NDArray[np.float32]
"""(n, features) or (n, views, features), finite; may be memory-mapped."""
Rows = NDArray[np.int64]

SMALL_SIDE = 64
"""Images are small up to this side in pixels."""
PIECE = 8192
"""Rows that are read at a time, so that memory-mapped files need little memory."""


@dataclass(frozen=True, eq=False)
class Items:
    """Rows of one kind: `images` (one uint8 array), `files` (paths of images, decoded when needed), `vectors`, `texts`,
    or `table` (columns of several kinds)."""

    kind: Literal["images", "files", "vectors", "texts", "table"]
    values: Any
    """The array, the tuple of paths or texts, or the table."""

    @staticmethod
    def of(values: NDArray[Any] | Sequence[Path]) -> "Items":
        """Items of an array (uint8: images, float: vectors) or of paths to image files."""
        if isinstance(values, np.ndarray):
            return Items("images" if values.dtype == np.uint8 else "vectors", values)
        return Items("files", tuple(values))

    @staticmethod
    def of_texts(texts: Sequence[str]) -> "Items":
        """Items that are texts."""
        return Items("texts", tuple(texts))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def are_images(self) -> bool:
        """Whether they are images, in memory or in files."""
        return self.kind in ("images", "files")

    @property
    def are_vectors(self) -> bool:
        """Whether they are numbers that need no encoder."""
        return self.kind == "vectors"

    @property
    def are_files(self) -> bool:
        """Whether each is a file, which is read when it is needed and may turn out to be unreadable."""
        return self.kind == "files"

    @property
    def are_table(self) -> bool:
        """Whether they are rows with columns of several kinds."""
        return self.kind == "table"

    @property
    def read_as(self) -> Literal["images", "texts"] | None:
        """What an encoder reads in them; None: nothing, they are numbers or categories."""
        if self.are_images:
            return "images"
        return "texts" if self.kind == "texts" or (self.are_table and self.table.text is not None) else None

    @property
    def called(self) -> str:
        """What messages call them."""
        return {"files": "images", "table": "a table"}.get(self.kind, self.kind)

    @property
    def pixels(self) -> Images | None:
        """Images in memory; None for everything else."""
        return self.values if self.kind == "images" else None

    @property
    def are_gray(self) -> bool:
        """Whether they are images in memory with one channel."""
        return self.pixels is not None and self.pixels.shape[-1] == 1

    @property
    def are_small(self) -> bool:
        """Whether they are images in memory of at most 64 pixels a side."""
        return self.fit_into(SMALL_SIDE)

    def fit_into(self, side: int) -> bool:
        """Whether they are images in memory without a side of more pixels than this."""
        return self.pixels is not None and max(self.pixels.shape[1:3]) <= side

    @property
    def in_array(self) -> bool:
        """Whether they are one array of numbers."""
        return self.kind in ("images", "vectors")

    @property
    def given_as(self) -> str:
        """What messages call the file or folder that they come from."""
        words = {"files": "a folder of images", "texts": "texts", "table": "a table with more than numbers"}
        return words.get(self.kind, "an array")

    @property
    def n_features(self) -> int:
        """Columns of vectors; 1 for other kinds."""
        return int(self.array.shape[-1]) if self.are_vectors else 1

    @property
    def array(self) -> NDArray[Any]:
        """The images or vectors; other kinds have no array."""
        assert self.in_array, f"{self.kind} are not an array"
        return cast(NDArray[Any], self.values)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The image files; empty for other kinds."""
        return self.values if self.are_files else ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, also those of a table; empty for other kinds."""
        if self.are_table and self.table.text is not None:
            return tuple(self.table.texts(self.table.text))
        return self.values if self.kind == "texts" else ()

    @property
    def table(self) -> "Table":
        """The table; other kinds have none."""
        assert self.kind == "table"
        return cast("Table", self.values)

    def take(self, rows: Rows | slice) -> "Items":
        """The items of these rows."""
        if self.kind not in ("files", "texts") or isinstance(rows, slice):
            return Items(self.kind, self.values[rows])
        return Items(self.kind, tuple(self.values[row] for row in rows))

    def pieces(self, size: int = PIECE) -> "list[Items]":
        """The rows in order, `size` at a time."""
        return [self.take(slice(start, start + size)) for start in range(0, len(self), size)]

    def and_then(self, others: "Items") -> "Items":
        """These items followed by `others`, which must be of the same kind."""
        assert self.kind == others.kind
        if self.kind in ("files", "texts"):
            return Items(self.kind, (*self.values, *others.values))
        if self.kind == "table":
            return Items(self.kind, self.table.and_then(others.table))
        return Items(self.kind, np.concatenate([self.values, others.values]))

    def keys(self, store: Path | None = None) -> NDArray[np.bytes_]:
        """(n,): a short hash of the content of each image or text, whatever stands beside it. With a store, image files
        that were read before are not read again; those that cannot be read are `unreadable`."""
        if self.are_files:
            return np.array(hash_files(self.paths, store), dtype="S20")
        if self.read_as == "texts":
            contents: Iterator[bytes] = (text.encode("utf-8", "backslashreplace") for text in self.texts)
        else:
            form = f"{self.array.shape[1:]} {self.array.dtype}".encode()
            contents = (form + row.tobytes() for piece in self.pieces() for row in piece.array)
        return np.array([hashlib.sha256(content).hexdigest()[:20] for content in contents], dtype="S20")

    def fingerprint(self, store: Path | None = None) -> str:
        """A short hash of the content. With a store, image files that were read before are not read again."""
        digest = hashlib.sha256()
        if self.kind == "table":
            return self.table.fingerprint()
        if self.kind == "files":
            digest.update("\n".join(hash_files(self.paths, store)).encode())
            return digest.hexdigest()[:20]
        if self.kind == "texts":
            for text in self.texts:
                content = text.encode("utf-8", "backslashreplace")
                digest.update(len(content).to_bytes(8) + content)
            return digest.hexdigest()[:20]
        digest.update(f"{self.array.shape} {self.array.dtype}".encode())
        for piece in self.pieces():
            digest.update(np.ascontiguousarray(piece.array).data)
        return digest.hexdigest()[:20]
