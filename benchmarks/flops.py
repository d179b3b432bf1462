"""Wall-clock estimates of the paper's tables from counted operations: `python -m benchmarks.flops --out FILE.json`.

Counted are the multiplications and additions of convolutions and matrix products of the encoder, for one image, on
torch's `meta` device: nothing is computed. A backward pass costs two forward passes. What is run for a table, and what
its runs share, is the plan of `unveil paper`. Losses, heads, augmentation and evaluation are not counted: together they
are a few percent of a step.
"""

import argparse
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from unveil import files, hardware, recipe, rng
from unveil.experiments import experiment, plan
from unveil.experiments.peak import flops
from unveil.methods.catalog import method_class
from unveil.models import build_encoder
from unveil.settings import Encoder, Settings

TABLES = ("table2", "table3", "table4")
ITEMS = {"cifar10": (25_000, 25_000), "cifar100": (40_000, 10_000), "imagenet": (1_129_000, 38_800)}
"""Labelled and unlabelled images; about 1,280 a class of ImageNet."""
RATE = 8e12
"""FLOP/s that a GPU is assumed to reach in float32: 40 % of the 19.5e12 of an A100 without tensor cores."""
LINK = 10e9
"""Bytes a second that are assumed between 8 GPUs: 16-lane PCIe 4 at less than half of its rate."""
TRAINED_BYTES = 4 * 8.5e6


@dataclass(frozen=True)
class Cost:
    """FLOPs of the encoder for one image, forward."""

    trunk: float
    tail: float

    @staticmethod
    def of(settings: Settings) -> "Cost":
        return _cost(settings.encoder, settings.augment.size or 32)

    @staticmethod
    def counted(config: Encoder, side: int) -> "Cost":
        with torch.device("meta"):
            encoder = build_encoder(config, (3, side, side), rng.generator(0, "encoder", device="cpu"))
            x = torch.empty(2, 3, side, side)
        encoder = encoder.to("meta").eval()
        with torch.no_grad():
            inner = encoder.trunk(x)
            return Cost(flops(lambda: encoder.trunk(x)) / 2, flops(lambda: encoder.tail(inner)) / 2)

    @property
    def frozen_trunk(self) -> float:
        """A training step of an image whose trunk is frozen."""
        return self.trunk + 3 * self.tail

    @property
    def whole(self) -> float:
        """A training step of an image in which everything trains."""
        return 3 * (self.trunk + self.tail)


@cache
def _cost(config: Encoder, side: int) -> Cost:
    return Cost.counted(config, side)


def stages(settings: Settings, data: str) -> dict[str, tuple[str, float, int]]:
    """By stage: what identifies it (runs share equal ones), its FLOPs, and its steps."""
    cost, (labelled, unlabelled) = Cost.of(settings), ITEMS[data]
    rotation, supervised, discovery = settings.rotation, settings.supervised, settings.discovery
    table = recipe.to_table(settings)
    found = {}
    items = rotation.epochs * (labelled + unlabelled)
    turns = 4 if rotation.rotations == "all" else 1
    found["rotation"] = (
        json.dumps([table["rotation"], table["encoder"]]),
        items * turns * cost.whole,
        items // rotation.batch,
    )
    items = supervised.epochs * labelled
    each = cost.whole if supervised.train == "all" else cost.frozen_trunk
    found["supervised"] = (
        found["rotation"][0] + json.dumps(table["supervised"]),
        items * each,
        items // supervised.batch,
    )
    batch, seen = discovery.batch, labelled + unlabelled
    if method_class(discovery.method).unlabelled_only:
        batch, seen = discovery.unlabelled_batch or batch, unlabelled
    elif discovery.labelled_per_batch:  # an epoch is one pass over the labelled images
        seen = labelled * batch // discovery.labelled_per_batch
    items = discovery.epochs * seen
    found["discovery"] = (json.dumps(table, default=str), items * 2 * cost.frozen_trunk, items // batch)
    return found


def planned(data: str) -> dict[str, Any]:
    """The runs of all tables on a data set, each stage counted once."""
    seen: dict[str, tuple[str, float, int]] = {}
    runs, chosen = 0, experiment.scale("paper", data)
    for name in TABLES:
        found = experiment.load(name, data)
        for run in plan.make_plan(found, chosen, chosen.seeds, out=Path("out"), runs=Path("runs")).missing():
            for stage, (key, amount, steps) in stages(run.settings, data).items():
                if key not in seen:
                    seen[key] = (stage, amount, steps)
                    runs += stage == "discovery"
    by_stage = {
        name: sum(amount for stage, amount, _ in seen.values() if stage == name)
        for name in ("rotation", "supervised", "discovery")
    }
    one = stages(recipe.load(data), data)
    total = sum(by_stage.values())
    return {
        "runs": runs,
        "exaflop": {stage: round(amount / 1e18, 3) for stage, amount in by_stage.items()},
        "hours_1_gpu": round(total / RATE / 3600, 1),
        "hours_8_gpus": round(total / RATE / 3600 / 8, 1),
        "one_run": {
            stage: {
                "exaflop": round(amount / 1e18, 4),
                "steps": steps,
                "hours_1_gpu": hours(amount, steps, 1),
                "hours_8_gpus": hours(amount, steps, 8),
            }
            for stage, (_, amount, steps) in one.items()
        },
    }


def hours(amount: float, steps: int, gpus: int) -> float:
    """Of one training on some GPUs: its operations, and its gradients over the link."""
    sending = steps * 2 * TRAINED_BYTES * (gpus - 1) / gpus / LINK
    return round((amount / RATE / gpus + sending) / 3600, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    per_image = {}
    for data in ITEMS:
        cost = Cost.of(recipe.load(data))
        per_image[data] = {"trunk_gflop": round(cost.trunk / 1e9, 4), "tail_gflop": round(cost.tail / 1e9, 4)}
    record = {
        "assumed": {"flop_per_second": RATE, "link_bytes_per_second": LINK, "tables": TABLES, "items": ITEMS},
        "per_image": per_image,
        "data": {data: planned(data) for data in ITEMS},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": hardware.commit(),
    }
    print(json.dumps(record, indent=1))
    if args.out:
        files.write_json(args.out, record)


if __name__ == "__main__":
    main()
