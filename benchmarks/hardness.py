"""How hard the negatives are that hard negative generation and its variants add, on the features of a finished run.

    unveil paper hng-variants --data cifar100-embedded
    python -m benchmarks.hardness runs/paper/…/ncl-…-seed0 --out results/hng-hardness.json

Queues and queries are drawn from the run's features as a step would meet them. For each variant: the mean cosine of a
query with the negatives that are added, and their share of the denominator of the contrastive loss, which is also
their share of the force that pushes the query away.
"""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unveil import files, hardware
from unveil.losses import hard_negatives
from unveil.methods.hng_variants import variant
from unveil.methods.ncl import HNGSettings
from unveil.runs.reader import Run, load

QUERIES = 256
VARIANTS = {
    "V1: remove the easiest": "v1",
    "V2: replace the easiest": "v2",
    "V3: random labeled": "v3",
    "V4: mix labeled": "v4",
    "V5: mix the easiest": "v5",
    "V6: mix with the nearest labeled": "v6",
    "HNG": "",
}


def hardness(z: Tensor, queue_u: Tensor, queue_l: Tensor, config: HNGSettings, k1: int, seed: int) -> dict[str, float]:
    """z: (B, D) and both queues at unit length."""
    draw, cosines = torch.Generator().manual_seed(seed), z @ queue_u.T
    added: Tensor | None
    if config.variant:
        kept, added = variant(z, cosines, queue_u, queue_l, config, k1, draw)
    else:
        kept = cosines
        added = hard_negatives(
            z,
            queue_u,
            queue_l,
            k_easy=config.k_easy,
            k_hard=config.k_hard,
            rounds=config.rounds,
            mixes=config.mixes,
            generator=draw,
        )
    if added is None:
        return {"negatives": 0, "share": 0.0}
    new, old = ((part / config.temperature).exp().sum(dim=1) for part in (added, kept))
    share = float((new / (new + old)).mean())
    return {"negatives": added.shape[1], "cosine": round(float(added.mean()), 3), "share": round(share, 3)}


def measured(run: Run, seed: int) -> list[dict[str, Any]]:
    """Every variant on queues and queries drawn from a run."""
    features = F.normalize(torch.from_numpy(np.array(run.features, dtype=np.float32)), dim=1)
    new = torch.from_numpy(np.array(run.new))
    draw = torch.Generator().manual_seed(seed)
    unlabeled, labeled = (part[torch.randperm(len(part), generator=draw)] for part in (features[new], features[~new]))
    z, queue_u, queue_l = unlabeled[:QUERIES], unlabeled[QUERIES:], labeled
    rows = []
    for title, name in VARIANTS.items():
        config = HNGSettings(variant=name)  # type: ignore[arg-type]
        size = config.queue
        k1 = config.neighbors(min(size, len(queue_u)), len(run.record["novel"]))
        rows.append({"variant": title, **hardness(z, queue_u[:size], queue_l[:size], config, k1, seed)})
    return rows


def table(record: dict[str, Any]) -> str:
    """Markdown: one line a variant, two columns a run."""
    runs = record["runs"]
    head = "".join(f" {run['data']}: cosine | {run['data']}: share of the denominator |" for run in runs)
    lines = [f"|  |{head}", "|---" * (1 + 2 * len(runs)) + "|"]
    for each in zip(*(run["rows"] for run in runs), strict=True):
        cells = [f"{row.get('cosine', '')} | {100 * row['share']:.0f} %" for row in each]
        lines.append(f"| {each[0]['variant']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="run directories of NCL without hard negatives")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = []
    for folder in args.runs:
        run = load(folder)
        facts = {key: run.record[key] for key in ("recipe", "method", "seed")}
        found.append({"data": run.record["recipe"], **facts, "rows": measured(run, args.seed)})
    record = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": hardware.commit(), "seed": args.seed}
    record |= {"queries": QUERIES, "machine": hardware.describe(torch.device("cpu"), torch.float32), "runs": found}
    print(table(record))
    if args.out:
        files.write_json(args.out, record)


if __name__ == "__main__":
    main()
