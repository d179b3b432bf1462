"""Own data that several tests discover in."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Digits as pictures of many kinds: 0-4 known, 5-7 new, one file broken."""
    root = tmp_path_factory.mktemp("pictures")
    X, y = load_digits(return_X_y=True)
    modes = ["L", "RGB", "RGBA", "P", "1", "I;16"]
    kinds = ["png", "jpg", "webp", "bmp", "tiff"]
    for row in range(600):
        label = int(y[row])
        if label > 7:
            continue
        picture = Image.fromarray((X[row].reshape(8, 8) * 15.9).astype(np.uint8)).resize((16 + row % 9, 20))
        folder = root / "known" / f"class {label}" if label < 5 else root / "new" / f"batch{row % 3}" / "deep"
        folder.mkdir(parents=True, exist_ok=True)
        kind, mode = kinds[row % 5], modes[row % 6] if row % 5 == 0 else "L"
        if mode == "I;16":
            picture = Image.fromarray(np.asarray(picture).astype(np.uint16) * 257)
        else:
            picture = picture.convert(mode)
        picture.save(folder / f"{row:04d}.{kind}")
    (root / "new" / "broken.png").write_bytes(b"no picture")
    (root / "new" / "notes.txt").write_text("not an image")
    return root / "known", root / "new"
