"""The lines of RUN/review.jsonl: one correction each, with its number and a checksum of all lines up to it.

A line that is missing or has changed breaks the chain of checksums. RUN/review.last holds the number and the checksum
of the last line, so that lines that are missing at the end are noticed too.
"""

import hashlib
import json
import os
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unveil.errors import UnveilError

LOG = "review.jsonl"
LAST = "review.last"
LONGEST_NAME = 200
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Characters that count as letters, marks or symbols and show nothing."""
JOINED = ("Lo", "Mn", "Mc", "So", "Sk")  # categories between which a zero-width joiner has a meaning


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of the log."""

    number: int  # counted from 1
    time: str
    kind: str  # name, known, merge, split, move, reject, restore, no, accept, undo or redo
    data: dict[str, Any]  # what the action is about, for example {"cluster": 12, "text": "fox"}

    sum: str = ""
    """Checksum of this entry and, by the sum of the one before, of all earlier ones; "" in logs of older versions."""

    def line(self) -> bytes:
        values = {key: value for key, value in self.__dict__.items() if key != "sum" or value}
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        return f"{text}\n".encode("utf-8", "backslashreplace")

    def chained(self, before: str) -> "Entry":
        """The entry with its checksum; `before` is that of the entry before it."""
        bare = replace(self, sum="")
        return replace(self, sum=hashlib.sha256(before.encode() + bare.line()).hexdigest()[:16])


def parse_entries(content: bytes, path: Path, first: int = 1, before: str = "") -> tuple[list[Entry], int]:
    """The entries in complete lines and how many bytes these lines are; an incomplete last line is ignored.

    `before` is the checksum of the entry before the first one. All entries that are returned have checksums, also where
    the lines of an older version have none.
    """
    used = content.rfind(b"\n") + 1
    entries, chain_begun = [], False
    for number, line in enumerate(content[:used].split(b"\n")[:-1], start=first):
        entry = _parse(line)
        if entry is None or entry.number != number:
            raise UnveilError(f"line {number} of {path} is damaged: {_cut(path)}")
        expected = entry.chained(before)
        chain_begun = chain_begun or bool(entry.sum)
        if chain_begun and entry.sum != expected.sum:
            raise UnveilError(f"line {number} of {path} has changed since it was written: {_cut(path)}")
        before = expected.sum
        entries.append(expected)
    return entries, used


def _parse(line: bytes) -> Entry | None:
    try:
        raw = json.loads(line)
        values = {key: raw[key] for key in ("number", "time", "kind")}
        entry = Entry(**values, data=dict(raw["data"]), sum=raw.get("sum", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    plain = type(entry.number) is int and all(isinstance(text, str) for text in (entry.time, entry.kind, entry.sum))
    return entry if plain else None


def _cut(path: Path) -> str:
    return f"cut the file there and delete {path.with_name(LAST).name} to keep what is before it"


def write_last(path: Path, entry: Entry) -> None:
    """Note the last entry of a log beside it. Where that fails, only the check of the end is weaker."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError), os.fdopen(os.open(path.with_name(LAST), flags, 0o644), "wb", buffering=0) as file:
        file.write(f"{entry.number:020d} {entry.sum:<16}\n".encode())  # always as many bytes


def read_last(path: Path) -> tuple[int, str]:
    """Number and checksum of the last entry that was noted; 0 where there is no note. Read it before the log itself."""
    try:
        number, last = path.with_name(LAST).read_text(encoding="ascii").split()
        return int(number), last
    except (OSError, ValueError):
        return 0, ""


def check_end(path: Path, noted: tuple[int, str], entries: Sequence[Entry], first: int = 1) -> None:
    """Raise an error where the log ends before the last entry that was noted, or has another in its place.

    `entries` are those from number `first` on: what is before them was checked already.
    """
    count, last = noted
    length = first - 1 + len(entries)
    if length < count:
        missing = f"line {count}" if count == length + 1 else f"lines {length + 1} to {count}"
        advice = f"put a copy back, or delete {LAST} beside it to go on without"
        raise UnveilError(f"{path} has lost {missing} at its end: {advice}")
    if count >= first and entries[count - first].sum != last:
        raise UnveilError(f"line {count} of {path} has changed since it was written: {_cut(path)}")


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
