"""What becomes of a fault, counted by kind."""

from collections import Counter
from dataclasses import dataclass, field

NEVER = ("lost", "silently wrong", "traceback")
"""Outcomes that may never be."""


@dataclass
class Outcomes:
    """How often each outcome occurred, and the cases of those that never may."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)

    def add(self, fault: str, outcome: str, case: str = "") -> None:
        self.counts.setdefault(fault, Counter())[outcome] += 1
        if outcome in NEVER:
            self.bad.append(f"{fault}: {outcome}: {case}")
