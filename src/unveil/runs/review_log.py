"""The lines of RUN/review.jsonl: one correction each, with its number."""

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError

LOG = "review.jsonl"
LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of the log."""

    number: int
    """Counted from 1."""
    time: str
    kind: str
    """name, known, merge, split, move, reject, accept, undo or redo"""
    data: dict[str, Any]
    """What the action is about, for example {"cluster": 12, "text": "fox"}."""

    def line(self) -> bytes:
        return (json.dumps(self.__dict__, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def parse_entries(content: bytes, path: Path, first: int = 1) -> tuple[list[Entry], int]:
    """The entries in complete lines and how many bytes these lines are; an incomplete last line is ignored."""
    used = content.rfind(b"\n") + 1
    entries = []
    for number, line in enumerate(content[:used].splitlines(), start=first):
        try:
            raw = json.loads(line)
            entry = Entry(number=raw["number"], time=raw["time"], kind=raw["kind"], data=dict(raw["data"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            entry = None
        if entry is None or entry.number != number:
            raise UnveilError(f"line {number} of {path} is damaged: cut the file there to keep what is before it")
        entries.append(entry)
    return entries, used


def clean_name(text: object) -> str:
    """A name that a person typed, without space around it; an error where it is no single line of text."""
    name = unicodedata.normalize("NFC", text).strip() if isinstance(text, str) else ""
    if not name or len(name) > LONGEST_NAME:
        raise UnveilError(f"a name has 1 to {LONGEST_NAME} characters")
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name):
        raise UnveilError("a name is one line of text: leave out control characters")
    return name
