"""Discover classes in a folder of images: `python examples/image_folder.py`, or with your own `KNOWN NEW` folders.

KNOWN has a sub-folder for each class, NEW has images of classes that nobody has named. Without folders it writes
scikit-learn's handwritten digits as PNG files. The same on the command line: `unveil discover KNOWN NEW`.
"""

import sys
import tempfile
from pathlib import Path

from unveil.own.run import run_own_data
from unveil.review.export import export
from unveil.storage import default_store


def digits(folder: Path) -> tuple[Path, Path]:
    """0-4 with a folder each, 5-9 together."""
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_digits

    images, labels = load_digits().images, load_digits().target
    for row, (image, label) in enumerate(zip(images, labels, strict=True)):
        place = folder / "known" / str(label) if label < 5 else folder / "new"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15).astype(np.uint8)).save(place / f"{row:04d}.png")
    return folder / "known", folder / "new"


with tempfile.TemporaryDirectory() as temporary:
    own = len(sys.argv) == 3
    known, new = (Path(sys.argv[1]), Path(sys.argv[2])) if own else digits(Path(temporary))
    out = Path("runs/image-folder-example") if own else Path(temporary) / "run"
    record = run_own_data(
        known,
        new,
        out=out,
        stages=default_store() if own else Path(temporary) / "store",
        encoder="auto" if own else "pixels",
        changes={"rehearsals": 3 if own else 1},
    )
    for line in record["summary"].values():
        print(line)
    print(f"a folder for each class: {export(out, 'folders', None)}")
