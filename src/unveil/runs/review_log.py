"""The lines of RUN/review.jsonl: one correction each, with its number."""

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError

LOG = "review.jsonl"
LONGEST_NAME = 200
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Characters that count as letters, marks or symbols and show nothing."""
JOINED = ("Lo", "Mn", "Mc", "So", "Sk")
"""Categories between which a zero-width joiner has a meaning."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of the log."""

    number: int
    """Counted from 1."""
    time: str
    kind: str
    """name, known, merge, split, move, reject, restore, no, accept, undo or redo"""
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


def typed_name(text: object) -> str:
    """`clean_name` of a new name, in which every character must be visible: two names must not look the same."""
    name = clean_name(text)
    if hidden := hidden_characters(name):
        raise UnveilError(f"the name has characters that cannot be seen ({', '.join(hidden)}): leave them out")
    return name


def hidden_characters(name: str) -> list[str]:
    """Codes of characters that are invisible or change the direction of text: zero-width ones, overrides, fillers.

    Joiners are allowed where scripts and emoji need them: between characters without upper and lower case.
    """
    hidden = []
    for place, character in enumerate(name):
        is_joiner = character in "\u200c\u200d"
        around = name[max(0, place - 1) : place] + name[place + 1 : place + 2]
        if is_joiner and len(around) == 2 and all(unicodedata.category(c) in JOINED for c in around):
            continue
        if unicodedata.category(character) in ("Cf", "Cn") or character in FILLERS:
            hidden.append(f"U+{ord(character):04X}")
    return hidden
