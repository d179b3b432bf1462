"""New classes of sound from MFCC statistics: the numbers of docs/tutorials/sound.md.

    python -m benchmarks.sound spoken_digits.npz [--out results/sound.json]

The file holds X (recordings × statistics) and y (the spoken digit). Half of the digits are known, the others new, in
five draws. Beside unveil stands k-means on standardized columns; both are told the number of new ones.
"""

import time
from datetime import UTC, datetime
from pathlib import Path

import cyclopts
import numpy as np
import torch
from sklearn.preprocessing import StandardScaler

from unveil import NovelClassDiscovery, files, hardware, rng
from unveil.clustering.kmeans import kmeans
from unveil.metrics import clustering_accuracy

KNOWN, DRAWS = 5, 5
RECORD = Path("results/sound.json")
app = cyclopts.App(help=__doc__)


@app.default
def main(path: Path, /, *, out: Path = RECORD) -> None:
    """Measure, print and write the record."""
    torch.set_num_threads(1)
    with np.load(path, allow_pickle=False) as stored:
        x, digits = stored["X"].astype(np.float32), stored["y"].astype(np.int64)
    rows = []
    for seed in range(DRAWS):
        order = rng.numpy(seed, "spoken digits").permutation(10)
        is_new = np.isin(digits, order[KNOWN:])
        y, z = np.where(is_new, -1, digits), StandardScaler().fit_transform(x[is_new])
        begun = time.process_time()
        fit = NovelClassDiscovery(10 - KNOWN, random_state=seed).fit(x, y)
        assert fit.forecast_ is not None
        rows.append(
            {
                "seed": seed,
                "new": sorted(order[KNOWN:].tolist()),
                "acc": clustering_accuracy(digits[is_new], fit.labels_[is_new]),
                "kmeans": clustering_accuracy(digits[is_new], kmeans(z, 10 - KNOWN, seed).labels),
                "forecast": fit.forecast_.sentence(),
                "choice": fit.choice_,
                "seconds": round(time.process_time() - begun, 1),
            }
        )
        print(rows[-1])
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": hardware.commit(),
        "machine": hardware.describe(torch.device("cpu"), torch.float32),
        "recordings": len(x),
        "columns": x.shape[1],
        "rows": rows,
    }
    files.write_json(out, record)


if __name__ == "__main__":
    app()
