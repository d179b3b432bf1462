"""Names, numbers and tables as HTML. Every text that is not part of the program passes through `escaped`."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0]"
)
"""Characters that nobody sees or that change the direction of text."""
WIDE = 'class="wide" tabindex="0" role="group" aria-label="Table"'
"""Attributes of what scrolls sideways on a small screen, by touch or by keys."""
NAME = 48  # most characters of a name that are shown

SENTENCE = 72  # most characters of a text that are shown


def cleaned(text: object) -> str:
    """The text without control characters and lone surrogates, which HTML does not allow; hidden ones are shown."""
    return HIDDEN.sub(lambda match: f"⟨{ord(match[0]):04x}⟩", UNPRINTABLE.sub("\ufffd", str(text)))


def escaped(text: object) -> str:
    """The text made safe for HTML, inside and outside of quotes."""
    return html.escape(cleaned(text), quote=True)


def short(text: str, most: int = NAME) -> str:
    """Shorten a long name in its middle, so that folder and number of a file stay readable."""
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def name(text: str, most: int = NAME) -> str:
    """A name as HTML, isolated from the direction of the surrounding text; hovering shows more of a long name."""
    title = f' title="{escaped(short(text, 400))}"' if len(text) > most else ""
    return f"<bdi{title}>{escaped(short(text, most))}</bdi>"


def beginning(text: str, most: int) -> str:
    """The first words of a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def percent(share: float, digits: int = 0) -> str:
    """0.934 as 93 %; the space does not break."""
    return f"{100 * share:.{digits}f}\u00a0%"


def deviations(number: float) -> str:
    """Standard deviations from the mean, as the review page writes them: +1.7 σ, −0.5 σ."""
    return f"{'+' if number >= 0 else '−'}{abs(number):.1f} σ"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """1 item, 1,797 items."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, label: str) -> str:
    """A table of cells that are HTML already; the first column is the head of its row."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    cells = ((row[0], "".join(f"<td>{cell}</td>" for cell in row[1:])) for row in rows)
    lines = "".join(f'<tr><th scope="row">{first}</th>{others}</tr>' for first, others in cells)
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f'<div {WIDE}><table aria-label="{escaped(label)}">{top}<tbody>{lines}</tbody></table></div>'


def as_json(value: Any) -> str:
    """JSON that cannot close the script tag around it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
