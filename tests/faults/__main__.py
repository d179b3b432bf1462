"""All faults on purpose, in their long form, and a record of what became of each.

    python -m tests.faults [--only kills,disks] [--share 0.2] [--seed 0] [--out results/faults.json]

Outcomes that are promised: `exact` (the same bytes as without the fault), `made again` (told, set aside, and the same
bytes), `refused` (a message that names the file) and `read` (a value that is not affected). Never: `lost`,
`silently wrong`, `traceback`. The short form runs in tests/test_faults.py; docs/reliability.md shows the record. Parts
that were not asked for stay in the record as they are.
"""

import argparse
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # review_runs.py

from .damages import damages, reviews_damaged
from .disks import clocks, full_disks, read_only
from .fuzz import fuzz, fuzz_page
from .kills import kills, kills_at_changes, reviews, side_by_side
from .outcomes import Outcomes
from .ranks import killed_ranks

ROUNDS = {"readers": 20, "page": 20}
"""Parts that are done several times, each time with another seed; others are done once."""
PARTS: dict[str, Callable[[Outcomes, int, float], Counter[str] | None]] = {
    "kills": lambda outcomes, seed, share: kills(outcomes, some(25, share), seed),
    "changes": lambda outcomes, seed, share: kills_at_changes(outcomes, some(40, share)),
    "twice": lambda outcomes, seed, share: kills(outcomes, some(5, share), seed + 1, times=2),
    "ranks": lambda outcomes, seed, share: killed_ranks(outcomes, some(5, share), seed),
    "reviews": lambda outcomes, seed, share: reviews(outcomes, some(200, share), seed),
    "together": lambda outcomes, seed, share: side_by_side(outcomes, some(5, share), seed),
    "disks": lambda outcomes, seed, share: full_disks(outcomes, some(15, share)),
    "read-only": lambda outcomes, seed, share: read_only(outcomes),
    "clocks": lambda outcomes, seed, share: clocks(outcomes, some(5, share)),
    "readers": lambda outcomes, seed, share: fuzz(outcomes, some(1000, share), seed),
    "page": lambda outcomes, seed, share: fuzz_page(outcomes, some(1000, share), seed),
    "log": lambda outcomes, seed, share: reviews_damaged(outcomes, some(500, share), seed),
    "damages": lambda outcomes, seed, share: damages(outcomes, 2, seed, every=some(1, 1 / share)),
}


def some(count: int, share: float) -> int:
    """A share of a number of cases, at least one."""
    return max(1, round(count * share))


def main() -> int:
    """Run the parts, and write the record after each; returns how many outcomes there were that never may be."""
    from unveil.hardware import commit

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases, where time is short")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"parts": {}}
    if options.out is not None and options.out.exists():
        record = json.loads(options.out.read_text())
    bad = 0
    for name in options.only.split(","):
        outcomes, begun = Outcomes(), time.monotonic()
        for turn in range(ROUNDS.get(name, 1)):
            files = PARTS[name](outcomes, options.seed + turn, options.share)
            record["parts"][name] = {
                "outcomes": {fault: dict(counts) for fault, counts in outcomes.counts.items()},
                "bad": outcomes.bad[:50],
                **({} if files is None else {"files": dict(files)}),
                "seed": options.seed,
                "minutes": round((time.monotonic() - begun) / 60, 1),
                "commit": commit(),
                "python": platform.python_version(),
            }
            if options.out is not None:
                options.out.write_text(json.dumps(record, indent=2) + "\n")
        print(name, json.dumps(record["parts"][name], indent=2), flush=True)
        bad += len(outcomes.bad)
    return bad


if __name__ == "__main__":
    sys.exit(min(1, main()))
